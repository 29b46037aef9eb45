//! Counts of the discarded values by block: `counts.jsonl`, one line per block of [`BLOCK`] values.
//!
//! A picture of the values over n needs to know how often each value occurs in each block, and nothing else. A run with
//! `--keep` writes these counts before it discards the values, because nobody can count them later. This program never
//! reads them.
//!
//! A commit writes the lines durably before the record that lists their values as discarded. A process that is killed
//! between the two leaves lines of retained values; the next process removes them and writes them again.
//!
//! Invariant: the durable lines up to the end of the discarded range are whole, ascend in n and do not overlap. They
//! cover the range, unless the file was lost or the values were discarded by a version without counts.

use crate::error::{Error, Result};
use crate::storage::{Dir, File, Mode};
use crate::table::digest::SEGMENT;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};

/// The name of the file in a run directory.
pub(crate) const NAME: &str = "counts.jsonl";

/// Number of values in a block: a divisor of a segment, so that the discarded range consists of whole blocks.
pub(crate) const BLOCK: u64 = SEGMENT / 4;

/// Maximum length of a line in bytes: enough for the counts of all 65536 values.
const MAX_LINE: u64 = 1 << 20;

/// One line: how often each value occurs in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockCounts {
    /// The first n.
    pub(crate) from: u64,
    /// One past the last n.
    pub(crate) to: u64,
    /// Number of n of the block with G(n) = 0, 1, 2, …
    pub(crate) counts: Vec<u64>,
}

impl BlockCounts {
    /// Returns the counts of the block `[from, to)`, which the histogram `later` counts and `earlier` does not.
    pub(crate) fn between(from: u64, to: u64, earlier: &[u64], later: &[u64]) -> BlockCounts {
        let before = earlier.iter().copied().chain(std::iter::repeat(0));
        let mut counts: Vec<u64> = later.iter().zip(before).map(|(later, earlier)| later - earlier).collect();
        counts.truncate(counts.iter().rposition(|&number| number > 0).map_or(0, |last| last + 1));
        BlockCounts { from, to, counts }
    }

    /// Returns whether the line can follow lines that end at `end`, and counts each of its values once.
    fn follows(&self, end: u64) -> bool {
        let sum = self.counts.iter().try_fold(0u64, |sum, &number| sum.checked_add(number));
        end <= self.from && self.from < self.to && sum == Some(self.to - self.from)
    }
}

/// The open file, to which lines are appended.
#[derive(Debug)]
pub(crate) struct CountsFile {
    dir: Dir,
    file: File,
    /// The length of the durable lines in bytes.
    length: u64,
}

impl CountsFile {
    /// Opens the file of a run whose discarded range ends at `discarded_end`, and creates it if it is missing. Removes
    /// the lines of values that are not discarded, and everything after the first line that is broken.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open(dir: &Dir, discarded_end: u64) -> Result<CountsFile> {
        let io = |source| Error::io("opening", dir.join(NAME))(source);
        let file = dir.open(NAME, Mode::Make).map_err(io)?;
        dir.sync().map_err(io)?;
        let length = good_length(BufReader::new(file.reader()), discarded_end);
        let length = length.map_err(Error::io("reading", dir.join(NAME)))?;
        if length < file.length().map_err(Error::io("reading the state of", dir.join(NAME)))? {
            file.set_length(length).map_err(Error::io("truncating", dir.join(NAME)))?;
        }
        Ok(CountsFile { dir: dir.clone(), file, length })
    }

    /// Appends lines durably.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn append(&mut self, blocks: &[BlockCounts]) -> Result<()> {
        let io = |source: std::io::Error| Error::io("writing", self.dir.join(NAME))(source);
        let mut bytes = Vec::new();
        for block in blocks {
            serde_json::to_writer(&mut bytes, block).map_err(|error| io(error.into()))?;
            bytes.push(b'\n');
        }
        let path = self.dir.join(NAME);
        self.file
            .write_all_at(&bytes, self.length)
            .map_err(|source| self.dir.write_error(source, &path, bytes.len() as u64, "writing"))?;
        self.file.sync_data().map_err(io)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Returns the length in bytes of the good lines at the start that describe values below `discarded_end`.
fn good_length(mut reader: impl BufRead, discarded_end: u64) -> std::io::Result<u64> {
    let (mut length, mut end) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        let text = line.strip_suffix(b"\n");
        let block = text.and_then(|text| serde_json::from_slice::<BlockCounts>(text).ok());
        match block.filter(|block| block.follows(end) && block.to <= discarded_end) {
            Some(block) => (length, end) = (length + read as u64, block.to),
            None => return Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::testing::memory::Memory;
    use std::path::Path;
    use std::sync::Arc;

    fn block(from: u64, counts: &[u64]) -> BlockCounts {
        BlockCounts { from, to: from + counts.iter().sum::<u64>(), counts: counts.into() }
    }

    #[test]
    fn counts_of_a_block_are_the_difference_of_two_histograms() {
        assert_eq!(BlockCounts::between(10, 13, &[4, 6], &[5, 6, 0, 2]), block(10, &[1, 0, 0, 2]));
        assert_eq!(BlockCounts::between(10, 12, &[4, 6, 1], &[6, 6, 1]), block(10, &[2]));
    }

    #[test]
    fn reopened_file_holds_the_whole_lines_of_discarded_values() {
        let disk = Memory::new();
        let dir = Dir::on(Arc::new(disk.clone()), Path::new("run"));
        dir.make().unwrap();
        let blocks = [block(8, &[1, 3]), block(12, &[0, 4]), block(20, &[2, 2])];
        CountsFile::open(&dir, 8).unwrap().append(&blocks).unwrap();
        let whole = disk.get(NAME).unwrap();
        let ends: Vec<usize> = (1..=whole.len()).filter(|&end| whole[end - 1] == b'\n').collect();
        for (discarded_end, lines) in [(24, 3), (23, 2), (16, 2), (15, 1), (8, 0)] {
            disk.put(NAME, whole.clone());
            CountsFile::open(&dir, discarded_end).unwrap();
            let kept = [0].iter().chain(&ends).nth(lines).copied().unwrap();
            assert_eq!(disk.get(NAME).unwrap(), whole[..kept], "discarded up to {discarded_end}");
        }
        // A line that a power cut tore, at any byte, is written again with what follows it.
        for cut in ends[1]..whole.len() {
            disk.put(NAME, whole[..cut].to_vec());
            CountsFile::open(&dir, 24).unwrap().append(&blocks[2..]).unwrap();
            assert_eq!(disk.get(NAME).unwrap(), whole, "cut at {cut}");
        }
        // Lines that overlap, or whose counts do not add up, are broken.
        for broken in [block(15, &[4]), BlockCounts { to: 30, ..block(20, &[4]) }] {
            disk.put(NAME, whole[..ends[1]].to_vec());
            let mut file = CountsFile::open(&dir, 16).unwrap();
            file.append(&[broken]).unwrap();
            CountsFile::open(&dir, 100).unwrap();
            assert_eq!(disk.get(NAME).unwrap(), whole[..ends[1]]);
        }
    }
}

//! The values of a game whose examination was interrupted, in the directory of the survey.
//!
//! A file `CODE.values`, named after the family, holds those of one of its games. It begins with a JSON object in one
//! line; two bytes per value follow, in little-endian order.
//!
//! Invariant: values are used only if this version of the program computed them, because a record names one program;
//! if they have the digest that the file states; and if the first of them are those of the game by the definition. The
//! last check finds a changed name: the values of two games of a family are shifted against each other.

use super::families::{Member, representative};
use super::pace::Pace;
use super::record::file_name;
use crate::error::{Damage, Error, Result};
use crate::storage::{Dir, Mode};
use crate::table::digest::DigestChain;
use crate::theory::definition;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Extension of the file.
const EXTENSION: &str = "values";

/// Minimum number of first values that are compared with the definition.
const COMPARED: u64 = 256;

/// Value of the field `format`.
const FORMAT: &str = "grundy-survey-values-2";

/// The beginning of the field `format` in all versions.
const ANY_FORMAT: &str = "grundy-survey-values-";

/// The first line of the file: one field per JSON key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: String,
    program: String,
    /// Canonical name of the game.
    game: String,
    /// Number of values.
    count: u64,
    digest: String,
    seconds: Pace,
}

/// What is needed to continue an examination.
#[derive(Debug)]
pub(super) struct Saved<V> {
    pub(super) game: Rule,
    pub(super) pace: Pace,
    /// G(0), G(1), …
    pub(super) values: V,
}

/// The name of the file of a game's family.
fn name(game: &Rule) -> String {
    file_name(&representative(game).rule, EXTENSION)
}

/// Number of files in a directory whose values this version of the program has saved.
pub(super) fn count(dir: &Dir) -> Result<usize> {
    let names = dir.names().map_err(Error::io("reading the names in", dir.path()))?;
    let is_one = |name: &&String| Path::new(name).extension().is_some_and(|extension| extension == EXTENSION);
    Ok(names.iter().filter(is_one).filter(|name| is_own(dir, name)).count())
}

/// Whether this version of the program wrote a file.
fn is_own(dir: &Dir, name: &str) -> bool {
    let expected = format!("{{\"format\":\"{FORMAT}\",\"program\":\"{}\",", crate::PROGRAM);
    let mut start = vec![0; expected.len()];
    let read = dir.open(name, Mode::Read).and_then(|file| file.read_exact_at(&mut start, 0));
    read.is_ok() && start == expected.as_bytes()
}

/// The file of a game's family, for messages.
pub(super) fn path(dir: &Dir, game: &Rule) -> PathBuf {
    dir.join(&name(game))
}

/// Whether there are saved values of a game's family.
pub(super) fn exist(dir: &Dir, game: &Rule) -> Result<bool> {
    let length = dir.length(&name(game)).map_err(Error::io("reading", path(dir, game)))?;
    Ok(length.is_some())
}

/// Removes the file of a game's family, if there is one.
pub(super) fn remove(dir: &Dir, game: &Rule) -> Result<()> {
    dir.remove(&name(game)).map_err(Error::io("removing", path(dir, game)))
}

impl Saved<&[u16]> {
    /// Writes the file of the game's family, atomically and durably.
    pub(super) fn write(&self, dir: &Dir) -> Result<()> {
        let head = Head {
            format: FORMAT.into(),
            program: crate::PROGRAM.into(),
            game: self.game.name().into(),
            count: self.values.len() as u64,
            digest: digest(self.values),
            seconds: self.pace,
        };
        let mut bytes = serde_json::to_vec(&head).expect("numbers and text are JSON");
        bytes.push(b'\n');
        bytes.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        dir.write_whole(&name(&self.game), &bytes)
    }
}

impl Saved<Vec<u16>> {
    /// Reads the values that are saved for the family of a game. Returns `None` if there are none, or if another
    /// version of the program computed them.
    ///
    /// # Errors
    /// [`Error::Damage`] if the file is not as this program writes it.
    pub(super) fn read(dir: &Dir, game: &Member) -> Result<Option<Saved<Vec<u16>>>> {
        let path = path(dir, &game.rule);
        let bytes = match dir.read(&name(&game.rule)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(Error::io("reading", &path))?,
        };
        let damage = |why| Error::Damage { path, offset: 0, damage: Damage::NotSavedValues { why } };
        let Some(saved) = parse(&bytes, &game.rule).map_err(damage)? else { return Ok(None) };
        let first = Member::new(saved.game);
        let values = game.values_from(&first, &saved.values);
        Ok(Some(Saved { game: game.rule.clone(), pace: saved.pace, values }))
    }
}

/// Parses a file of the family of `game`; `None` if another version of the program wrote it. The error states what is
/// wrong.
fn parse(bytes: &[u8], game: &Rule) -> std::result::Result<Option<Saved<Vec<u16>>>, String> {
    let line = bytes.iter().position(|&byte| byte == b'\n').ok_or("it has no first line")?;
    let (head, rest) = (&bytes[..line], &bytes[line + 1..]);
    let wrong = |e: serde_json::Error| super::record::printable(&e.to_string());
    let fields: serde_json::Value = serde_json::from_slice(head).map_err(wrong)?;
    match fields["format"].as_str() {
        Some(FORMAT) => {}
        Some(other) if other.starts_with(ANY_FORMAT) => return Ok(None),
        _ => return Err(format!("its format is not '{FORMAT}'")),
    }
    let head: Head = serde_json::from_value(fields).map_err(wrong)?;
    if head.program != crate::PROGRAM {
        return Ok(None);
    }
    let rule = head.game.parse::<Rule>().ok();
    let rule = rule.filter(|rule| representative(rule).rule == representative(game).rule);
    let rule = rule.ok_or("it is not of the family that the file is named after")?;
    let values: Vec<u16> = rest.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    if values.len() as u64 != head.count || rest.len() != 2 * index(head.count) {
        return Err("the number of values is not the one of the first line".into());
    }
    if !head.seconds.is_valid() {
        return Err("the computing times of the first line are not times".into());
    }
    if digest(&values) != head.digest {
        return Err("the values do not have the digest of the first line".into());
    }
    // A standard form has a move from 1. So the first value that is not 0 follows the shift, and differs from that of
    // another game of the family.
    let compared = COMPARED.max(representative(&rule).shift + 2).min(head.count);
    let first = &values[..index(compared)];
    if definition::values(&rule, first.len()).map_err(|error| error.to_string())? != first {
        return Err("the values are not those of the game that the first line names".into());
    }
    Ok(Some(Saved { game: rule, pace: head.seconds, values }))
}

fn digest(values: &[u16]) -> String {
    let mut chain = DigestChain::new();
    chain.update(values);
    chain.digest().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::examination::{Examination, Progress};
    use super::super::extent::Extent;
    use super::*;
    use crate::kernel::Kernel;
    use crate::solver::{self, Method};
    use crate::storage::testing::Memory;
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::Arc;

    const EXTENT: Extent = Extent { to: 20_000, time_limit: None };

    fn method() -> Method {
        Method::Sparse(Kernel::best())
    }

    /// Examines a game; `go_on` ends it.
    fn advanced(game: &str, go_on: impl Fn() -> bool) -> (Examination, Progress) {
        let mut examination = Examination::new(&game.parse().unwrap(), method(), EXTENT);
        let progress = examination.advance(u64::MAX, go_on).unwrap();
        (examination, progress)
    }

    fn read(dir: &Dir, game: &str) -> Result<Option<Saved<Vec<u16>>>> {
        Saved::read(dir, &Member::new(game.parse().unwrap()))
    }

    #[test]
    fn interrupted_examinations_give_the_record_of_whole_ones() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::at(home.path());
        for game in ["0.007", "0.143", "grundy", "kayles", "4.3"] {
            let whole = advanced(game, || true).0.record().unwrap();
            for blocks in [0_u32, 1, 2, 5, 9] {
                let left = Cell::new(blocks);
                let (first, progress) = advanced(game, || left.replace(left.get().saturating_sub(1)) > 0);
                if progress == Progress::Interrupted {
                    first.saved().unwrap().write(&dir).unwrap();
                }
                let mut second = Examination::new(&game.parse().unwrap(), method(), EXTENT);
                if let Some(saved) = read(&dir, game).unwrap() {
                    second.resume(method(), saved);
                }
                assert_eq!(second.advance(u64::MAX, || true).unwrap(), Progress::Done);
                assert_eq!(second.record().unwrap(), whole, "{game}, interrupted after {blocks} blocks");
            }
        }
    }

    #[test]
    fn saved_values_continue_all_games_of_the_family() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::at(home.path());
        let (shifted, _) = advanced("0.04", || true);
        shifted.saved().unwrap().write(&dir).unwrap();
        let saved = read(&dir, "0.007").unwrap().unwrap();
        let expected = solver::values(&saved.game, Method::Definition, saved.values.len()).unwrap();
        assert!(saved.values.len() > 2000 && saved.values == expected);
        let (unshifted, _) = advanced("0.007", || true);
        unshifted.saved().unwrap().write(&dir).unwrap();
        let saved = read(&dir, "0.04").unwrap().unwrap();
        let expected = solver::values(&saved.game, Method::Definition, saved.values.len()).unwrap();
        assert!(saved.values.len() > 2000 && saved.values == expected);
        remove(&dir, &saved.game).unwrap();
        assert!(read(&dir, "0.04").unwrap().is_none());
    }

    /// 0.2 and 0.3 are a family, and their names differ in one bit.
    #[test]
    fn every_flipped_bit_of_saved_values_is_noticed_or_harmless() {
        let disk = Memory::new();
        let dir = Dir::on(Arc::new(disk.clone()), Path::new("survey"));
        let rule: Rule = "0.2".parse().unwrap();
        let mut examination = Examination::new(&rule, method(), EXTENT);
        examination.advance(1, || true).unwrap();
        examination.saved().unwrap().write(&dir).unwrap();
        let file = name(&rule);
        let good = disk.get(&file).unwrap();
        for place in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[place / 8] ^= 1 << (place % 8);
            disk.put(&file, bad);
            // None: the flip is in the name of the program.
            let is_same = |saved: Saved<Vec<u16>>| saved.values == examination.saved().unwrap().values;
            assert!(read(&dir, "0.2").map_or(true, |saved| saved.is_none_or(is_same)), "bit {place}");
        }
        let other = String::from_utf8_lossy(&good).replacen(crate::PROGRAM, "grundy 0.0.1", 1).into_bytes();
        assert_ne!(other, good);
        disk.put(&file, other);
        assert!(read(&dir, "0.2").unwrap().is_none(), "values of another version");
        disk.put(&file, good[..good.len() - 1].to_vec());
        assert!(matches!(read(&dir, "0.2"), Err(Error::Damage { damage: Damage::NotSavedValues { .. }, .. })));
    }
}

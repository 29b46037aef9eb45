//! The manifest of a run.

use crate::checkpoint::journal::Origin;
use crate::run::RunReader;
use crate::survey::{is_program, printable};
use crate::table::digest::{Digest, SEGMENT};
use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::Read;

/// Value of the field `format`.
const FORMAT: &str = "grundy-manifest-1";

/// What is published of a run: one field per JSON key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// `grundy-manifest-1`.
    pub format: String,
    /// Canonical name of the game.
    pub game: String,
    /// BLAKE3 of the rule's moves ([`Rule::digest`]).
    pub rule: String,
    /// Number of values.
    pub count: u64,
    /// Digest of all values ([`crate::table::digest`]).
    pub digest: String,
    /// Number of values between two digests: a multiple of the segment length of tables, 2^24.
    pub segment: u64,
    /// The digests of the first values up to each multiple of `segment`, and up to the end.
    pub segments: Vec<Segment>,
    /// Mask of the sparse space; 0 if there is none.
    pub mask: u16,
    /// Position term of the sparse space.
    pub position: u8,
    /// Number of rare positions, n = 0 included.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// The largest value.
    pub max_value: u16,
    /// The least n with that value.
    pub max_at: u64,
    /// Number of values of 255 or more in a table of bytes; 0 in a table of two bytes.
    pub escapes: u64,
    /// How the values were computed.
    pub computed: Computed,
    /// The checks of the values, as verification commands state them.
    pub verified: Vec<serde_json::Value>,
    /// The other computations that gave the same digests.
    pub confirmed: Vec<Confirmation>,
    /// The other published files.
    pub files: Vec<FileEntry>,
    /// The digests of the first values at other counts, if they are known. A file does not state them.
    #[serde(skip)]
    pub points: Vec<(u64, String)>,
}

/// A segment and all values before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Number of values: a multiple of [`Manifest::segment`], or all values.
    pub to: u64,
    /// Digest of these values.
    pub digest: String,
}

/// How values were computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Computed {
    /// Program that wrote the last record.
    pub program: String,
    /// Which kernel computed the values, and on which machine.
    pub origins: Vec<Origin>,
    /// Computing time over all processes, in seconds.
    pub seconds: u64,
    /// When the last record was written.
    pub time: String,
    /// Number of failed checks.
    pub errors: u64,
}

/// Another computation with the same digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// Number of values with equal digests.
    pub values: u64,
    /// Digest of these values.
    pub digest: String,
    /// Which kernel computed these values there, and on which machine.
    pub origins: Vec<Origin>,
    /// Program of the other computation.
    pub program: String,
}

/// A published file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Name in the directory.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

impl Computed {
    /// Returns the origins of the first `count` values.
    pub(super) fn first(&self, count: u64) -> Vec<Origin> {
        let whole = self.origins.partition_point(|origin| origin.to < count);
        let mut origins: Vec<Origin> = self.origins.iter().take(whole + 1).cloned().collect();
        if let Some(last) = origins.last_mut() {
            last.to = last.to.min(count);
        }
        origins
    }
}

/// Returns the length in bytes and the SHA-256 of a stream.
///
/// # Errors
/// The errors of reading.
pub fn sha256(mut from: impl Read) -> std::io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            read => {
                hasher.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
    let hex = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((bytes, hex))
}

impl Manifest {
    /// Returns the manifest of a run, without checks and files, with a digest after every 2^24 values.
    #[must_use]
    pub fn of(run: &RunReader) -> Manifest {
        let last = &run.contents.last;
        let points: Vec<(u64, String)> =
            run.contents.points.iter().map(|point| (point.count, point.digest.to_string())).collect();
        let is_border = |count: u64| count > 0 && (count.is_multiple_of(SEGMENT) || count == last.count);
        let mut segments: Vec<Segment> = points
            .iter()
            .filter(|(count, _)| is_border(*count))
            .map(|(to, digest)| Segment { to: *to, digest: digest.clone() })
            .collect();
        segments.dedup();
        Manifest {
            format: FORMAT.into(),
            game: last.game.clone(),
            rule: last.rule.clone(),
            count: last.count,
            digest: last.digest.clone(),
            segment: SEGMENT,
            segments,
            mask: last.mask,
            position: last.position,
            rares: last.rares,
            last_rare: last.last_rare,
            max_value: last.max_value,
            max_at: last.max_at,
            escapes: last.escapes,
            computed: Computed {
                program: last.program.clone(),
                origins: run.contents.origins.clone(),
                seconds: last.seconds,
                time: last.time.clone(),
                errors: last.errors,
            },
            verified: Vec::new(),
            confirmed: Vec::new(),
            files: Vec::new(),
            points,
        }
    }

    /// Returns the manifest with fewer digests: one after every `segment` values, a multiple of the segment length so
    /// far, and one of all values. A long run then needs less space. [`Manifest::points`] keeps all digests.
    ///
    /// # Errors
    /// When `segment` is 0 or no multiple of the segment length so far; the error is a sentence that states what is
    /// wrong.
    pub fn with_segment(mut self, segment: u64) -> Result<Manifest, String> {
        if segment == 0 || !segment.is_multiple_of(self.segment) {
            return Err(format!("{segment} is not a positive multiple of {}", self.segment));
        }
        self.segments.retain(|stated| stated.to.is_multiple_of(segment) || stated.to == self.count);
        self.segment = segment;
        Ok(self)
    }

    /// Enters a machine for the values whose machine is not known. Returns whether there are such values.
    pub fn name_machine(&mut self, machine: &str) -> bool {
        let unknown = self.computed.origins.iter_mut().filter(|origin| origin.machine.is_none());
        unknown.map(|origin| origin.machine = Some(machine.into())).count() > 0
    }

    /// Parses the bytes of a manifest; the error is a sentence that states what is wrong.
    ///
    /// # Errors
    /// When the bytes are not a manifest, or it contradicts itself.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, String> {
        let mut manifest: Manifest = serde_json::from_slice(bytes).map_err(|e| printable(&e.to_string()))?;
        let fail = |what: &str| Err(what.to_owned());
        if manifest.format != FORMAT {
            return Err(format!("its format is '{}', not '{FORMAT}'", printable(&manifest.format)));
        }
        let rule = manifest.game.parse::<Rule>().ok().filter(|rule| rule.name() == manifest.game);
        if rule.is_none_or(|rule| rule.digest() != manifest.rule) {
            return fail("game and rule do not fit each other");
        }
        let Computed { program, origins, time, .. } = &manifest.computed;
        let texts = origins.iter().flat_map(|Origin { kernel, machine, .. }| machine.iter().chain([kernel]));
        if !texts.chain([program, time]).all(|text| is_program(text)) {
            return fail("a text in 'computed' is not a short line of printable ASCII");
        }
        let is_kernel =
            |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !origins.iter().all(|origin| is_kernel(&origin.kernel)) {
            return fail("a kernel in 'computed' is not a word of small letters and digits");
        }
        let ends = || origins.iter().map(|origin| origin.to);
        if ends().next() == Some(0) || ends().next_back() != Some(manifest.count) || !ends().is_sorted_by(|a, b| a < b)
        {
            return fail("the origins do not cover the values");
        }
        let length = manifest.segment;
        if length == 0 || !length.is_multiple_of(SEGMENT) {
            return fail("the segment length is not a positive multiple of 16777216");
        }
        // The digest at a border is missing if the record that stated it was lost.
        let is_border =
            |segment: &Segment| segment.to > 0 && (segment.to.is_multiple_of(length) || segment.to == manifest.count);
        let are_ascending = manifest.segments.is_sorted_by(|a, b| a.to < b.to);
        let are_borders = are_ascending && manifest.segments.iter().all(is_border);
        let are_digests = manifest.segments.iter().all(|segment| segment.digest.parse::<Digest>().is_ok());
        let last = manifest.segments.last().map(|segment| (segment.to, segment.digest.as_str()));
        let is_whole = last == Some((manifest.count, manifest.digest.as_str()));
        if manifest.count == 0 || !are_borders || !are_digests || !is_whole {
            return fail("the segments do not fit count and digest");
        }
        manifest.points = manifest.segments.iter().map(|segment| (segment.to, segment.digest.clone())).collect();
        Ok(manifest)
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and text are JSON") + "\n"
    }

    /// Returns the number of first values whose digests another computation confirms.
    #[must_use]
    pub fn confirmed_values(&self) -> u64 {
        self.confirmed.iter().map(|other| other.values).max().unwrap_or(0)
    }
}

//! The kinds of damage, each with the numbers that describe it.

use std::path::PathBuf;

/// What is wrong with a stored file. Its text states the contradiction; [`Error::Damage`](super::Error::Damage) adds
/// the file and the offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The journal ends in a record that is incomplete or broken. A killed process may have left it.
    #[error("the last record is broken or breaks off")]
    TornTail,
    /// The journal is long enough for a record, but none is good.
    #[error("no record is good")]
    NoGoodRecord,
    /// The journal holds something other than good records and a torn tail.
    #[error("{record}{rest}; the journal was altered{}", if values.is_none() { "; no good record precedes it" } else { "" })]
    Journal {
        /// What is wrong with the first record that is not good.
        record: BrokenRecord,
        /// Why it is not a torn tail.
        rest: JournalRest,
        /// The number of values in the last good record before the damage; `None` if there is no good record.
        values: Option<u64>,
        /// The game of the first record with a correct hash from the damage on, with characters escaped.
        game: Option<String>,
    },
    /// The next record does not fit, because the record before it has fields of another program that are too long.
    #[error("the next record needs {needed} bytes, more than a record can have")]
    RecordTooLong {
        /// The length of the next record, in bytes.
        needed: u64,
    },
    /// The journal names a game that this program does not know.
    #[error("'{game}' is not a game of this program")]
    UnknownGame {
        /// The name, with characters escaped.
        game: String,
    },
    /// A run rolled back below the values of a reader that had it open.
    #[error("the run went back while it was read")]
    WentBack,
    /// The tables hold values, but no record of the journal is good.
    #[error("values are here, but no record of the journal is good")]
    ValuesWithoutRecord {
        /// The game of the requested run.
        game: String,
    },
    /// A file of the table does not exist.
    #[error("the file is missing, but the journal describes its contents")]
    MissingFile,
    /// A file of the table is shorter than its header.
    #[error("the file is shorter than its header of {header} bytes")]
    ShortHeader {
        /// The length of a header, in bytes.
        header: u64,
    },
    /// The header of a file is not as this program writes it.
    #[error("not the header of a one-dimensional array of {descr}")]
    Header {
        /// The expected type of an element, as NumPy writes it.
        descr: &'static str,
    },
    /// The shapes in the headers are not those of the journal.
    #[error(
        "the headers state {values} values and {escapes} escapes, the journal states {expected_values} and \
         {expected_escapes}"
    )]
    HeaderShapes {
        /// Number of values according to the header.
        values: u64,
        /// Number of escapes according to the header.
        escapes: u64,
        /// Number of values according to the journal.
        expected_values: u64,
        /// Number of escapes according to the journal.
        expected_escapes: u64,
    },
    /// A file ends before the last unit that the journal describes.
    #[error("the file ends here, but the journal says that it has {units} entries of {unit} {}", if *unit == 1 { "byte" } else { "bytes" })]
    ShortFile {
        /// Number of values or escapes according to the journal.
        units: u64,
        /// The length of a unit, in bytes.
        unit: u64,
    },
    /// A file is longer than a clean stop leaves it.
    #[error("{bytes} bytes too many for a run that was stopped cleanly")]
    LongFile {
        /// Number of bytes beyond the end.
        bytes: u64,
    },
    /// An escape contradicts the byte of its value, or it has no such byte, or it does not follow the escape before
    /// it.
    #[error("the escape ({n}, {value}) contradicts {}", escape_rival(*byte))]
    Escape {
        /// The n of the escape.
        n: u64,
        /// The value of the escape.
        value: u16,
        /// The byte of the table that the escape contradicts; `None` if the escape may contradict the one before it.
        byte: Option<u8>,
    },
    /// The number of escapes of a range is not the number of bytes 255 in it.
    #[error("the values {from}..{to} have {bytes} bytes of 255, but {escapes} escapes")]
    EscapeCount {
        /// The first n of the range.
        from: u64,
        /// One past the last n of the range.
        to: u64,
        /// Number of bytes 255.
        bytes: u64,
        /// Number of escapes.
        escapes: u64,
    },
    /// The journal counts escapes that the table does not have.
    #[error("the journal describes the escapes {from}..{to}, which do not exist")]
    NoEscapes {
        /// The first missing escape.
        from: u64,
        /// One past the last missing escape.
        to: u64,
    },
    /// The journal states a digest of 0 values that is not the digest of 0 values.
    #[error("the journal states a wrong digest of 0 values")]
    EmptyDigest,
    /// Values do not have the digest that the journal states.
    #[error("the values {from}..{to} do not have the digest that the journal states")]
    Digest {
        /// The first n since the last digest that agrees.
        from: u64,
        /// The number of values of the first digest that disagrees.
        to: u64,
        /// Whether the run that found the damage had first tried to restore the values.
        repair_failed: bool,
    },
    /// Values that agreed with the journal no longer agree with it, although nothing was written.
    #[error("the {values} values that agreed with the journal no longer agree")]
    UnstableValues {
        /// Number of values that agreed.
        values: u64,
    },
    /// Published values changed before the commit that discards them.
    #[error("the values {from}..{to}, which this commit would free, differ from the values that were written")]
    DiscardedValues {
        /// The first n to be discarded.
        from: u64,
        /// One past the last n to be discarded.
        to: u64,
    },
    /// The discard summary is missing, altered or false.
    #[error("{0}")]
    Summary(SummaryDamage),
    /// The discard summary and a record state different digests of the same values.
    #[error("the snapshot of the freed values and the record of {values} values state different digests")]
    SummaryDigest {
        /// Number of values of the record.
        values: u64,
    },
    /// Rare positions or the largest value of the table are not those of the journal.
    #[error("the table has {counted}; the journal states {stated}")]
    Counters {
        /// The counters of the table.
        counted: Counters,
        /// The counters of the last record.
        stated: Counters,
    },
    /// The rare positions of the table are not those of the journal.
    #[error(
        "the table has {rares} rare positions, the last at n = {last_rare}; the journal states {expected_rares} and \
         n = {expected_last_rare}"
    )]
    RarePositions {
        /// Number of rare positions of the table.
        rares: u64,
        /// The last rare position of the table.
        last_rare: u64,
        /// Number of rare positions according to the journal.
        expected_rares: u64,
        /// The last rare position according to the journal.
        expected_last_rare: u64,
    },
    /// A suspect value is wrong, although it agrees with the journal.
    #[error(
        "G({n}) was computed as {value}, but the definition gives {expected}: nothing from there on can be trusted"
    )]
    WrongSuspect {
        /// The n of the suspect value.
        n: u64,
        /// The value in the table.
        value: u32,
        /// The value by the definition.
        expected: u32,
    },
    /// A file with the name of a survey record is not a record.
    #[error("this is not a record of a survey: {why}")]
    NotARecord {
        /// What is wrong with it.
        why: String,
    },
    /// Two survey records of a game contradict each other.
    #[error("it contradicts {}: {why}", other.display())]
    RecordsContradict {
        /// The file of the other record.
        other: PathBuf,
        /// The statements that contradict each other.
        why: String,
    },
    /// A new record of a game contradicts the one that the file holds.
    #[error("a new examination of the game contradicts this record: {why}")]
    NewRecordContradicts {
        /// The statements that contradict each other.
        why: String,
    },
    /// The file of the saved values of a survey is not as this program writes it.
    #[error("these are not saved values of a survey: {why}")]
    NotSavedValues {
        /// What is wrong with the file.
        why: String,
    },
    /// The file of a survey plan is not a plan.
    #[error("this is not the plan of a survey: {why}")]
    NotAPlan {
        /// What is wrong with it.
        why: String,
    },
    /// The file of a plan of work units is not a plan.
    #[error("this is not a plan of units: {why}")]
    NotAUnitsPlan {
        /// What is wrong with it.
        why: String,
    },
    /// A file with the name of a unit's result is not a result.
    #[error("this is not the result of a unit: {why}")]
    NotAResult {
        /// What is wrong with it.
        why: String,
    },
    /// A published file, or a note about one, is not what it should be.
    #[error("{why}")]
    NotPublished {
        /// What is wrong.
        why: String,
    },
    /// Two results of a unit contradict each other.
    #[error("it contradicts {}, another result of the same unit: {why}", other.display())]
    ResultsContradict {
        /// The file of the other result.
        other: PathBuf,
        /// The statements that contradict each other.
        why: String,
    },
}

impl Damage {
    /// Where in a file the damage is, in words; empty where the whole file is meant.
    pub(super) fn place(&self, offset: u64) -> String {
        let is_whole = matches!(
            self,
            Damage::WentBack
                | Damage::MissingFile
                | Damage::Summary(_)
                | Damage::NotARecord { .. }
                | Damage::RecordsContradict { .. }
                | Damage::NewRecordContradicts { .. }
                | Damage::NotSavedValues { .. }
                | Damage::NotAPlan { .. }
                | Damage::NotAUnitsPlan { .. }
                | Damage::NotAResult { .. }
                | Damage::NotPublished { .. }
                | Damage::ResultsContradict { .. }
        );
        if is_whole { String::new() } else { format!(" at byte {offset}") }
    }
}

/// What an escape contradicts.
fn escape_rival(byte: Option<u8>) -> String {
    match byte {
        Some(byte) => format!("the byte {byte}"),
        None => "the table or the escape before it".into(),
    }
}

/// Rare positions and largest value of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Number of rare positions.
    pub rares: u64,
    /// The last rare position; 0 if there is none.
    pub last_rare: u64,
    /// The largest value; 0 if there are no values.
    pub max_value: u16,
    /// The least n with that value.
    pub max_at: u64,
}

impl Damage {
    /// Whether an interruption, such as a power cut, can leave a run like this. Resuming the run repairs it.
    pub(crate) fn is_interruption(&self) -> bool {
        matches!(self, Damage::TornTail | Damage::HeaderShapes { .. })
    }
}

impl std::fmt::Display for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counters { rares, last_rare, max_value, max_at } = self;
        write!(
            f,
            "{rares} rare positions, the last at n = {last_rare}, and the largest value {max_value} at n = {max_at}"
        )
    }
}

/// What is wrong with a record of a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenRecord {
    /// The hash of the record is wrong.
    #[error("the record does not match its own hash")]
    Hash,
    /// The record is not a JSON object.
    #[error("the record is not a JSON object")]
    NotJson,
    /// The record has no format number.
    #[error("the record has no format number")]
    NoFormat,
    /// The JSON object has not the fields of a record.
    #[error("the JSON object is not a commit record: {why}")]
    Fields {
        /// What is wrong with the fields, with characters escaped.
        why: String,
    },
    /// The record does not contain the hash and the sequence number that follow from the record before it.
    #[error("the record does not follow the one before it")]
    Order,
    /// The record belongs to another run.
    #[error("the record belongs to another run")]
    OtherRun,
    /// The field `blake3` is not the hash at the end of the record.
    #[error("the record's own hash is not its last field")]
    HashField,
    /// The fields contradict each other or the record before.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// Why the rest of a journal is not a torn tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalRest {
    /// The broken record has a correct hash, which a torn record does not have.
    #[error("")]
    Sealed,
    /// Good records follow the broken one.
    #[error(", and good records follow")]
    GoodRecords,
    /// More bytes follow the last good record than a killed process can leave.
    #[error(", and {bytes} bytes follow the last good record, more than a killed process can leave")]
    TooLong {
        /// Number of bytes after the last good record.
        bytes: u64,
    },
    /// More broken records follow.
    #[error(", and {records} more broken records follow")]
    BrokenRecords {
        /// Number of broken records after the first.
        records: u64,
    },
}

/// What is wrong with a discard summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryDamage {
    /// The last record names a file that is not the summary of its discarded values.
    #[error("the last record names another file")]
    Name,
    /// The file does not exist.
    #[error("the file is missing, but the journal names it")]
    Missing,
    /// The file is too long.
    #[error("the file is longer than any discard summary can be")]
    TooLong,
    /// The file does not have the hash that the journal states.
    #[error("the file does not have the hash that the journal states")]
    Hash,
    /// The file is not the JSON of a summary.
    #[error("the file is not a discard summary")]
    NotASummary,
    /// The file contradicts the journal.
    #[error("the file contradicts the journal")]
    Journal,
    /// Fields of the file contradict each other.
    #[error("the file contradicts itself: {0}")]
    Contradiction(&'static str),
}

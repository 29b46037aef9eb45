//! The record of one game: its fields, its checks, its file name.

use super::extent::Extent;
use crate::error::{Error, Result, shortened};
use crate::period::{Status, Theorem};
use crate::solver::SparseSpace;
use crate::storage::is_unicode;
use crate::table::digest::{Digest, DigestChain};
use crate::theory::catalogue;
use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Value of the field `format` of a record.
pub(super) const FORMAT: &str = "grundy-survey-1";

/// Extension of the file of a record.
pub(super) const EXTENSION: &str = "json";

/// The result for one game: one field per JSON key. A number that does not exist is null in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `grundy-survey-1`.
    pub format: String,
    /// Name and version of the program that wrote the record.
    pub program: String,
    /// Canonical name of the game.
    pub game: String,
    /// Number of values to which the survey was to examine the game.
    pub to: u64,
    /// The time limit in seconds that ended the examination before `to` values; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<u64>,
    /// How well the period is established.
    pub status: Status,
    /// The period.
    pub period: Option<u64>,
    /// The preperiod.
    pub preperiod: Option<u64>,
    /// Increase per period; not 0 for an arithmetic-periodic sequence.
    pub saltus: u16,
    /// The largest value.
    pub max_value: u16,
    /// The n at which `max_value` occurs first.
    pub max_at: u64,
    /// Mask of the sparse space; 0 for none.
    pub mask: u16,
    /// Position term of the sparse space, 0 or 1.
    pub position: u8,
    /// Number of rare positions, n = 0 included; null without a space.
    pub rares: Option<u64>,
    /// The last rare position; null without a space.
    pub last_rare: Option<u64>,
    /// The theorem of the proof.
    pub theorem: Option<Theorem>,
    /// Number of values examined.
    pub checked_through: u64,
    /// Digest of these values.
    pub digest: String,
}

/// A record as its file contains it.
#[derive(Serialize)]
struct Sealed<'a> {
    #[serde(flatten)]
    record: &'a Record,
    seal: &'a str,
}

impl Record {
    /// The text of the record's file: the keys of the record and `seal`, the BLAKE3 hash of the same text with an empty
    /// seal.
    #[must_use]
    pub fn file_text(&self) -> String {
        let text = |seal: &str| {
            let sealed = Sealed { record: self, seal };
            serde_json::to_string_pretty(&sealed).expect("numbers and text are JSON") + "\n"
        };
        text(&blake3::hash(text("").as_bytes()).to_hex())
    }

    /// Parses a record from the bytes of the file `name`.
    ///
    /// # Errors
    /// A sentence that states what is wrong, when the bytes are not a record, do not have the stated seal, or the
    /// record contradicts itself.
    pub fn parse(name: &str, bytes: &[u8]) -> std::result::Result<Record, String> {
        let wrong = |e: serde_json::Error| printable(&e.to_string());
        let mut fields: serde_json::Value = serde_json::from_slice(bytes).map_err(wrong)?;
        let seal = fields.as_object_mut().and_then(|fields| fields.remove("seal"));
        let record: Record = serde_json::from_value(fields).map_err(wrong)?;
        match seal.as_ref().and_then(serde_json::Value::as_str) {
            None => return Err("it has no seal".into()),
            Some(seal) if !is_sealed(bytes, seal) => {
                return Err("it was altered: it does not have the hash that it states as its seal".into());
            }
            Some(_) => {}
        }
        let rule = record.rule().filter(|rule| file_name(rule, EXTENSION) == name);
        let Some(rule) = rule else {
            return Err("it is not the record of the game that the file is named after".into());
        };
        record.check(&rule).map(|()| record)
    }

    /// Checks a record that stands in a file of several; the error is a sentence that states what is wrong.
    pub(crate) fn is_sound(&self) -> std::result::Result<(), String> {
        let rule = self.rule().ok_or("it is not the record of a game under its canonical name")?;
        self.check(&rule)
    }

    /// The game, if the record has the format of this program and names the game by its canonical name.
    fn rule(&self) -> Option<Rule> {
        let rule = self.game.parse::<Rule>().ok()?;
        (rule.name() == self.game && self.format == FORMAT).then_some(rule)
    }

    /// Checks that the fields fit each other and the game.
    fn check(&self, rule: &Rule) -> std::result::Result<(), String> {
        let fail = |what: &str| Err(what.to_owned());
        if !is_program(&self.program) {
            return fail("the field 'program' is not a short line of printable ASCII");
        }
        if self.digest.parse::<Digest>().is_err() {
            return fail("the digest is not 64 lower-case hexadecimal digits");
        }
        let count = self.checked_through;
        if self.time_limit == Some(0) || (self.time_limit.is_some() && self.status == Status::Proved) {
            return fail("the time limit is 0, or it ended a search that proved a period");
        }
        if self.to == 0 || self.max_at >= count || (self.max_value == 0) != (self.max_at == 0) {
            return fail("max_value and max_at do not fit checked_through");
        }
        let space = SparseSpace::new(rule, self.mask, self.position).is_some();
        let fits = match (self.rares, self.last_rare) {
            (Some(rares), Some(last)) => space && rares >= 1 && rares - 1 <= last && last < count,
            (None, None) => (self.mask, self.position) == (0, 0),
            _ => false,
        };
        if !fits {
            return fail("mask, position, rares and last_rare do not fit each other, the game or checked_through");
        }
        let Some((p, n0)) = self.period.zip(self.preperiod) else {
            let nothing = (self.period, self.preperiod, self.theorem) == (None, None, None) && self.saltus == 0;
            return if nothing && self.status == Status::None { Ok(()) } else { fail("status and period do not fit") };
        };
        let end = p.checked_add(n0).filter(|&end| p > 0 && end <= count);
        // With saltus 0 every value occurs first before the end of the first period.
        if end.is_none_or(|end| self.saltus == 0 && self.max_at >= end) {
            return fail("period and preperiod do not fit checked_through or max_at");
        }
        let based = match (self.status, self.theorem) {
            (Status::Observed, None) => true,
            (Status::Proved, None) => rule.is_nim() && (p, n0, self.saltus) == (1, 0, 1),
            (Status::Proved, Some(Theorem::P4)) => space && self.saltus == 0 && self.has_window(rule, p),
            (Status::Proved, Some(theorem)) => {
                let length = theorem.length(rule, theorem.start(n0), p);
                self.saltus == 0 && length.is_some_and(|length| length <= count)
            }
            _ => false,
        };
        if !based {
            return fail("status, theorem, saltus and checked_through do not fit each other or the game");
        }
        let known = self.refutation(rule);
        known.map_or(Ok(()), |known| Err(format!("its period contradicts the catalogue: {known}")))
    }

    /// Why a proved period cannot be that of the game, from what is known of the game.
    fn refutation(&self, rule: &Rule) -> Option<String> {
        let is_proved = self.status == Status::Proved && self.saltus == 0;
        let (period, preperiod) = self.period.zip(self.preperiod).filter(|_| is_proved)?;
        catalogue::known(rule).period?.fact.contradiction(period, preperiod)
    }

    /// Compares a proved period with what is known of the game.
    ///
    /// # Errors
    /// [`Error::ContradictsCatalogue`].
    pub(super) fn check_with_catalogue(&self, rule: &Rule) -> Result<()> {
        let Some(known) = self.refutation(rule) else { return Ok(()) };
        let [period, preperiod] = [self.period, self.preperiod].map(Option::unwrap_or_default);
        Err(Error::ContradictsCatalogue { game: self.game.clone(), period, preperiod, known })
    }

    /// Whether a window with the period p, as P4 requires it, ends before `checked_through`
    /// ([`is_placed`](crate::period::PeriodWindow::is_placed)).
    fn has_window(&self, rule: &Rule, p: u64) -> bool {
        let rare = self.last_rare.and_then(|last| last.checked_mul(2));
        let bounds = [rule.max_remove(), rule.max_difference(), p];
        let end = bounds.into_iter().try_fold(rare.unwrap_or(u64::MAX), u64::checked_add);
        end.is_some_and(|end| end <= self.checked_through) && (self.position == 0 || p.is_multiple_of(2))
    }

    /// Whether the game was examined to this extent, or its period is proved.
    pub(super) fn is_done(&self, extent: Extent) -> bool {
        let limit = self.time_limit.map(Duration::from_secs);
        let is_long_enough = limit.is_none_or(|limit| extent.time_limit.is_some_and(|least| limit >= least));
        self.status == Status::Proved || (self.to >= extent.to && is_long_enough)
    }

    /// The extent to which the game was examined; greater is further.
    pub(super) fn extent(&self) -> (u64, u64) {
        (self.to, self.time_limit.unwrap_or(u64::MAX))
    }
}

/// Whether `seal` is the BLAKE3 hash of a file in which it is replaced by the empty text.
fn is_sealed(bytes: &[u8], seal: &str) -> bool {
    let unsealed = std::str::from_utf8(bytes).map(|text| text.replacen(&format!("\"{seal}\""), "\"\"", 1));
    unsealed.is_ok_and(|text| *blake3::hash(text.as_bytes()).to_hex() == *seal)
}

/// Whether a text is a valid value of the field `program`.
pub(crate) fn is_program(text: &str) -> bool {
    const LONGEST: usize = 256;
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|c| c == b' ' || c.is_ascii_graphic())
}

/// Prepares a text from a file for a message: escapes control characters, and truncates it to 200 characters.
pub(crate) fn printable(text: &str) -> String {
    shortened(text, 200)
}

/// Returns the record of Nim: G(n) = n, so G(n + 1) = G(n) + 1 for all n. Its digest covers the values that fit in 16
/// bits.
pub(super) fn nim(to: u64) -> Record {
    let values: Vec<u16> = (0..=u16::MAX).zip(0..to).map(|(value, _)| value).collect();
    let max_value = values.last().copied().unwrap_or(0);
    let mut chain = DigestChain::new();
    chain.update(&values);
    Record {
        format: FORMAT.into(),
        program: crate::PROGRAM.into(),
        game: Rule::nim().name().into(),
        to,
        time_limit: None,
        status: Status::Proved,
        period: Some(1),
        preperiod: Some(0),
        saltus: 1,
        max_value,
        max_at: max_value.into(),
        mask: 0,
        position: 0,
        rares: None,
        last_rare: None,
        theorem: None,
        checked_through: values.len() as u64,
        digest: chain.digest().to_string(),
    }
}

/// Whether a file of a survey with this name is a record.
pub(super) fn is_record_name(name: &str) -> bool {
    is_unicode(name) && Path::new(name).extension().is_some_and(|extension| extension == EXTENSION)
}

/// Returns the name of a game's file.
pub(super) fn file_name(rule: &Rule, extension: &str) -> String {
    format!("{}.{extension}", rule.directory_name())
}

/// Sort key of a game in a table: by the digit before the point, then digit by digit; names that are not codes come
/// last.
pub type Order = (bool, String);

pub(crate) fn order(game: &str) -> Order {
    (!game.contains('.'), game.to_owned())
}

/// Whether the first of two records of a game ranks before the second: by a proof, then by the number of values.
pub(super) fn further(a: &Record, b: &Record) -> bool {
    let rank = |r: &Record| (r.status == Status::Proved, r.checked_through);
    rank(a) > rank(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::Method;
    use crate::survey::{TO, examine};
    use std::sync::atomic::AtomicBool;

    /// The published period of Kayles is 12, its preperiod 71. Treblecross (.007) was searched without one.
    #[test]
    fn records_that_contradict_the_catalogue_are_refused() {
        let rule: Rule = "0.77".parse().unwrap();
        let record = examine(&rule, Method::default(), TO, &AtomicBool::new(false)).unwrap().unwrap();
        assert_eq!((record.period, record.preperiod), (Some(12), Some(71)));
        record.check(&rule).unwrap();
        for (period, preperiod) in [(24, 71), (12, 72)] {
            let wrong = Record { period: Some(period), preperiod: Some(preperiod), ..record.clone() };
            assert!(matches!(wrong.check_with_catalogue(&rule), Err(Error::ContradictsCatalogue { .. })));
            assert!(wrong.check(&rule).unwrap_err().contains("known to be 12, from n = 71 on"));
        }
        let treblecross: Rule = "0.007".parse().unwrap();
        let short = Record { game: "0.007".into(), period: Some(50), preperiod: Some(950), ..record.clone() };
        assert!(short.check_with_catalogue(&treblecross).unwrap_err().to_string().contains("no period was found"));
        let long = Record { period: Some(1 << 50), ..short };
        long.check_with_catalogue(&treblecross).unwrap();
    }
}

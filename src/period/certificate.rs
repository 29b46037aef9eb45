//! Writes and checks certificates: files that state a proved period and can be checked without trusting the program
//! that wrote them.
//!
//! A certificate states a rule, a period and preperiod, the theorem of [`super`] with the numbers that it was applied
//! to, and the digest of the values that were compared. It is checked in two steps, and nothing in it is taken on
//! trust.
//!
//! [`Certificate::judge`] checks everything that can be checked before a value is computed: the form of each field,
//! that `least` lists the prime factors of the period, that `checked_through` is the number of values that the
//! theorem needs, that the window of P4 is placed as P4 requires. [`Certificate::check`] then takes values that were
//! computed from the rule alone. It compares digest and largest value, compares the period value by value, and looks
//! up the witnesses that p and n0 are the least. For the window theorem it also computes the values from n1 to n2
//! once more, counts the rare positions and checks the depth of the witnesses.
//!
//! The file is one JSON object with these keys, and no others:
//!
//! - `format`: `grundy-certificate-1`; `program`: name and version of the program that wrote it, at most 128
//!   characters, for information only; `seal`: BLAKE3 of the object with an empty seal, which distinguishes an
//!   altered file from a wrong one;
//! - `game`, `rule`: name, and digest of the moves (as in the journal);
//! - `period`, `preperiod`, `max_value`, `max_at`: the result;
//! - `theorem`: `P1` to `P4`; `from`: n0, at least 1 (P1, P3), or n1 (P4);
//! - `checked_through`, `digest`: number of values needed, and their digest ([`crate::table::digest`]);
//! - `least`: for each prime factor f of the period `[f, n]` with n >= preperiod and G(n + period/f) != G(n);
//! - `window`: null, or for P4 `to` (n2), `mask`, `position` (the space), `rares` (number of rare positions below
//!   n2), `last_rare` (the last of them), `rares_digest` (BLAKE3 of all of them as n (u64) and G(n) (u16), little
//!   endian) and `depth` (D).
//!
//! **What is compared.** Three numbers can have several correct values, and each is checked as a statement. All other
//! numbers have one correct value, and are compared with it. A witness in `least` may be any n that satisfies the
//! inequality. `from` of P4 may be any n1 for which the premises hold, up to the bound below.
//! `depth` states that each rare value below a G(n) has a witness *at most* D deep. A D that is larger than necessary
//! is a true statement, and the conditions on n1, n2 and the window are evaluated with it. A D that is too small is
//! refused, with an n that has no witness within it (`period::depth`).
//!
//! **The bound of `from` for P4.** Let L be the lookback of the solver for the last rare position, d the greatest
//! difference of the rule, and B = max(preperiod + L, 2 L + d, n2 - n1). A search of a whole table takes n1 <=
//! max(preperiod, L) + L + d <= 2 B. A run that is watched from its first value on remembers the window before each
//! power of two. At the first power of two n1 >= B the window lies after the preperiod, n1 is placed as P4 requires,
//! and the window recurs at n2 <= 2 n1, before it is replaced; so n1 < 2 B. For a run that discards values and has no
//! waypoints, such a watch finds the window of the proof (`period::preperiod`). A deep witness or a space that is
//! replaced late can cost it a few doublings, so `MAX_WINDOW_FACTOR` times B is allowed. [`Certificate::new`] creates
//! no certificate beyond this bound, and one that exceeds it is refused.
//!
//! Invariant: a certificate that passes the check states the premises of a theorem, and each premise was found true.

mod check;

use super::facts::CertifiedFacts;
use super::primes::prime_factors;
use super::{OffsetCopies, PeriodWindow, Proof, Repeat, Subject, Theorem};
use crate::error::{Error, Result, printable};
use crate::solver::{self, SparseSpace};
use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

/// Value of the field `format`.
const FORMAT: &str = "grundy-certificate-1";

/// Maximum length of a certificate's file, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of characters of `program`.
const LONGEST_PROGRAM: usize = 128;

/// Maximum ratio of n1 of P4 to B of the module head.
const MAX_WINDOW_FACTOR: u64 = 16;

/// A proved period with the facts that a check needs: one field per JSON key, in the order of the file.
///
/// ```
/// use grundy::period::{MemorySearch, certificate::Certificate};
/// use grundy::solver::{self, Method};
/// use grundy::{kernel::Kernel, theory::rule::Rule};
///
/// let (kayles, method): (Rule, _) = ("kayles".parse()?, Method::Sparse(Kernel::best()));
/// let mut search = MemorySearch::new(&kayles, method);
/// search.until_proved(1 << 20, |_| true)?;
/// let repeat = search.finding().and_then(|finding| finding.repeat.as_ref()).expect("Kayles is periodic");
/// let certificate = Certificate::new(search.subject(), repeat, None)?.expect("the period is proved");
///
/// // A check needs nothing but the file: the values are computed again from the rule.
/// let certificate = Certificate::parse(certificate.to_json())?;
/// let rule = certificate.judge()?;
/// let count = certificate.checked_through.try_into().expect("a small number");
/// certificate.check(method, &solver::values(&rule, method, count)?)?;
/// # Ok::<(), grundy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The format of the file, `grundy-certificate-1`.
    pub format: String,
    /// Name and version of the program that wrote the file, 1 to 128 characters; for information only.
    pub program: String,
    /// Canonical name of the game.
    pub game: String,
    /// Digest of the rule ([`Rule::digest`]), 64 lowercase hexadecimal digits.
    pub rule: String,
    /// The theorem that proves the period.
    pub theorem: Theorem,
    /// The least period p, at least 1.
    pub period: u64,
    /// The least preperiod n0.
    pub preperiod: u64,
    /// The n from which the theorem is applied: max(n0, 1) for P1 and P3, n0 for P2, n1 for P4.
    pub from: u64,
    /// Number of values that the proof needs, those of n < `checked_through`.
    pub checked_through: u64,
    /// Digest of these values ([`crate::table::digest`]), 64 lowercase hexadecimal digits.
    pub digest: String,
    /// The largest of these values.
    pub max_value: u16,
    /// The least n with G(n) = `max_value`; 0 if all values are 0.
    pub max_at: u64,
    /// Pairs (f, n): each prime factor f of p, ascending, with an n >= n0 such that G(n + p/f) != G(n).
    pub least: Vec<(u64, u64)>,
    /// The window of P4; `None` (`null` in the file) for the other theorems.
    pub window: Option<WindowFacts>,
    /// BLAKE3 of the whole file with an empty string as seal, 64 lowercase hexadecimal digits.
    pub seal: String,
}

/// The window to which P4 was applied: one field per JSON key, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowFacts {
    /// n2: n1 + p.
    pub to: u64,
    /// Mask m of the sparse space.
    pub mask: u16,
    /// Position term e of the sparse space, 0 or 1.
    pub position: u8,
    /// Number of rare positions below n2, n = 0 included.
    pub rares: u64,
    /// The last rare position below n2.
    pub last_rare: u64,
    /// BLAKE3 of all rare positions below n2, ascending, each as n (u64) and G(n) (u16), little-endian.
    pub rares_digest: String,
    /// D, in tokens: for n1 <= n < n2, each rare value below G(n) has a witness whose smaller part is at most D.
    pub depth: u64,
}

impl Certificate {
    /// Creates the certificate of a proved repetition. Returns `None` when it is not proved, when its preperiod is
    /// only bounded, when values are discarded and `copies` is `None` or has no witness for a prime factor of the
    /// period, when n1 of P4 exceeds the bound of the module head, or when the name of the rule is not the canonical
    /// name of its game.
    ///
    /// # Errors
    /// Errors of reading the values; all of them from 0 on are read, unless `copies` has their digest.
    /// [`Error::Certificate`] when the statements contradict each other, because memory has changed.
    pub fn new(subject: Subject<'_>, repeat: &Repeat, copies: Option<&OffsetCopies>) -> Result<Option<Certificate>> {
        let Some(Proof { theorem, from, length, window, least }) = repeat.proof.clone() else { return Ok(None) };
        if !repeat.exact || !window.is_none_or(|window| may_certify(subject.rule, repeat.preperiod, &window)) {
            return Ok(None);
        }
        if !subject.rule.is_named() {
            return Ok(None);
        }
        let space = window.map_or(SparseSpace::NONE, |window| window.space);
        let counted = match copies {
            Some(copies) => copies.counted.clone(),
            None if !subject.values.discarded().is_empty() => return Ok(None),
            None => CertifiedFacts::of(subject.values, length, space, window.map_or(0, |window| window.to))?,
        };
        // The two copies may have found no witness for a prime factor.
        if least.len() < prime_factors(repeat.period).len() {
            return Ok(None);
        }
        let window = window.map(|window| WindowFacts {
            to: window.to,
            mask: window.space.mask,
            position: window.space.position,
            rares: window.rare_positions,
            last_rare: window.last_rare,
            rares_digest: counted.rares_digest(),
            depth: window.depth,
        });
        let unsealed = Certificate {
            format: FORMAT.into(),
            program: crate::PROGRAM.into(),
            game: subject.rule.name().into(),
            rule: subject.rule.digest(),
            theorem,
            period: repeat.period,
            preperiod: repeat.preperiod,
            from,
            checked_through: length,
            digest: counted.digest,
            max_value: counted.stats.max_value,
            max_at: counted.stats.max_at,
            least,
            window,
            seal: String::new(),
        };
        let certificate = unsealed.sealed();
        // Statements that contradict each other would come from changed memory.
        certificate.judge()?;
        Ok(Some(certificate))
    }

    /// Returns the certificate with its seal recomputed.
    #[must_use]
    pub fn sealed(mut self) -> Certificate {
        self.seal = String::new();
        self.seal = blake3::hash(self.to_json().as_bytes()).to_hex().to_string();
        self
    }

    /// Returns the text of the certificate's file.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and text are JSON") + "\n"
    }

    /// Parses the text of a certificate's file.
    ///
    /// # Errors
    /// [`Error::Certificate`] when the text is not a certificate, or was altered.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Certificate> {
        let certificate: Certificate = serde_json::from_slice(text.as_ref()).map_err(|e| {
            refused(match e.classify() {
                Category::Data if !text.as_ref().trim_ascii_start().starts_with(b"{") => {
                    "it is not a certificate: not a JSON object".into()
                }
                Category::Data => format!("it is not a certificate of this program: {}", printable(&e.to_string())),
                _ => format!("it is not a certificate: not JSON at line {}, column {}", e.line(), e.column()),
            })
        })?;
        if certificate.format != FORMAT {
            let found = certificate.format.escape_default();
            return Err(refused(format!("its format is '{found}', not '{FORMAT}'")));
        }
        if certificate.clone().sealed().seal != certificate.seal {
            return Err(refused("it was altered: the seal does not match the other fields".into()));
        }
        if certificate.to_json().as_bytes() != text.as_ref() {
            return Err(refused(
                "its text was altered: its keys, spaces or line ends are not those that were sealed".into(),
            ));
        }
        Ok(certificate)
    }

    /// Returns the rule of the certificate's game.
    ///
    /// # Errors
    /// [`Error::Certificate`] when the name is not that of a game, or the digest is not that of its rule.
    pub fn the_rule(&self) -> Result<Rule> {
        let rule: Rule = self.game.parse().map_err(|e| refused(format!("its game: {e}")))?;
        if rule.name() != self.game {
            return Err(refused(format!("it names the game {rule} by another name")));
        }
        if rule.digest() != self.rule {
            return Err(refused(format!("the digest of its rule is not that of {rule}")));
        }
        Ok(rule)
    }
}

/// Returns the greatest n1 that a certificate of P4 may have, as derived in the module head; `None` when it exceeds
/// 64 bits.
fn max_window_start(rule: &Rule, preperiod: u64, window: &PeriodWindow) -> Option<u64> {
    let lookback = solver::lookback(rule, window.last_rare);
    let placed = lookback.checked_mul(2)?.checked_add(rule.max_difference())?;
    preperiod.checked_add(lookback)?.max(placed).max(window.to - window.from).checked_mul(MAX_WINDOW_FACTOR)
}

/// Whether a certificate of P4 may state this window.
pub(super) fn may_certify(rule: &Rule, preperiod: u64, window: &PeriodWindow) -> bool {
    max_window_start(rule, preperiod, window).is_some_and(|bound| window.from <= bound)
}

fn refused(what: String) -> Error {
    Error::Certificate { what }
}

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
//! **What is compared.** Every number is compared with the one true number, with three exceptions. These state
//! something that is true for more than one number, and are checked as statements. A witness in `least` may be any n
//! that satisfies the inequality. `from` of P4 may be any n1 for which the premises hold, up to the bound below.
//! `depth` states that witnesses lie *at most* D deep. A D that is larger than necessary is a true statement, and the
//! conditions on n1, n2 and the window are evaluated with it. A D that is too small is refused, with an n that has no
//! witness within it ([`super::depth`]).
//!
//! **The bound of `from` for P4.** Let L be the lookback of the solver for the last rare position, d the greatest
//! difference of the rule, and B = max(preperiod + L, 2 L + d, n2 - n1). A search of a whole table takes
//! n1 <= max(preperiod, L) + L + d <= 2 B. A run that is watched from its first value on remembers the window before
//! each power of two. At the first power of two n1 >= B the window lies after the preperiod, n1 is placed as P4
//! requires, and the window recurs at n2 <= 2 n1, before it is replaced; so n1 < 2 B. For a run that discards values,
//! such a watch finds the window of the proof ([`super::preperiod`]). A deep witness or a space that is replaced late
//! can cost it a few doublings, so [`MAX_WINDOW_FACTOR`] times B is allowed. [`Certificate::new`] creates no
//! certificate beyond this bound, and one that exceeds it is refused.
//!
//! Invariant: a certificate that passes the check states the premises of a theorem, and each premise was found true.

use super::primes::{are_prime_factors, prime_factors};
use super::{OffsetCopies, PeriodWindow, Proof, Repeat, Subject, Theorem, depth, has_zero, last_difference};
use crate::error::{Error, Result};
use crate::solver::{self, Method, SequenceStats, SparseSpace};
use crate::table::digest::{Digest, DigestChain};
use crate::theory::definition::{Prefix, Sequence, for_each_piece};
use crate::theory::rule::Rule;
use crate::verify;
use serde::{Deserialize, Serialize};

/// Value of the field `format`.
const FORMAT: &str = "grundy-certificate-1";

/// Maximum length of a certificate's file, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of characters of `program`.
const LONGEST_PROGRAM: usize = 128;

/// Maximum ratio of n1 of P4 to B of the module head.
const MAX_WINDOW_FACTOR: u64 = 16;

/// A proved period with the facts that a check needs; the module head describes each field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Certificate {
    pub format: String,
    pub program: String,
    pub game: String,
    pub rule: String,
    pub theorem: Theorem,
    pub period: u64,
    pub preperiod: u64,
    pub from: u64,
    pub checked_through: u64,
    pub digest: String,
    pub max_value: u16,
    pub max_at: u64,
    pub least: Vec<(u64, u64)>,
    pub window: Option<WindowFacts>,
    pub seal: String,
}

/// The window to which P4 was applied; the module head describes each field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct WindowFacts {
    pub to: u64,
    pub mask: u16,
    pub position: u8,
    pub rares: u64,
    pub last_rare: u64,
    pub rares_digest: String,
    pub depth: u64,
}

/// The facts that a certificate states about all values below `checked_through`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CertifiedFacts {
    digest: String,
    max_value: u16,
    max_at: u64,
    /// The rare positions below n2 under the certificate's space, with their values.
    rares: Vec<(u64, u16)>,
}

/// Collects [`CertifiedFacts`] from consecutive values.
pub(super) struct FactCounter {
    chain: DigestChain,
    space: SparseSpace,
    to: u64,
    counted: CertifiedFacts,
}

impl FactCounter {
    /// Creates a counter that collects the rare positions below `to` under `space`.
    pub(super) fn new(space: SparseSpace, to: u64) -> FactCounter {
        FactCounter { chain: DigestChain::new(), space, to, counted: CertifiedFacts::default() }
    }

    /// Receives the next values, those from `from` on.
    pub(super) fn see(&mut self, from: u64, values: &[u16]) {
        self.chain.update(values);
        for (n, &v) in (from..).zip(values) {
            if v > self.counted.max_value {
                self.counted.max_value = v;
                self.counted.max_at = n;
            }
        }
        if self.space != SparseSpace::NONE {
            let to = self.to;
            self.counted.rares.extend(self.space.rares(from, values).filter(|rare| rare.0 < to));
        }
    }

    pub(super) fn done(self) -> CertifiedFacts {
        CertifiedFacts { digest: self.chain.digest().to_string(), ..self.counted }
    }
}

impl CertifiedFacts {
    /// Collects the facts of the first `length` values, with the rare positions below `to` under `space`.
    pub(super) fn of<S: Sequence + ?Sized>(
        values: &S,
        length: u64,
        space: SparseSpace,
        to: u64,
    ) -> Result<CertifiedFacts> {
        let mut counting = FactCounter::new(space, to);
        for_each_piece(values, 0, length, |from, piece| {
            counting.see(from, piece);
            Ok(())
        })?;
        Ok(counting.done())
    }

    fn rares_digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (n, v) in &self.rares {
            hasher.update(&n.to_le_bytes());
            hasher.update(&v.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl Certificate {
    /// Creates the certificate of a proved repetition. Returns `None` when it is not proved, when its preperiod is
    /// only bounded, when values are discarded and `copies` is `None` or has no witness for a prime factor of the
    /// period, or when n1 of P4 exceeds the bound of the module head.
    ///
    /// # Errors
    /// Errors of reading the values; all of them from 0 on are read, unless `copies` has their digest.
    pub fn new<S: Sequence + ?Sized>(
        subject: Subject<'_, S>,
        repeat: &Repeat,
        copies: Option<&OffsetCopies>,
    ) -> Result<Option<Certificate>> {
        let Some(Proof { theorem, from, length, window, least }) = repeat.proof.clone() else { return Ok(None) };
        let near = |window: PeriodWindow| {
            max_window_start(subject.rule, repeat.preperiod, &window).is_some_and(|bound| from <= bound)
        };
        if !repeat.exact || !window.is_none_or(near) {
            return Ok(None);
        }
        let space = window.map_or(SparseSpace::NONE, |window| window.space);
        let counted = match copies {
            Some(copies) => copies.counted.clone(),
            None if !subject.values.freed().is_empty() => return Ok(None),
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
            rares: window.rares,
            last_rare: window.last_rare,
            rares_digest: counted.rares_digest(),
            depth: window.depth,
        });
        let certificate = Certificate {
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
            max_value: counted.max_value,
            max_at: counted.max_at,
            least,
            window,
            seal: String::new(),
        };
        Ok(Some(certificate.sealed()))
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
        let certificate: Certificate = serde_json::from_slice(text.as_ref())
            .map_err(|e| refused(format!("it is not a certificate of this program: {e}")))?;
        if certificate.format != FORMAT {
            let found = certificate.format.escape_default();
            return Err(refused(format!("its format is '{found}', not '{FORMAT}'")));
        }
        if certificate.clone().sealed().seal != certificate.seal {
            return Err(refused("it was altered: the seal does not match the other fields".into()));
        }
        Ok(certificate)
    }

    /// Returns the rule of the certificate's game.
    ///
    /// # Errors
    /// [`Error::Certificate`] when the name is not that of a game, or the digest is not that of its rule.
    pub fn the_rule(&self) -> Result<Rule> {
        let rule: Rule = self.game.parse().map_err(|e| refused(format!("its game: {e}")))?;
        if rule.name() != self.game || rule.digest() != self.rule {
            return Err(refused(format!("the digest of its rule is not that of {rule}")));
        }
        Ok(rule)
    }

    /// Checks everything that can be checked without values, and returns the rule. It is fast for every certificate,
    /// so it is called before the values are computed.
    ///
    /// # Errors
    /// [`Error::Certificate`] at the first statement that is false.
    pub fn judge(&self) -> Result<Rule> {
        self.must("format", self.format.as_str(), FORMAT)?;
        let length = self.program.chars().count();
        if length == 0 || length > LONGEST_PROGRAM || self.program.contains(char::is_control) {
            let what =
                format!("its program is not a text of 1 to {LONGEST_PROGRAM} characters without control characters");
            return Err(refused(what));
        }
        let rule = self.the_rule()?;
        is_digest("digest", &self.digest)?;
        let (n0, p, count) = (self.preperiod, self.period, self.checked_through);
        if p == 0 || n0.checked_add(p).is_none_or(|end| end > count) {
            return Err(refused(format!("its preperiod {n0} and period {p} do not fit checked_through, {count}")));
        }
        if self.max_at >= count || (self.max_value == 0) != (self.max_at == 0) {
            let (value, at) = (self.max_value, self.max_at);
            return Err(refused(format!(
                "its max_value {value} and max_at {at} do not fit each other and {count} values"
            )));
        }
        if !are_prime_factors(self.least.iter().map(|pair| pair.0), p) {
            return Err(refused(format!("its least does not list the prime factors of the period, {p}")));
        }
        for &(f, n) in &self.least {
            if n < n0 || n.checked_add(p / f).is_none_or(|end| end >= count) {
                return Err(refused(format!(
                    "its least names {n}, but {n} and {n} + {p}/{f} must lie in {n0}..{count}"
                )));
            }
        }
        match (&self.window, self.theorem) {
            (Some(facts), Theorem::P4) => self.judge_window(&rule, facts).map(|_| ()),
            (None, Theorem::P4) => Err(refused("its window is null, and P4 needs one".into())),
            (Some(_), theorem) => Err(refused(format!("its window is not null, and {theorem} has none"))),
            (None, _) => self.judge_bound(&rule),
        }?;
        Ok(rule)
    }

    /// Checks for P1 to P3 that `from` and `checked_through` are those of the theorem.
    fn judge_bound(&self, rule: &Rule) -> Result<()> {
        let Certificate { theorem, from, period, preperiod, checked_through, .. } = *self;
        let least = if theorem == Theorem::P2 { preperiod } else { preperiod.max(1) };
        if from != least {
            return Err(refused(format!("its from is {from}, but {theorem} with preperiod {preperiod} needs {least}")));
        }
        let needed = theorem.length(rule, from, period);
        let needed =
            needed.ok_or_else(|| refused(format!("its theorem {theorem} does not apply to {rule} from {from} on")))?;
        self.must("checked_through", &checked_through, &needed)
    }

    /// Checks for P4 the conditions on the window that do not involve values.
    fn judge_window(&self, rule: &Rule, facts: &WindowFacts) -> Result<PeriodWindow> {
        let WindowFacts { to, mask, position, rares, last_rare, depth, .. } = *facts;
        let no_space =
            || refused(format!("its window.mask {mask:#x} and window.position {position} are no space of {rule}"));
        let space = SparseSpace::new(rule, mask, position).ok_or_else(no_space)?;
        is_digest("window.rares_digest", &facts.rares_digest)?;
        let shift = if position == 1 && self.period % 2 == 1 { self.period.checked_mul(2) } else { Some(self.period) };
        let end = shift.and_then(|shift| self.from.checked_add(shift));
        let end = end.ok_or_else(|| refused(format!("its from {} and its period end beyond 2^64", self.from)))?;
        self.must("window.to", &to, &end)?;
        self.must("checked_through", &self.checked_through, &end)?;
        if last_rare >= self.from || rares == 0 || rares - 1 > last_rare {
            let what =
                format!("its window.rares {rares} and window.last_rare {last_rare} do not fit from, {}", self.from);
            return Err(refused(what));
        }
        let window = PeriodWindow { from: self.from, to, space, rares, last_rare, depth };
        if !window.is_placed(rule) {
            let what = format!(
                "its from {} is too small for window.last_rare {last_rare} and window.depth {depth}",
                self.from
            );
            return Err(refused(what));
        }
        let bound = max_window_start(rule, self.preperiod, &window);
        if bound.is_none_or(|bound| self.from > bound) {
            let needed =
                bound.map_or_else(String::new, |n| format!(", and {n} is the most that a period like this needs"));
            return Err(refused(format!("its from is {}{needed}", self.from)));
        }
        Ok(window)
    }

    /// Checks the whole certificate against the first values of the game, at least `checked_through` of them, which
    /// the caller has computed from the rule alone.
    ///
    /// # Errors
    /// [`Error::Certificate`] at the first statement that is false; errors of reading the values.
    pub fn check<S: Sequence + ?Sized>(&self, method: Method, values: &S) -> Result<()> {
        let rule = self.judge()?;
        let (n0, p, length) = (self.preperiod, self.period, self.checked_through);
        let all = Prefix { of: values, count: length };
        values.require(0, length)?;
        let window = self.window.as_ref().map(|facts| self.judge_window(&rule, facts)).transpose()?;
        let (space, to) = window.map_or((SparseSpace::NONE, 0), |window| (window.space, window.to));
        let counted = CertifiedFacts::of(&all, length, space, to)?;
        self.must("digest", &self.digest, &counted.digest)?;
        self.must("max_value", &self.max_value, &counted.max_value)?;
        self.must("max_at", &self.max_at, &counted.max_at)?;
        if let Some(n) = last_difference(&all, p, n0, length - p)? {
            return Err(refused(format!("its period is false: G({n}) and G({n} + {p}) are not equal")));
        }
        if n0 > 0 && last_difference(&all, p, n0 - 1, n0)?.is_none() {
            return Err(refused(format!("its preperiod {n0} is not the least: G({}) belongs to the period", n0 - 1)));
        }
        for &(f, n) in &self.least {
            if last_difference(&all, p / f, n, n + 1)?.is_none() {
                return Err(refused(format!("its least is false: G({n}) and G({n} + {p}/{f}) are equal")));
            }
        }
        if self.theorem == Theorem::P2 && has_zero(&all, self.from, self.from + p)? {
            return Err(refused("its theorem P2 does not apply: a zero lies in the period".into()));
        }
        match window {
            Some(window) => self.check_window(&rule, method, &all, &window, &counted),
            None => Ok(()),
        }
    }

    /// Checks for P4 the premises about values.
    fn check_window<S: Sequence + ?Sized>(
        &self,
        rule: &Rule,
        method: Method,
        values: &S,
        window: &PeriodWindow,
        counted: &CertifiedFacts,
    ) -> Result<()> {
        let Some(facts) = &self.window else { return Ok(()) };
        let PeriodWindow { from, to, space, depth, .. } = *window;
        self.must("window.rares", &facts.rares, &(counted.rares.len() as u64))?;
        self.must("window.last_rare", &facts.last_rare, &counted.rares.last().map_or(0, |rare| rare.0))?;
        self.must("window.rares_digest", &facts.rares_digest, &counted.rares_digest())?;
        let freed = SequenceStats::default();
        let subject = Subject { rule, method, space, values, freed: &freed };
        if !subject.windows_agree(window, 0)? {
            return Err(refused(format!(
                "its window is false: the {} values before {from} and {to} differ",
                window.width(rule)
            )));
        }
        if to - from != self.period && last_difference(values, self.period, from, from + self.period)?.is_some() {
            return Err(refused(format!("its period {} is odd and does not hold from {from} on", self.period)));
        }
        let known = SequenceStats { rares: counted.rares.clone(), max_value: self.max_value };
        let work = verify::recompute::check(rule, method, space, values, &known, from..to, |_, _| ())?;
        // The depth of the work only bounds that of the witnesses: it depends on the kernel, and does not cover
        // values computed by the definition.
        if (work.depth > depth || work.defined > 0)
            && let Some((n, value)) = depth::first_deeper(rule, space, values, from..to, depth)?
        {
            return Err(refused(format!(
                "its window.depth {depth} is false: no option of {n} with a part of at most {depth} has the value {value}"
            )));
        }
        Ok(())
    }

    fn must<T: PartialEq + std::fmt::Debug + ?Sized>(&self, what: &str, says: &T, is: &T) -> Result<()> {
        if says == is { Ok(()) } else { Err(refused(format!("its {what} is {says:?}, but {is:?} is right"))) }
    }
}

/// Returns the greatest n1 that a certificate of P4 may have, as derived in the module head; `None` when it exceeds
/// 64 bits.
fn max_window_start(rule: &Rule, preperiod: u64, window: &PeriodWindow) -> Option<u64> {
    let lookback = solver::lookback(rule, window.last_rare);
    let placed = lookback.checked_mul(2)?.checked_add(rule.max_difference())?;
    preperiod.checked_add(lookback)?.max(placed).max(window.to - window.from).checked_mul(MAX_WINDOW_FACTOR)
}

fn is_digest(what: &str, text: &str) -> Result<()> {
    match Digest::parse(text) {
        Some(_) => Ok(()),
        None => Err(refused(format!("its {what} is not 64 hexadecimal digits"))),
    }
}

fn refused(what: String) -> Error {
    Error::Certificate { what }
}

//! Certificates: what was proved, in a file that can be checked without trusting who made it.
//!
//! A certificate states a rule, a period and preperiod, the theorem of [`super`] and what it was applied with, and the
//! digest of the values that were compared. [`Certificate::check`] is given values that were computed anew and believes
//! nothing: it compares digest and period value by value, looks up the witnesses that p and n0 are the least, evaluates the
//! bound of the theorem, and for the window theorem computes the heaps from n1 to n2 once more and counts the rares.
//!
//! The file is one JSON object with these keys, and no others:
//!
//! - `format`: `grundy-certificate-1`; `program`: what made it; `seal`: BLAKE3 of the object with an empty seal, so that an
//!   altered file is told from a wrong one;
//! - `game`, `rule`: name, and digest of the moves (as in the journal);
//! - `period`, `preperiod`, `max_value`, `max_at`: the result;
//! - `theorem`: `P1` to `P4`; `from`: n0, at least 1 (P1, P3), or n1 (P4);
//! - `checked_through`, `digest`: how many values were needed, and their digest ([`crate::digest`]);
//! - `least`: for each prime factor f of the period `[f, n]` with n >= preperiod and G(n + period/f) != G(n);
//! - `window`: null, or for P4 `to` (n2), `mask`, `position` (the space), `rares`, `last_rare`, `rares_digest` (number of
//!   rare heaps below n2, the last, BLAKE3 of all of them as n (u64) and G(n) (u16), little endian) and `depth` (D).
//!
//! Invariant: a certificate that passes states a theorem's premises, each of which was found true.

use super::{Lag, Proof, Repeat, Subject, Theorem, Window, has_zero, last_difference, prime_factors};
use crate::definition::{First, Sequence, for_each_piece};
use crate::digest::Chain;
use crate::error::{Error, Result};
use crate::journal::rule_digest;
use crate::rule::Rule;
use crate::sparse::{Known, Method, Space};
use crate::verify;
use serde::{Deserialize, Serialize};

/// The format that this program writes and reads.
const FORMAT: &str = "grundy-certificate-1";

/// A statement that can be checked; the module head describes each field.
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

/// What P4 was applied to; the module head describes each field.
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

/// What a certificate says of all values that it speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    digest: String,
    max_value: u16,
    max_at: u64,
    /// Of the space, below n2.
    rares: Vec<(u64, u16)>,
}

/// Counts values as they go by.
pub(super) struct Counting {
    chain: Chain,
    space: Space,
    to: u64,
    counted: Counted,
}

impl Counting {
    /// Of rare values those below `to` in `space` will be counted.
    pub(super) fn new(space: Space, to: u64) -> Counting {
        Counting { chain: Chain::new(), space, to, counted: Counted::default() }
    }

    /// Takes the next values, those from heap `from` on.
    pub(super) fn see(&mut self, from: u64, values: &[u16]) {
        self.chain.update(values);
        for (n, &v) in (from..).zip(values) {
            if v > self.counted.max_value {
                (self.counted.max_value, self.counted.max_at) = (v, n);
            }
        }
        if self.space != Space::NONE {
            let to = self.to;
            self.counted.rares.extend(self.space.rares(from, values).filter(|rare| rare.0 < to));
        }
    }

    pub(super) fn done(self) -> Counted {
        Counted { digest: self.chain.digest().to_string(), ..self.counted }
    }
}

impl Counted {
    /// Counts the first `length` values, and the rare ones below `to` in `space`.
    pub(super) fn of<S: Sequence + ?Sized>(values: &S, length: u64, space: Space, to: u64) -> Result<Counted> {
        let mut counting = Counting::new(space, to);
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
    /// The certificate of a repeat that is proved; `None` when it is not, or when of freed values no copy was looked at
    /// ([`Lag`]) that shows all that a certificate says.
    ///
    /// # Errors
    /// What reading the values gives: all of them from 0 on are digested, unless a copy was.
    pub fn new<S: Sequence + ?Sized>(
        subject: Subject<'_, S>,
        repeat: &Repeat,
        lag: Option<&Lag>,
    ) -> Result<Option<Certificate>> {
        let Some(Proof { theorem, from, length, window, least }) = repeat.proof.clone() else { return Ok(None) };
        let space = window.map_or(Space::NONE, |window| window.space);
        let counted = match lag {
            Some(lag) => lag.counted.clone(),
            None if !subject.values.freed().is_empty() => return Ok(None),
            None => Counted::of(subject.values, length, space, window.map_or(0, |window| window.to))?,
        };
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
            rule: rule_digest(subject.rule),
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

    /// The same with the seal that belongs to it.
    #[must_use]
    pub fn sealed(mut self) -> Certificate {
        self.seal = String::new();
        self.seal = blake3::hash(self.to_json().as_bytes()).to_hex().to_string();
        self
    }

    /// As it stands in a file.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and text are JSON") + "\n"
    }

    /// Reads what stands in a file.
    ///
    /// # Errors
    /// [`Error::Certificate`] when it is none, or was altered.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Certificate> {
        let certificate: Certificate = serde_json::from_slice(text.as_ref())
            .map_err(|e| refused(format!("it is no certificate of this program: {e}")))?;
        if certificate.format != FORMAT {
            let found = certificate.format.escape_default();
            return Err(refused(format!("its format is '{found}', not '{FORMAT}'")));
        }
        if certificate.clone().sealed().seal != certificate.seal {
            return Err(refused("it was altered: the seal does not agree with the rest".into()));
        }
        Ok(certificate)
    }

    /// The rule of the game that it speaks of.
    ///
    /// # Errors
    /// [`Error::Certificate`] when this program knows no such game, or another one by that name.
    pub fn the_rule(&self) -> Result<Rule> {
        let rule: Rule = self.game.parse().map_err(|e| refused(format!("its game: {e}")))?;
        if rule.name() != self.game || rule_digest(&rule) != self.rule {
            return Err(refused(format!("the digest of its rule is not that of {rule}")));
        }
        Ok(rule)
    }

    /// Checks everything it says against the game's first values, computed anew: at least `checked_through` of them.
    ///
    /// # Errors
    /// [`Error::Certificate`] at the first thing that is not so; what reading the values gives.
    pub fn check<S: Sequence + ?Sized>(&self, method: Method, values: &S) -> Result<()> {
        let rule = self.the_rule()?;
        let (n0, p, length) = (self.preperiod, self.period, self.checked_through);
        let all = First { of: values, count: length };
        all.require(0, length)?;
        values.require(0, length)?;
        if p == 0 || n0.checked_add(p).is_none_or(|end| end > length) {
            return Err(refused(format!("{length} values do not hold preperiod {n0} and period {p}")));
        }
        let facts = self.window.as_ref();
        let space = match facts {
            None => Space::NONE,
            Some(facts) => Space::new(&rule, facts.mask, facts.position)
                .ok_or_else(|| refused(format!("{rule} has no space {:#x}, {}", facts.mask, facts.position)))?,
        };
        let counted = Counted::of(&all, length, space, facts.map_or(0, |facts| facts.to))?;
        self.must("digest", &self.digest, &counted.digest)?;
        self.must("max_value", &self.max_value, &counted.max_value)?;
        self.must("max_at", &self.max_at, &counted.max_at)?;
        if let Some(n) = last_difference(&all, p, n0, length - p)? {
            return Err(refused(format!("G({n}) and G({n} + {p}) are not equal")));
        }
        if n0 > 0 && last_difference(&all, p, n0 - 1, n0)?.is_none() {
            return Err(refused(format!("preperiod {n0} is not the least: G({}) belongs to the period", n0 - 1)));
        }
        let factors: Vec<u64> = self.least.iter().map(|pair| pair.0).collect();
        self.must("least", &factors, &prime_factors(p))?;
        for &(f, n) in &self.least {
            let there = n >= n0 && n.checked_add(p / f).is_some_and(|end| end < length);
            if !there || last_difference(&all, p / f, n, n + 1)?.is_none() {
                return Err(refused(format!("heap {n} does not show that {} is no period", p / f)));
            }
        }
        if self.theorem == Theorem::P4 {
            self.check_window(&rule, method, &all, space, &counted)
        } else {
            self.check_bound(&rule, &all)
        }
    }

    /// P1 to P3: what was compared suffices.
    fn check_bound<S: Sequence + ?Sized>(&self, rule: &Rule, values: &S) -> Result<()> {
        let Certificate { theorem, from, period, preperiod, checked_through, .. } = *self;
        let needed = theorem.length(rule, from, period);
        let needed = needed.ok_or_else(|| refused(format!("{theorem} says nothing of {rule} from {from} on")))?;
        self.must("checked_through", &checked_through, &needed)?;
        if from < preperiod || self.window.is_some() {
            return Err(refused(format!("{theorem} is applied from {from} on")));
        }
        if theorem == Theorem::P2 && has_zero(values, from, from + period)? {
            return Err(refused("a zero lies in the period".into()));
        }
        Ok(())
    }

    /// P4: the heaps from n1 to n2 anew.
    fn check_window<S: Sequence + ?Sized>(
        &self,
        rule: &Rule,
        method: Method,
        values: &S,
        space: Space,
        counted: &Counted,
    ) -> Result<()> {
        let Some(facts) = &self.window else { return Err(refused("P4 without a window".into())) };
        let shift = if space.position == 1 && self.period % 2 == 1 { 2 * self.period } else { self.period };
        let to = self.from.checked_add(shift).ok_or_else(|| refused("n2 is beyond all numbers".into()))?;
        self.must("window.to", &facts.to, &to)?;
        self.must("checked_through", &self.checked_through, &to)?;
        let last_rare = counted.rares.last().map_or(0, |rare| rare.0);
        self.must("window.rares", &facts.rares, &(counted.rares.len() as u64))?;
        self.must("window.last_rare", &facts.last_rare, &last_rare)?;
        self.must("window.rares_digest", &facts.rares_digest, &counted.rares_digest())?;
        let window = Window { from: self.from, to, space, rares: facts.rares, last_rare, depth: facts.depth };
        if last_rare >= self.from {
            return Err(refused(format!("heap {last_rare} between n1 and n2 is rare")));
        }
        let freed = Known::default();
        let subject = Subject { rule, method, space, values, freed: &freed };
        if !subject.windows_agree(&window, 0)? {
            return Err(refused(format!("the {} values before n1 and n2 are not as P4 asks", window.width(rule))));
        }
        if shift != self.period && last_difference(values, self.period, self.from, self.from + self.period)?.is_some() {
            return Err(refused("the odd period does not hold over one period".into()));
        }
        let known = Known { rares: counted.rares.clone(), max_value: self.max_value };
        let work = verify::recompute::check(rule, method, space, values, &known, self.from..to, |_, _| ())?;
        // How deep they are looked for is learnt, and may be another depth than that of the certificate; it has to do.
        let window = Window { depth: window.depth.max(work.depth), ..window };
        if work.defined > 0 || work.found_rare > 0 || !subject.windows_agree(&window, 0)? {
            return Err(refused(format!("witnesses lie as deep as {}, not {}", work.depth, facts.depth)));
        }
        Ok(())
    }

    fn must<T: PartialEq + std::fmt::Debug + ?Sized>(&self, what: &str, says: &T, is: &T) -> Result<()> {
        if says == is { Ok(()) } else { Err(refused(format!("its {what} is {says:?}, but {is:?} is right"))) }
    }
}

fn refused(what: String) -> Error {
    Error::Certificate { what }
}

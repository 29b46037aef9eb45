//! The two steps of checking a certificate: [`Certificate::judge`] without values, [`Certificate::check`] with them.

use super::{Certificate, FORMAT, LONGEST_PROGRAM, WindowFacts, max_window_start, refused};
use crate::error::Result;
use crate::period::depth;
use crate::period::facts::CertifiedFacts;
use crate::period::finder::{Subject, has_zero};
use crate::period::primes::are_prime_factors;
use crate::period::search::last_difference;
use crate::period::theorems::{PeriodWindow, Theorem};
use crate::solver::{Method, SequenceStats, SparseSpace};
use crate::table::digest::Digest;
use crate::theory::definition::{Prefix, Sequence};
use crate::theory::rule::Rule;
use crate::verify::{Target, recompute};

impl Certificate {
    /// Checks everything that can be checked without values, and returns the rule. It is fast for every certificate,
    /// so it is called before the values are computed.
    ///
    /// # Errors
    /// [`Error::Certificate`](crate::Error::Certificate) at the first statement that is false.
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
        let n0 = self.preperiod;
        let p = self.period;
        let count = self.checked_through;
        if p == 0 || n0.checked_add(p).is_none_or(|end| end > count) {
            return Err(refused(format!("its preperiod {n0} and period {p} do not fit checked_through, {count}")));
        }
        if self.max_at >= count || (self.max_value == 0) != (self.max_at == 0) {
            let value = self.max_value;
            let at = self.max_at;
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
        let least = theorem.start(preperiod);
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
        let end = self.from.checked_add(self.period);
        let end = end.ok_or_else(|| refused(format!("its from {} and its period end beyond 2^64", self.from)))?;
        self.must("window.to", &to, &end)?;
        self.must("checked_through", &self.checked_through, &end)?;
        if last_rare >= self.from || rares == 0 || rares - 1 > last_rare {
            let what =
                format!("its window.rares {rares} and window.last_rare {last_rare} do not fit from, {}", self.from);
            return Err(refused(what));
        }
        let window = PeriodWindow { from: self.from, to, space, rare_positions: rares, last_rare, depth };
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
    /// [`Error::Certificate`](crate::Error::Certificate) at the first statement that is false; errors of reading the
    /// values.
    pub fn check(&self, method: Method, values: &dyn Sequence) -> Result<()> {
        let rule = self.judge()?;
        let n0 = self.preperiod;
        let p = self.period;
        let length = self.checked_through;
        let all = Prefix { of: values, count: length };
        values.require(0, length)?;
        let window = self.window.as_ref().map(|facts| self.judge_window(&rule, facts)).transpose()?;
        let (space, to) = window.map_or((SparseSpace::NONE, 0), |window| (window.space, window.to));
        let counted = CertifiedFacts::of(&all, length, space, to)?;
        self.must("digest", &self.digest, &counted.digest)?;
        self.must("max_value", &self.max_value, &counted.stats.max_value)?;
        self.must("max_at", &self.max_at, &counted.stats.max_at)?;
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
        let Some(window) = window else { return Ok(()) };
        let subject = Subject { rule: &rule, method, space, values: &all, freed: &SequenceStats::default() };
        self.check_window(subject, &window, &counted)
    }

    /// Checks for P4 the premises about values.
    fn check_window(&self, subject: Subject<'_>, window: &PeriodWindow, counted: &CertifiedFacts) -> Result<()> {
        let Some(facts) = &self.window else { return Ok(()) };
        let Subject { rule, method, space, values, .. } = subject;
        let PeriodWindow { from, to, depth, .. } = *window;
        let stats = &counted.stats;
        self.must("window.rares", &facts.rares, &(stats.rare_positions.len() as u64))?;
        self.must("window.last_rare", &facts.last_rare, &stats.last_rare())?;
        self.must("window.rares_digest", &facts.rares_digest, &counted.rares_digest())?;
        if !subject.windows_agree(window, 0)? {
            return Err(refused(format!(
                "its window is false: the {} values before {from} and {to} differ",
                window.width(rule)
            )));
        }
        let work = recompute::check(Target { rule, space, values, stats }, method, from..to, |_, _| ())?;
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
        if says == is { Ok(()) } else { Err(refused(format!("its {what} is {says:?}, but {is:?} was expected"))) }
    }
}

fn is_digest(what: &str, text: &str) -> Result<()> {
    match text.parse::<Digest>() {
        Ok(_) => Ok(()),
        Err(_) => Err(refused(format!("its {what} is not 64 hexadecimal digits"))),
    }
}

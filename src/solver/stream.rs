//! Computes values in chunks, and retains only those that later values depend on.
//!
//! A game with a sparse space needs its first values and the last [`Solver::lookback`] values, until a rare position or
//! a value without a near witness appears: then the solver needs every value before it. Such positions are frequent at
//! first and may appear at any later n. So the stream retains every value at first, and discards values
//! only beyond [`WHOLE`] values and the last known rare position of the game. If the solver needs discarded values
//! after that, at n, the stream computes the game again from G(0), and retains every value up to [`GROWTH`] times n
//! before it discards any. Therefore all restarts together compute less than GROWTH / (GROWTH - 1) times as many values
//! as the stream has.
//!
//! Before the stream discards values, before it computes the game again, and at the end, it checks the memory of the
//! solver. The values that it computes again must have the checksum of those that it has handed out.
//!
//! Invariant: the solver proves every value from values that are retained. Each value is handed out once, in order.

use super::checksums::SequenceSum;
use super::ends::{Ends, LOOKBACKS_RETAINED};
use super::{Method, Solver};
use crate::error::{Error, Result};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::fmt;

/// Minimum number of values that are computed before any is discarded, and of first values that are never discarded. A
/// run retains as many.
const WHOLE: u64 = 1 << 26;

/// Ratio of the number of values that a restart retains to the n that needed discarded values.
const GROWTH: u64 = 4;

/// Computes the values of a game in order and hands them out in chunks. Memory stays bounded by what the game needs.
///
/// ```
/// use grundy::{Method, Rule, ValueStream};
///
/// let grundy: Rule = "grundy".parse()?;
/// let (mut largest, mut at) = (0, 0);
/// let mut stream = ValueStream::new(&grundy, Method::default(), 100_000)?;
/// while let Some((from, values)) = stream.next_chunk()? {
///     for (n, &value) in (from..).zip(values) {
///         if value > largest {
///             (largest, at) = (value, n);
///         }
///     }
/// }
/// assert_eq!((largest, at), (230, 45_668));
/// # Ok::<(), grundy::Error>(())
/// ```
///
/// # Memory
/// Two bytes per retained value, and the solver's own windows: with a sparse space two or three bytes per value of
/// [`Solver::lookback`], and up to a third more, because a window drops forgotten items a quarter at a time; without a
/// sparse space four to five bytes per value, and six to eight once a value exceeds 255 ([`Method::Definition`]: two).
/// If a move leaves three heaps or the code repeats, a set of nim-values is held for each n: kilobytes where the values
/// are in the thousands. The retained values are:
///
/// - a game with a sparse space: every value up to 2^26 (128 MiB) or the last known rare position of the game
///   ([`Rule::known_last_rare`]), then these and at least twice [`Solver::lookback`] last values. Grundy's
///   game to 10^9 needs 520 MB in all;
/// - a game without splits: as many values as its largest removal, at most half as many again, and 2^22 values;
/// - any other game, and [`Method::Definition`]: every value, because each new value depends on all of them.
///
/// If a game needs discarded values, for a rare position at n, the stream computes all values before n again and
/// retains up to 4 n values from then on (8 n bytes). The values handed out stay the same.
///
/// # Threads
/// The stream computes with the threads of the rayon pool in which [`ValueStream::next_chunk`] is called.
pub struct ValueStream {
    rule: Rule,
    method: Method,
    to: u64,
    solver: Solver,
    past: Ends,
    /// Number of values that are computed before any is discarded; these are never discarded.
    whole: u64,
    /// The values of the last batch; `past` ends with them.
    fresh: Vec<u16>,
    /// Number of values handed out.
    handed_out: u64,
    /// The checksum of the values computed since G(0).
    computed: SequenceSum,
    /// The same before the stream began again at G(0); `None` once as many values are computed.
    before: Option<SequenceSum>,
    /// The error that ended the solver, to be acted on after the values before it are handed out.
    error: Option<Error>,
    /// Whether an error was returned.
    failed: bool,
}

impl ValueStream {
    /// A stream of the values G(0) to G(`to` - 1).
    ///
    /// # Errors
    /// Those of [`Solver::new`].
    pub fn new(rule: &Rule, method: Method, to: u64) -> Result<ValueStream> {
        let known = rule.known_last_rare().filter(|&n| n < to).map_or(0, |n| n + 1);
        ValueStream::retaining(rule, method, to, WHOLE.max(known))
    }

    /// A stream that retains every value until it has `whole` of them, and never discards these.
    fn retaining(rule: &Rule, method: Method, to: u64, whole: u64) -> Result<ValueStream> {
        let has_splits = rule.has_splits();
        let past = Ends::new(if has_splits { whole } else { 0 });
        let solver = Solver::new(rule, method, None, &past)?;
        Ok(ValueStream {
            rule: rule.clone(),
            method,
            to,
            solver,
            past,
            whole: if has_splits { whole } else { 0 },
            fresh: Vec::new(),
            handed_out: 0,
            computed: SequenceSum::default(),
            before: None,
            error: None,
            failed: false,
        })
    }

    /// The next values, in order and without a gap: the n of the first one, and the values. `None` after the last
    /// value, and after an error.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`] at a value above 65535, [`Error::Unlisted`] at a heap that a repeating code does not
    /// cover, [`Error::Memory`] if the retained values do not fit in memory, and [`Error::Flipped`],
    /// [`Error::Differs`] or [`Error::OptionsDiffer`] if a check of the solver fails.
    /// After a failed check, the values handed out since the one before may be wrong. Otherwise those handed out before
    /// the error are proved.
    pub fn next_chunk(&mut self) -> Result<Option<(u64, &[u16])>> {
        while self.handed_out < self.to && !self.failed {
            if let Err(error) = self.advance() {
                self.failed = true;
                return Err(error);
            }
            let end = self.past.len();
            if end > self.handed_out {
                // After a restart, a batch may begin with values that were handed out before.
                let from = self.handed_out;
                let fresh = self.fresh.len() - index(end - from);
                self.handed_out = end;
                return Ok(Some((from, &self.fresh[fresh..])));
            }
        }
        Ok(None)
    }

    /// Computes one batch. An error of the solver is kept for the next call, because the values before it are proved.
    fn advance(&mut self) -> Result<()> {
        if let Some(error) = self.error.take() {
            // A changed bit may be the cause.
            self.solver.check_memory(&self.past)?;
            match error {
                Error::Discarded { .. } => self.restart()?,
                error => return Err(error),
            }
        }
        self.fresh.clear();
        self.error = self.solver.advance(&self.past, self.to, &mut self.fresh).err();
        self.compare_again()?;
        self.past.push(&self.fresh)?;
        let needed = self.needed().filter(|&needed| self.past.len() >= self.whole && self.past.is_due(needed));
        if needed.is_some() || self.past.len() >= self.to {
            self.solver.check_memory(&self.past)?;
        }
        if let Some(needed) = needed {
            self.solver.prepare_discard(self.past.len() - needed);
            self.past.free(needed);
        }
        Ok(())
    }

    /// Adds the values of the last batch to the checksum, and compares it where they were computed before.
    ///
    /// # Errors
    /// [`Error::Flipped`] if they differ.
    fn compare_again(&mut self) -> Result<()> {
        let missing = self.before.map_or(0, |before| before.count() - self.computed.count());
        let (again, new) = self.fresh.split_at(index(missing.min(self.fresh.len() as u64)));
        self.computed.add(again);
        if let Some(before) = self.before.take_if(|before| before.count() == self.computed.count())
            && before != self.computed
        {
            return Err(Error::Flipped { what: "a value computed again", from: 0, to: before.count() });
        }
        self.computed.add(new);
        Ok(())
    }

    /// Number of last values to retain besides the first; `None` for all values.
    fn needed(&self) -> Option<u64> {
        if !self.rule.has_splits() {
            return Some(self.rule.max_remove());
        }
        self.solver.lookback().map(|values| values.saturating_mul(LOOKBACKS_RETAINED))
    }

    /// Begins again at G(0), and retains more values than before.
    fn restart(&mut self) -> Result<()> {
        let computed = std::mem::take(&mut self.computed);
        self.before = self.before.or(Some(computed));
        self.whole = self.past.len().saturating_mul(GROWTH);
        self.past = Ends::new(self.whole);
        self.solver = Solver::new(&self.rule, self.method, None, &self.past)?;
        Ok(())
    }
}

impl fmt::Debug for ValueStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ValueStream");
        shown.field("rule", &self.rule.name()).field("handed_out", &self.handed_out).field("to", &self.to);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

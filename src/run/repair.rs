//! Repairs a table: computes values that disagree with the journal again.

use super::context::Context;
use super::reader::known_space;
use crate::checkpoint::journal::{CommitPoint, Record};
use crate::checkpoint::summary::DiscardSummary;
use crate::error::{Error, Result};
use crate::solver::Solver;
use crate::storage::Dir;
use crate::table::digest::DigestChain;
use crate::table::{Extent, Table};
use crate::theory::rule::Rule;
use std::sync::atomic::Ordering;

/// Opens the table of the record `last` with the counts of `point`; reads of the values that `summary` covers fail.
pub(super) fn open_at(
    dir: &Dir,
    last: &Record,
    point: Option<&CommitPoint>,
    summary: Option<&DiscardSummary>,
) -> Result<Table> {
    let committed = point.map_or(Extent::default(), |point| Extent { values: point.count, escapes: point.escapes });
    let mut table = Table::open(dir, last.width, committed)?;
    table.refuse_discarded(summary.map_or(0..0, DiscardSummary::discarded));
    Ok(table)
}

/// Values whose digest disagrees with a commit point.
pub(super) struct Damaged<'a> {
    pub(super) last: &'a Record,
    /// The commit points that agree.
    pub(super) before: &'a [CommitPoint],
    /// The first commit point that disagrees.
    pub(super) wrong: &'a CommitPoint,
    /// Digest chain of the values that agree.
    pub(super) chain: &'a DigestChain,
}

impl Damaged<'_> {
    /// Recomputes the values from the earlier ones and restores them, with their escapes, if they then agree with the
    /// journal; the damaged bytes are quarantined. Returns `false`, and writes nothing, if they disagree, or if no byte
    /// is damaged.
    pub(super) fn repair(&self, rule: &Rule, summary: Option<&DiscardSummary>, context: &mut Context) -> Result<bool> {
        let (from, to) = (self.chain.count(), self.wrong.count);
        let escapes = match self.before.last() {
            None if from == 0 => 0,
            Some(point) if from == point.count => point.escapes,
            _ => return Ok(false), // the end of the discarded values, where no record counts the escapes
        };
        if summary.is_some_and(|summary| from < summary.from && summary.from < to) {
            // No record states the digest at the beginning of the discarded values, because it was lost.
            return Ok(false);
        }
        // The discarded values lie either before or after the recomputed ones.
        let summary = summary.filter(|summary| summary.from < from);
        let start = CommitPoint { count: from, escapes, digest: self.chain.digest() };
        let table = open_at(context.dir, self.last, Some(&start), summary)?;
        let space = known_space(rule, self.last);
        let known = summary.map(DiscardSummary::known).unwrap_or_default();
        let mut solver = match Solver::knowing(rule, context.options.method, space, &table, &known) {
            Err(Error::Discarded { .. }) => return Ok(false),
            solver => solver?,
        };
        let mut values = Vec::new();
        if context.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match solver.extend_after(&table, &mut values, to, |_, _| !context.stop.load(Ordering::Relaxed)) {
            Err(Error::Discarded { .. } | Error::ValueTooLarge { .. }) => return Ok(false),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        let mut chain = self.chain.clone();
        chain.update(&values);
        let stored = table.stored(from, &values, escapes);
        if chain.digest() != self.wrong.digest || stored.escapes.end != self.wrong.escapes {
            return Ok(false);
        }
        let (altered_values, altered_escapes) = table.altered(&stored)?;
        let what = match (altered_values.is_empty(), altered_escapes.is_empty()) {
            (true, true) => return Ok(false),
            (false, true) => "values",
            (true, false) => "escapes",
            (false, false) => "values and escapes",
        };
        for name in table.quarantine(self.last.sequence, altered_values.clone(), altered_escapes.clone())? {
            let copy = context.dir.join(&name);
            context.observer.warn(&format!("the damaged bytes are kept in {}", copy.display()));
        }
        table.restore(&stored, (altered_values, altered_escapes))?;
        context.observer.warn(&format!(
            "{}: the {what} of {from}..{to} did not agree with the journal; they were recomputed and restored",
            context.dir.path().display()
        ));
        Ok(true)
    }
}

//! Repairs a table: computes values that disagree with the journal again.

use super::Observer;
use super::reader::space_of;
use super::resume::open_at;
use crate::checkpoint::journal::{CommitPoint, Record};
use crate::checkpoint::summary::DiscardSummary;
use crate::error::{Error, Result};
use crate::solver::{Method, Solver, SparseSpace};
use crate::storage::Dir;
use crate::table::digest::DigestChain;
use crate::theory::definition::Appended;
use crate::theory::rule::Rule;
use std::sync::atomic::{AtomicBool, Ordering};

/// Values that are not those that a point of the journal speaks of.
pub(super) struct Damaged<'a> {
    pub(super) last: &'a Record,
    /// The points that agree.
    pub(super) before: &'a [CommitPoint],
    /// The first that does not.
    pub(super) wrong: &'a CommitPoint,
    /// Of the values before.
    pub(super) chain: &'a DigestChain,
}

impl Damaged<'_> {
    /// Computes the values anew from those before, and puts them back when they are those that the journal speaks of;
    /// what stood there is kept. `false`, and nothing is written, when they are not, or the escapes are damaged as well.
    pub(super) fn repair(
        &self,
        dir: &Dir,
        rule: &Rule,
        method: Method,
        snapshot: Option<&DiscardSummary>,
        observer: &mut (dyn Observer + Send),
        stop: &AtomicBool,
    ) -> Result<bool> {
        let (from, to) = (self.chain.count(), self.wrong.count);
        let escapes = match self.before.last() {
            None if from == 0 => 0,
            Some(point) if from == point.count => point.escapes,
            _ => return Ok(false), // the end of what is freed, of which no record says how many escapes there were
        };
        // What is freed lies behind what is computed anew, or before it.
        let snapshot = snapshot.filter(|snapshot| snapshot.from < from);
        let start = CommitPoint { count: from, escapes, digest: self.chain.digest() };
        let table = open_at(dir, self.last, Some(&start), snapshot)?;
        let space = Some(space_of(rule, self.last)).filter(|&space| space != SparseSpace::NONE);
        let known = snapshot.map(DiscardSummary::known).unwrap_or_default();
        let mut solver = match Solver::knowing(rule, method, space, &table, &known) {
            Err(Error::Freed { .. }) => return Ok(false),
            made => made?,
        };
        let mut values = Vec::new();
        while from + (values.len() as u64) < to && !stop.load(Ordering::Relaxed) {
            let mut more = Vec::new();
            let past = Appended { first: &table, more: &values };
            match solver.advance(&past, to, &mut more) {
                Err(Error::Freed { .. } | Error::ValueTooLarge { .. }) => return Ok(false),
                advanced => advanced?,
            }
            values.append(&mut more);
        }
        let mut chain = self.chain.clone();
        chain.update(&values);
        let escapes = escapes..self.wrong.escapes.max(escapes);
        if chain.digest() != self.wrong.digest || !table.has_escapes(from, &values, escapes.clone())? {
            return Ok(false);
        }
        for name in table.quarantine(self.last.sequence, from..to, 0..0)? {
            observer.note(&format!("the damaged bytes are kept in {name}"));
        }
        table.restore(from, &values)?;
        observer.note(&format!(
            "the values {from}..{to} were not those that the journal speaks of; computed anew they are, and were put back"
        ));
        Ok(true)
    }
}

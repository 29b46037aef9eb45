//! The README.md of a publication.

use super::METADATA;
use super::verdict::Verdict;
use crate::cli::advice::quoted;
use crate::cli::layout::machine_names;
use crate::cli::published::MANIFEST;
use crate::cli::space::which_are_rare;
use grundy::checkpoint::journal::Origin;
use grundy::error::printable;
use grundy::publish::{Manifest, Publication};
use grundy::run::RunReader;
use grundy::solver::SparseSpace;
use grundy::theory::catalogue;
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use std::ops::Range;

/// The text of README.md.
pub(super) fn readme(manifest: &Manifest, names: &[String], run: &RunReader, publication: &Publication<'_>) -> String {
    let Manifest { game, count, digest, computed, max_value, max_at, mask, rares, last_rare, .. } = manifest;
    let (kernels, machines) =
        (Origin::kernels(&computed.origins).join(", "), machine_names(&Origin::machines(&computed.origins)));
    let confirmed = match manifest.confirmed_values() {
        0 => "no computation by another kernel on another machine is recorded here".to_owned(),
        values => format!("another kernel on another machine computed the first {values} values with equal digests"),
    };
    let verdicts = manifest.verified.iter().filter_map(|verdict| Verdict::of(verdict).ok());
    let checked: String = verdicts.map(|verdict| verdict.item()).collect();
    let rare = match run.space() {
        SparseSpace::NONE => "The run had no sparse space.".to_owned(),
        space => {
            let which = which_are_rare(space);
            format!("Rare positions: {rares}, the last at n = {last_rare} (mask {mask:#x}; {which}).")
        }
    };
    let comment = oeis_comment(manifest, run.space());
    let freed = freed_values(run.discarded());
    let others = [MANIFEST, METADATA];
    let files: String = names.iter().map(String::as_str).chain(others).map(|name| format!("- `{name}`\n")).collect();
    let Publication { licence, authors, date } = publication;
    let by = if authors.is_empty() { String::new() } else { format!(" by {}", printable(&authors.join(", "))) };
    format!(
        "# Nim-values of {game}\n\n\
         G(0), …, G({}), exact: {count} values. Largest value: {max_value}, first at n = {max_at}. \
         {rare}\n\n\
         - digest of all values: `{digest}`\n\
         - computed by {}, kernel {kernels}, on {machines}, {} s of computing time, {} failed checks\n\
         - confirmed: {confirmed}\n{checked}\
         - to compute the values again: `grundy run {} --to {count}`\n\
         - published{by} on {date}; licence of the data: <{}>\n\n\
         {freed}`{MANIFEST}` states the digest after every {} values and after all of them. Digest 0 is 32 zero bytes, \
         and digest i, after i segments of 2^24 values, is BLAKE3(digest i-1, BLAKE3(values of segment i as \
         little-endian 16-bit numbers)). \
         Two computations of the game are equal up to n if their digests after n values are; `grundy compare` finds the \
         first range between two digests in which they differ.\n\n{comment}## Files\n\n{files}",
        count - 1,
        computed.program,
        computed.seconds,
        computed.errors,
        quoted(game),
        printable(licence),
        manifest.segment,
    )
}

/// A draft of a comment for the OEIS, under a heading; empty if no sequence is known.
fn oeis_comment(manifest: &Manifest, space: SparseSpace) -> String {
    let Manifest { game, count, digest, computed, max_value, max_at, rares, last_rare, .. } = manifest;
    let sequence = game.parse::<Rule>().ok().and_then(|rule| catalogue::known(&rule).oeis);
    let Some(sequence) = sequence else { return String::new() };
    let number = sequence.number;
    let rare = match space {
        SparseSpace::NONE => String::new(),
        space => {
            format!(
                " {}: the number of rare n below {count} is {rares}, and the last of them is {last_rare}.",
                which_are_rare(space)
            )
        }
    };
    format!(
        "## A comment for the OEIS\n\n\
         {number} has the values of this game. Send the following comment only if it says more than the sequence does; \
         sign and date it.\n\n\
         > {number}: {sequence}, where G(n) is the nim-value of a heap of n in the game {game}. G(n) was computed for \
         n < {count}. The largest of these values is {max_value}, first at n = {max_at}.{rare} Computed by {}; BLAKE3 \
         digest of the values: {digest}.\n\n",
        computed.program
    )
}

/// Which values the run has freed, in words.
fn freed_values(Range { start, end }: Range<u64>) -> String {
    if start == end {
        return String::new();
    }
    format!(
        "The run has freed G({start}), …, G({}). `records.csv`, `rares.csv` and `histogram.csv` state what it found \
         among them before.\n\n",
        end - 1
    )
}

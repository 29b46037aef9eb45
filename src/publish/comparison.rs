//! Where two computations of the same game agree.

use super::manifest::{Confirmation, Manifest};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where two manifests agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Canonical name of the game.
    pub game: String,
    /// Number of values of each.
    pub counts: [u64; 2],
    /// The largest number of first values that have equal digests; 0 if there is none.
    pub agree: u64,
    /// Where they differ; null if they agree wherever both state a digest.
    pub differs: Option<Difference>,
    /// The kernels.
    pub kernels: [String; 2],
    /// The machines; null where they are not known.
    pub machines: [Option<String>; 2],
    /// Number of first values that another kernel on another machine computed with equal digests; 0 if the kernels or
    /// the machines are equal or not known, or the digests differ somewhere.
    pub confirmed: u64,
}

/// The first range that both describe and in which they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the segment in which the range lies or begins, from 0.
    pub segment: u64,
    /// First n of the range.
    pub from: u64,
    /// One past the last n of the range.
    pub to: u64,
}

/// Compares two manifests; `None` if they are of different games.
#[must_use]
pub fn compare(one: &Manifest, other: &Manifest) -> Option<Comparison> {
    if one.rule != other.rule {
        return None;
    }
    let theirs: BTreeMap<u64, &str> = other.points.iter().map(|(count, digest)| (*count, digest.as_str())).collect();
    let ours: BTreeMap<u64, &str> = one.points.iter().map(|(count, digest)| (*count, digest.as_str())).collect();
    let common = ours.iter().filter_map(|(count, digest)| Some((*count, theirs.get(count)? == digest)));
    let mut agree = 0;
    let mut differs = None;
    for (count, is_equal) in common.filter(|(count, _)| *count > 0) {
        if !is_equal {
            differs = Some(Difference { segment: agree / one.segment, from: agree, to: count });
            break;
        }
        agree = count;
    }
    let kernels = [one, other].map(|manifest| manifest.computed.kernel.clone());
    let machines = [one, other].map(|manifest| manifest.computed.machine.clone());
    let is_independent =
        kernels[0] != kernels[1] && machines[0].is_some() && machines[1].is_some() && machines[0] != machines[1];
    let confirmed = if is_independent && differs.is_none() { agree } else { 0 };
    let counts = [one.count, other.count];
    Some(Comparison { game: one.game.clone(), counts, agree, differs, kernels, machines, confirmed })
}

impl Comparison {
    /// Returns what the second manifest, `other`, confirms of the first; `None` if it confirms nothing.
    #[must_use]
    pub fn confirmation(&self, other: &Manifest) -> Option<Confirmation> {
        let (_, digest) = other.points.iter().find(|(count, _)| *count == self.confirmed && *count > 0)?;
        Some(Confirmation {
            values: self.confirmed,
            digest: digest.clone(),
            kernel: other.computed.kernel.clone(),
            machine: other.computed.machine.clone()?,
            program: other.computed.program.clone(),
        })
    }
}

//! Where two computations of the same game agree.

use super::manifest::{Confirmation, Manifest};
use crate::checkpoint::journal::{Origin, UNKNOWN_KERNEL};
use crate::checkpoint::machine::are_different;
use crate::solver::{self, Method};
use crate::table::digest::SEGMENT;
use crate::theory::rule::Rule;
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
    /// The first property that differs although all values are equal and determine it; null if there is none.
    pub contradiction: Option<&'static str>,
    /// The kernels of each.
    pub kernels: [Vec<String>; 2],
    /// The machines of each; null for values whose machine is not known.
    pub machines: [Vec<Option<String>>; 2],
    /// Number of first values that another kernel on another machine computed with equal digests; 0 if the digests
    /// differ somewhere.
    pub confirmed: u64,
    /// Why no more values are confirmed; null if all are that have equal digests.
    pub obstacle: Option<Obstacle>,
}

/// Why equal values do not confirm each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Obstacle {
    /// The values are not equal.
    Differs,
    /// No digest is known of both after the same number of values.
    NoCommonDigest,
    /// The same kernel, or the same code without a kernel, computed both.
    SameKernel,
    /// The machine of one of both is not known.
    UnknownMachine,
    /// The machine was the same, or may have been.
    SameMachine,
    /// One of both states a property that contradicts the values.
    Contradiction,
}

/// The first range that both describe and in which they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the segment of 2^24 values in which the range lies or begins, from 0.
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
    let common = || ours.iter().filter_map(|(count, digest)| Some((*count, theirs.get(count)? == digest)));
    let mut agree = 0;
    let mut differs = None;
    for (count, is_equal) in common().filter(|(count, _)| *count > 0) {
        if !is_equal {
            differs = Some(Difference { segment: agree / SEGMENT, from: agree, to: count });
            break;
        }
        agree = count;
    }
    let (short, long) = if one.count <= other.count { (one, other) } else { (other, one) };
    let contradiction = if agree == short.count { contradiction(short, long) } else { None };
    let origins = [one, other].map(|manifest| manifest.computed.origins.as_slice());
    let rule: Option<Rule> = one.game.parse().ok();
    let obstacle = |here: &Origin, there: &Origin| obstacle(rule.as_ref(), here, there);
    let (independent, obstacle) = first_dependent(origins[0], origins[1], obstacle);
    let points = common().map(|(count, _)| count).filter(|count| *count <= agree.min(independent));
    let (confirmed, obstacle) = match (differs, agree) {
        (Some(_), _) => (0, Some(Obstacle::Differs)),
        _ if contradiction.is_some() => (0, Some(Obstacle::Contradiction)),
        (None, 0) => (0, Some(Obstacle::NoCommonDigest)),
        _ => (points.max().unwrap_or(0), obstacle.filter(|_| independent < agree)),
    };
    let counts = [one.count, other.count];
    let (kernels, machines) = (origins.map(Origin::kernels), origins.map(Origin::machines));
    let game = one.game.clone();
    Some(Comparison { game, counts, agree, differs, contradiction, kernels, machines, confirmed, obstacle })
}

/// Returns the first property in which manifests contradict each other, where the values of `short` are the first
/// ones of `long`. The largest value and the last rare position are those of the shorter sequence, unless they lie
/// beyond it.
fn contradiction(short: &Manifest, long: &Manifest) -> Option<&'static str> {
    let has_equal_space = (short.mask, short.position) == (long.mask, long.position);
    let [has_new_maximum, has_new_rare] = [long.max_at, long.last_rare].map(|n| n >= short.count);
    let grows = |is_new: bool, short: u64, long: u64| if is_new { long > short } else { long == short };
    let properties = [
        ("max_value", grows(has_new_maximum, short.max_value.into(), long.max_value.into())),
        ("max_at", has_new_maximum || long.max_at == short.max_at),
        ("rares", !has_equal_space || grows(has_new_rare, short.rares, long.rares)),
        ("last_rare", !has_equal_space || has_new_rare || long.last_rare == short.last_rare),
    ];
    properties.into_iter().find_map(|(name, fits)| (!fits).then_some(name))
}

/// Returns the number of first values that both lists say were computed independently, and why the next one was not;
/// `None` if a list ends there. `obstacle` decides for the values of two origins.
pub(super) fn first_dependent(
    one: &[Origin],
    other: &[Origin],
    obstacle: impl Fn(&Origin, &Origin) -> Option<Obstacle>,
) -> (u64, Option<Obstacle>) {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut count = 0;
    while let (Some(here), Some(there)) = (one.peek(), other.peek()) {
        if let Some(obstacle) = obstacle(here, there) {
            return (count, Some(obstacle));
        }
        count = here.to.min(there.to);
        one.next_if(|origin| origin.to == count);
        other.next_if(|origin| origin.to == count);
    }
    (count, None)
}

/// Returns why equal values of two origins do not confirm each other, in a game of this rule.
pub(super) fn obstacle(rule: Option<&Rule>, one: &Origin, other: &Origin) -> Option<Obstacle> {
    let engine = rule.and_then(solver::engine::without_kernel);
    // What computed the values: the kernel, unless the game uses none.
    let by = |origin: &'_ Origin| match engine {
        Some(engine) if origin.kernel != Method::Definition.name() => engine.to_owned(),
        _ => origin.kernel.clone(),
    };
    match (&one.machine, &other.machine) {
        _ if by(one) == by(other) => Some(Obstacle::SameKernel),
        // The record that stated the kernel was lost. Any kernel can be the same.
        _ if [one, other].iter().any(|origin| origin.kernel == UNKNOWN_KERNEL) => Some(Obstacle::SameKernel),
        (Some(one), Some(other)) => (!are_different(one, other)).then_some(Obstacle::SameMachine),
        _ => Some(Obstacle::UnknownMachine),
    }
}

impl Comparison {
    /// Returns what the second manifest, `other`, confirms of the first; `None` if it confirms nothing.
    #[must_use]
    pub fn confirmation(&self, other: &Manifest) -> Option<Confirmation> {
        let (_, digest) = other.points.iter().find(|(count, _)| *count == self.confirmed && *count > 0)?;
        Some(Confirmation {
            values: self.confirmed,
            digest: digest.clone(),
            origins: other.computed.first(self.confirmed),
            program: other.computed.program.clone(),
        })
    }
}

//! Parts of a survey whose records the caller stores, and the division of games into parts.

use super::extent::Extent;
use super::families::representative;
use super::surveyor::{Records, Results, Surveyor};
use super::{Means, Record};
use crate::error::{Error, Result};
use crate::storage::Dir;
use crate::theory::rule::Rule;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// The games of a part of a survey whose records the caller stores.
pub(crate) struct Part<'a> {
    /// The directory for saved values.
    pub(crate) dir: &'a Dir,
    /// The games without a record.
    pub(crate) games: Vec<Rule>,
    /// Number of values of each game.
    pub(crate) to: u64,
    /// How they are computed.
    pub(crate) means: Means,
}

struct Write<F>(F);

impl<F: Fn(Record) -> Result<()> + Sync> Records for Write<F> {
    fn write(&self, _rule: &Rule, record: Record) -> Result<Option<Error>> {
        (self.0)(record).map(|()| None)
    }
}

/// Examines games and hands each record to `write`, in the order in which they are completed.
///
/// # Errors
/// Errors of `write` and of saved values.
pub(crate) fn examine_part(
    part: Part<'_>,
    stop: &AtomicBool,
    write: impl Fn(Record) -> Result<()> + Sync,
) -> Result<Results> {
    let surveyor = Surveyor {
        dir: part.dir,
        extent: Extent { to: part.to, time_limit: None },
        records: &Write(write),
        means: part.means,
        stop,
        progress: &|_| {},
        results: Mutex::default(),
    };
    surveyor.examine(part.games)
}

/// Divides games into this number of parts, some of which may be empty. Games with one standard form stay in one part.
/// The families are dealt to the parts in turn, in the order of the BLAKE3 hashes of their standard forms, so that
/// games with similar codes, which take similar times, are spread over the parts. Each part is in the order of `games`.
pub(crate) fn divide(games: Vec<Rule>, parts: usize) -> Vec<Vec<Rule>> {
    let mut families: HashMap<String, Vec<(usize, Rule)>> = HashMap::new();
    for (place, rule) in games.into_iter().enumerate() {
        let form = representative(&rule).rule;
        families.entry(form.name().to_owned()).or_default().push((place, rule));
    }
    let mut families: Vec<_> =
        families.into_iter().map(|(form, games)| (*blake3::hash(form.as_bytes()).as_bytes(), games)).collect();
    families.sort_unstable_by_key(|(hash, _)| *hash);
    let mut divided = vec![Vec::new(); parts];
    for (i, (_, games)) in families.into_iter().enumerate() {
        divided[i % parts].extend(games);
    }
    divided.iter_mut().for_each(|part| part.sort_unstable_by_key(|(place, _)| *place));
    divided.into_iter().map(|part| part.into_iter().map(|(_, rule)| rule).collect()).collect()
}

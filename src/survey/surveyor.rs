//! The order in which a survey examines its games, and the parallel work.

use super::examination::{Examination, Progress};
use super::extent::Extent;
use super::families::{Member, families};
use super::pace::Pace;
use super::record::Record;
use super::saved::{self, Saved};
use super::{Failure, Means};
use crate::error::{Error, Result};
use crate::storage::Dir;
use crate::theory::rule::Rule;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of values to which all families are examined before the harder ones continue. Their computing time tells how
/// hard a game is.
const FIRST_PASS: u64 = 1 << 14;

/// Maximum number of values of waiting families that memory holds: 1 GiB; fewer in unit tests.
const WAITING_VALUES: u64 = if cfg!(test) { 2 * FIRST_PASS } else { 1 << 29 };

/// Maximum computing time between two saves of a family's values; shorter in unit tests.
const SAVE_EVERY: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(600) };

/// Minimum computing time of values that are saved; none in unit tests.
const WORTH_SAVING: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(5) };

/// A family of games whose examination is unfinished.
struct Unfinished {
    /// The games, the first of which is examined.
    family: Vec<Member>,
    examination: Examination,
}

/// A family that waits for the families that are easier.
struct Waiting {
    family: Vec<Member>,
    pace: Pace,
    /// The examination so far, unless memory holds too many values of waiting families.
    examination: Option<Examination>,
}

/// Where a survey writes its records.
pub(super) trait Records: Sync {
    /// Writes the record of a game. Returns the reason if the record cannot be true, in which case it is not written.
    fn write(&self, rule: &Rule, record: Record) -> Result<Option<Error>>;
}

/// What the workers of a survey share.
pub(super) struct Surveyor<'a, P> {
    /// The directory of saved values.
    pub(super) dir: &'a Dir,
    pub(super) extent: Extent,
    pub(super) records: &'a dyn Records,
    pub(super) means: Means,
    pub(super) stop: &'a AtomicBool,
    /// Receives the number of records written.
    pub(super) progress: &'a P,
    pub(super) results: Mutex<Results>,
}

/// What a survey has done.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Number of records written.
    pub(crate) completed: usize,
    /// The games that cannot be examined.
    pub(crate) failed: Vec<Failure>,
    /// The games whose records are those of a second search, because a check failed in the first.
    pub(crate) restarted: Vec<String>,
    /// The games whose saved values were not used, because another version of the program wrote them.
    pub(crate) outdated: BTreeSet<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Fn(usize) + Sync> Surveyor<'_, P> {
    /// Examines games and writes their records: all families without saved values a little way, then the unfinished
    /// ones, those with the shortest estimated time first.
    pub(super) fn examine(self, games: Vec<Rule>) -> Result<Results> {
        let (waiting, waiting_values) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        self.for_each(families(games), |family| {
            let is_saved = saved::exist(self.dir, &family[0].rule)?;
            let begun = self.begun(family, None);
            let paused = if is_saved { self.resumed(begun) } else { self.advance(begun, FIRST_PASS)? };
            lock(&waiting).extend(paused.map(|paused| postponed(paused, &waiting_values)));
            Ok(())
        })?;
        let mut waiting = waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
        waiting.sort_by_key(|waiting| waiting.pace.estimate(FIRST_PASS));
        self.for_each(waiting, |Waiting { family, examination, .. }| {
            match self.resumed(self.begun(family, examination)) {
                Some(resumed) => self.advance(resumed, u64::MAX).map(drop),
                None => Ok(()),
            }
        })?;
        Ok(self.results.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// A family with its examination so far, or with a new one.
    fn begun(&self, family: Vec<Member>, examination: Option<Examination>) -> Unfinished {
        let new = || Examination::new(&family[0].rule, self.means.method, self.extent);
        let examination = examination.unwrap_or_else(new);
        Unfinished { family, examination }
    }

    /// Examines the first game of a family until there are `pause_at` values, then the others on these values. Returns
    /// the family if its first game is unfinished. A game that cannot be examined is noted.
    fn advance(&self, unfinished: Unfinished, pause_at: u64) -> Result<Option<Unfinished>> {
        let Unfinished { family, mut examination } = unfinished;
        match self.advance_first(&mut examination, pause_at) {
            Ok(Progress::Paused) => {
                // The survey may be stopped before this family continues.
                self.save(&examination)?;
                return Ok(Some(Unfinished { family, examination }));
            }
            Ok(Progress::Interrupted) => return self.save(&examination).map(|()| None),
            Ok(Progress::Done) => {}
            Err(error) => {
                if matches!(error, Error::Memory { .. }) {
                    self.save(&examination)?;
                }
                self.note_failure(&family, error);
                return Ok(None);
            }
        }
        if !self.write_record(&examination, &family)? {
            return Ok(None);
        }
        for (place, member) in family.iter().enumerate().skip(1) {
            let values = member.values_from(&family[0], examination.values());
            if let Err(error) = examination.check() {
                self.note_failure(&family[place..], error);
                return Ok(None);
            }
            let mut equal = examination.of_equal(&member.rule, self.means.method, values);
            match equal.advance(u64::MAX, || !self.is_stopped()) {
                Ok(Progress::Paused | Progress::Done) => _ = self.write_record(&equal, std::slice::from_ref(member))?,
                Ok(Progress::Interrupted) => return self.save(&examination).map(|()| None),
                Err(error) => self.note_failure(std::slice::from_ref(member), error),
            }
        }
        saved::remove(self.dir, &family[0].rule).map(|()| None)
    }

    /// Writes the record of the first of these games. After a failed check it notes that none of them can be examined,
    /// and returns false.
    fn write_record(&self, examination: &Examination, games: &[Member]) -> Result<bool> {
        match examination.record() {
            Err(error) if error.is_failed_check() => self.note_failure(games, error),
            record => {
                let rule = &games[0].rule;
                if self.write(rule, record?)? && examination.has_restarted() {
                    lock(&self.results).restarted.push(rule.name().to_owned());
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Examines the first game of a family until it is done, there are `pause_at` values, or the survey is stopped.
    /// Saves the values at intervals.
    fn advance_first(&self, examination: &mut Examination, pause_at: u64) -> Result<Progress> {
        loop {
            let begun = Instant::now();
            let progress = examination.advance(pause_at, || !self.is_stopped() && begun.elapsed() < SAVE_EVERY)?;
            if progress != Progress::Interrupted || self.is_stopped() {
                return Ok(progress);
            }
            self.save(examination)?;
        }
    }

    /// Saves the values of an examination, if they took long enough, and if none has changed in memory: the next look
    /// then begins again.
    fn save(&self, examination: &Examination) -> Result<()> {
        if examination.pace.total() < WORTH_SAVING {
            return Ok(());
        }
        match examination.saved() {
            Err(error) if error.is_failed_check() => Ok(()),
            saved => saved?.write(self.dir),
        }
    }

    /// Continues with the values of the family that are saved. If the file is damaged, its games cannot be examined.
    fn resumed(&self, mut unfinished: Unfinished) -> Option<Unfinished> {
        let Unfinished { family, examination } = &mut unfinished;
        match Saved::read(self.dir, &family[0]) {
            Ok(saved) => {
                if saved.is_none() && saved::exist(self.dir, &family[0].rule).unwrap_or(false) {
                    lock(&self.results).outdated.insert(family[0].rule.name().to_owned());
                }
                saved.into_iter().for_each(|saved| examination.resume(self.means.method, saved));
                Some(unfinished)
            }
            Err(error) => {
                self.note_failure(family, error);
                None
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn note_failure(&self, members: &[Member], error: Error) {
        let games = members.iter().map(|member| member.rule.name().to_owned()).collect();
        lock(&self.results).failed.push(Failure { games, error });
    }

    /// Writes the record of a game, or notes why it cannot be true and returns false.
    fn write(&self, rule: &Rule, record: Record) -> Result<bool> {
        let refused = match record.check_with_catalogue(rule) {
            Ok(()) => self.records.write(rule, record)?,
            Err(error) => Some(error),
        };
        if let Some(error) = refused {
            self.note_failure(&[Member::new(rule.clone())], error);
            return Ok(false);
        }
        let completed = {
            let mut results = lock(&self.results);
            results.completed += 1;
            results.completed
        };
        (self.progress)(completed);
        Ok(true)
    }

    /// Does the work on each item, in order, several at a time: each on one thread, or on an equal share of the threads
    /// if there are fewer items. Ends early when the stop flag is set or the work fails.
    fn for_each<T: Send>(&self, items: Vec<T>, work: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
        let threads = self.means.threads.max(1);
        let workers = threads.min(items.len());
        let share = threads / workers.max(1);
        let failed = AtomicBool::new(false);
        let items = Mutex::new(items.into_iter());
        let next = || {
            let ends = self.is_stopped() || failed.load(Ordering::Relaxed);
            if ends { None } else { lock(&items).next() }
        };
        let worker = || -> Result<()> {
            while let Some(item) = next() {
                // A pool per item, so that no worker starts another item while it waits for parallel work of its own.
                let pool = rayon::ThreadPoolBuilder::new().num_threads(share).build();
                let pool = pool.map_err(Error::threads(self.dir.path().display()));
                let result = pool.and_then(|pool| pool.install(|| work(item)));
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                result?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })
    }
}

/// The family in the queue. `values` counts the values of the queue that memory holds.
fn postponed(Unfinished { family, examination }: Unfinished, values: &AtomicU64) -> Waiting {
    let count = examination.known();
    let fits = values.fetch_add(count, Ordering::Relaxed) + count <= WAITING_VALUES;
    if !fits {
        values.fetch_sub(count, Ordering::Relaxed);
    }
    Waiting { family, pace: examination.pace, examination: fits.then_some(examination) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::solver::Method;
    use crate::survey::{Games, Plan, examine, read, survey};
    use std::path::Path;

    fn has_saved_values(dir: &Path) -> bool {
        let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().ends_with(".values"))
    }

    struct Discard;

    impl Records for Discard {
        fn write(&self, _: &Rule, _: Record) -> Result<Option<Error>> {
            Ok(None)
        }
    }

    /// A value flips between two steps of one game, and none in the other.
    #[test]
    fn games_that_were_computed_again_are_reported() {
        let home = tempfile::tempdir().unwrap();
        let surveyor = Surveyor {
            dir: &Dir::at(home.path()),
            extent: Extent { to: 1 << 16, time_limit: None },
            records: &Discard,
            means: Means { method: Method::Sparse(Kernel::best()), threads: 1 },
            stop: &AtomicBool::new(false),
            progress: &|_| {},
            results: Mutex::default(),
        };
        for (game, flips) in [("0.16", true), ("0.14", false)] {
            let begun = surveyor.begun(vec![Member::new(game.parse().unwrap())], None);
            let mut paused = surveyor.advance(begun, 1 << 14).unwrap().expect("the examination is paused");
            if flips {
                paused.examination.flip(100);
            }
            assert!(surveyor.advance(paused, u64::MAX).unwrap().is_none());
        }
        let results = surveyor.examine(Vec::new()).unwrap();
        assert_eq!((results.completed, results.restarted, results.failed.len()), (2, vec!["0.16".to_owned()], 0));
    }

    #[test]
    fn saved_values_of_another_version_are_not_used() {
        let home = tempfile::tempdir().unwrap();
        let dir = &Dir::at(home.path());
        let (rule, method): (Rule, _) = ("0.16".parse().unwrap(), Method::Sparse(Kernel::best()));
        let extent = Extent { to: 1 << 16, time_limit: None };
        let mut examination = Examination::new(&rule, method, extent);
        examination.advance(1 << 14, || true).unwrap();
        examination.saved().unwrap().write(dir).unwrap();
        assert_eq!(saved::count(dir).unwrap(), 1);
        let path = saved::path(dir, &rule);
        let bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(7).position(|bytes| bytes == b"grundy ").unwrap();
        let mut other = bytes.clone();
        other[at + 7] = b'9';
        assert_ne!(other, bytes);
        let mut former = bytes.clone();
        let at = bytes.windows(8).position(|bytes| bytes == b"values-2").unwrap();
        former[at + 7] = b'1';
        std::fs::write(&path, former).unwrap();
        let game = Member::new(rule.clone());
        assert!(matches!(saved::Saved::read(dir, &game), Ok(None)), "of another format");
        std::fs::write(&path, other).unwrap();
        assert_eq!(saved::count(dir).unwrap(), 0);
        let surveyor = Surveyor {
            dir,
            extent,
            records: &Discard,
            means: Means { method, threads: 1 },
            stop: &AtomicBool::new(false),
            progress: &|_| {},
            results: Mutex::default(),
        };
        let results = surveyor.examine(vec![rule]).unwrap();
        assert_eq!((results.completed, results.outdated.len(), results.failed.len()), (1, 1, 0));
    }

    /// The values are saved at every opportunity, and the survey is stopped as soon as some are.
    #[test]
    fn stopped_surveys_continue_with_saved_values_and_leave_none() {
        let home = tempfile::tempdir().unwrap();
        let dir = &home.path().join("survey");
        let names = ["0.04", "0.007", "0.77", "0.143", "grundy"].map(String::from);
        let means = Means { method: Method::Sparse(Kernel::best()), threads: 2 };
        let to = 1 << 19;
        let mut stops = 0;
        loop {
            let stop = AtomicBool::new(false);
            let end = AtomicBool::new(false);
            let outcome = std::thread::scope(|scope| {
                if stops < 3 {
                    scope.spawn(|| {
                        while !has_saved_values(dir) && !end.load(Ordering::Relaxed) {
                            std::thread::yield_now();
                        }
                        stop.store(true, Ordering::Relaxed);
                    });
                }
                let plan = Plan::new(Games::List(names.to_vec()), (0, 1), to).unwrap();
                let outcome = survey(plan, dir, means, &stop, |_| {}).unwrap();
                end.store(true, Ordering::Relaxed);
                outcome
            });
            assert!(outcome.failed.is_empty(), "{outcome:?}");
            if !outcome.stopped {
                break;
            }
            assert!(has_saved_values(dir));
            stops += 1;
        }
        assert!(stops > 0 && !has_saved_values(dir));
        for record in read(&[dir]).unwrap().into_values() {
            let alone = examine(&record.game.parse().unwrap(), means.method, to, &AtomicBool::new(false)).unwrap();
            assert_eq!(Some(record), alone);
        }
    }
}

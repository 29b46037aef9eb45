//! [`Run`]: the options of a run, set one by one, and its start.

use super::context::{Context, Prepared};
use super::create::random_seed;
use super::observer::{Observer, Outcome};
use super::options::{Options, RunPolicy};
use super::prepare::prepare;
use super::retry::retry_failed_checks;
use crate::error::{Error, Result};
use crate::solver::Method;
use crate::storage::Dir;
use crate::table::Width;
use crate::theory::rule::Rule;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A run to be started: its game, its directory and its options.
///
/// [`Run::builder`] and [`Run::resume`] create it with the options of [`Options::default`], without an observer and
/// without a stop flag.
///
/// ```
/// use grundy::{Run, RunReader};
///
/// # let home = tempfile::tempdir()?;
/// # let dir = &home.path().join("kayles");
/// let kayles = "kayles".parse()?;
/// let outcome = Run::builder(&kayles, dir).to(5000).threads(1).run()?;
/// assert_eq!((outcome.progress.count, outcome.computed, outcome.stopped), (5000, 5000, false));
///
/// let outcome = Run::resume(dir).to(8000).run()?;
/// assert_eq!((outcome.rule.name(), outcome.computed), ("0.77", 3000));
/// assert_eq!(RunReader::open(dir)?.values(1000..1004)?, [1, 4, 7, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a run computes nothing before `run` is called"]
pub struct Run<'a> {
    rule: Option<&'a Rule>,
    dir: Dir,
    options: Options,
    policy: RunPolicy,
    observer: Option<&'a mut (dyn Observer + Send)>,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Run<'a> {
    /// The run of `rule` in `dir`, which is created or resumed, with default options.
    pub fn builder(rule: &'a Rule, dir: impl AsRef<Path>) -> Run<'a> {
        Run::on(Some(rule), &Dir::at(dir.as_ref()))
    }

    /// The run that `dir` holds, whatever its game, with default options.
    pub fn resume(dir: impl AsRef<Path>) -> Run<'a> {
        Run::on(None, &Dir::at(dir.as_ref()))
    }

    /// A run on any storage, with the default policy. `rule` can be `None` if the directory holds a run.
    #[doc(hidden)]
    pub fn on(rule: Option<&'a Rule>, dir: &Dir) -> Run<'a> {
        let options = Options::default();
        let policy = RunPolicy::default();
        Run { rule, dir: dir.clone(), options, policy, observer: None, stop: None }
    }

    /// Computes the values G(0) to G(`count` - 1); without it, the run continues until it is stopped.
    pub fn to(mut self, count: u64) -> Run<'a> {
        self.options.to = Some(count);
        self
    }

    /// Computes with this number of threads; 0, the default, stands for one thread per core.
    pub fn threads(mut self, threads: usize) -> Run<'a> {
        self.options.threads = threads;
        self
    }

    /// Computes with `method` [default: [`Method::default`]].
    pub fn method(mut self, method: Method) -> Run<'a> {
        self.options.method = method;
        self
    }

    /// Sets the width of a new table [default: the first values decide].
    pub fn width(mut self, width: Width) -> Run<'a> {
        self.options.width = Some(width);
        self
    }

    /// Retains the first 2^26 values and at least the last `count`, and discards the others permanently [default: the
    /// choice of the run that is resumed; a new run retains every value].
    pub fn keep(mut self, count: u64) -> Run<'a> {
        self.options.keep = Some(count);
        self
    }

    /// Returns to the last commit that the files support, if the table disagrees with the journal or the journal is
    /// damaged [default: false].
    pub fn rollback(mut self, rollback: bool) -> Run<'a> {
        self.options.rollback = rollback;
        self
    }

    /// Replaces all options that were set so far.
    pub fn options(mut self, options: Options) -> Run<'a> {
        self.options = options;
        self
    }

    /// Reports progress and messages to `observer`.
    pub fn observer(mut self, observer: &'a mut (dyn Observer + Send)) -> Run<'a> {
        self.observer = Some(observer);
        self
    }

    /// Reads `stop` between blocks. Once it is set, the run commits the proved values and returns.
    pub fn stop(mut self, stop: &'a AtomicBool) -> Run<'a> {
        self.stop = Some(stop);
        self
    }

    /// Replaces the internal settings.
    #[doc(hidden)]
    pub fn policy(mut self, policy: RunPolicy) -> Run<'a> {
        self.policy = policy;
        self
    }

    /// Creates or resumes the run, and computes to its end or until the stop flag is set.
    ///
    /// If an integrity check fails (memory, audit, spot check), the run is opened again and continues from the last
    /// commit; `errors` of the record counts such failures.
    ///
    /// # Errors
    /// Every variant of [`Error`]; committed values stay. [`Error::Rule`] for a rule that does not have the name of its
    /// game ([`Rule::is_named`]). [`Error::Differs`], [`Error::OptionsDiffer`] or
    /// [`Error::Flipped`] if the same check fails twice in the same way, or if too many checks fail.
    pub fn run(self) -> Result<Outcome> {
        if let Some(rule) = self.rule.filter(|rule| !rule.is_named()) {
            let name = rule.name().escape_default();
            return Err(Error::Rule(format!("'{name}' names no game of these moves, so no reader could open the run")));
        }
        let path = self.dir.path().to_owned();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.options.threads).build();
        let pool = pool.map_err(Error::threads(path.display()))?;
        let existed = path.exists();
        let outcome = pool.install(|| self.run_in_pool());
        if !existed && outcome.as_ref().is_ok_and(|outcome| outcome.stopped && outcome.progress.count == 0) {
            let _ = std::fs::remove_dir(&path); // created by this run, and still empty
        }
        outcome
    }

    /// [`Run::run`] with the threads of the current rayon pool.
    ///
    /// # Errors
    /// As [`Run::run`].
    #[doc(hidden)]
    pub fn run_in_pool(self) -> Result<Outcome> {
        let Run { rule, dir, options, policy, observer, stop } = self;
        let mut silent = ();
        let observer: &mut (dyn Observer + Send) = match observer {
            Some(observer) => observer,
            None => &mut silent,
        };
        let never = AtomicBool::new(false);
        let stop = stop.unwrap_or(&never);
        let seed = policy.seed.unwrap_or_else(random_seed);
        let (dir, options) = (&dir, &options);
        retry_failed_checks(dir, seed, observer, |attempt, observer| {
            match prepare(rule, &mut Context { dir, options, policy, attempt, observer, stop })? {
                Prepared::Nothing(outcome) => Ok(outcome),
                Prepared::Ready(run) => run.go_on(options, policy, observer, stop),
            }
        })
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Run");
        shown.field("rule", &self.rule.map(Rule::name)).field("dir", &self.dir.path()).field("options", &self.options);
        shown.finish_non_exhaustive()
    }
}

//! `grundy status`: show what a run contains, from its last records, whether a process writes it, and which checks its
//! values have passed.

mod holder;
mod object;
mod pace;
mod report;

use super::colour::{ACTIVE, BAD, LABEL, painted};
use super::{Usage, layout, output, source};
use anyhow::Result;
use grundy::checkpoint::journal::{self, Contents, Event, Record};
use grundy::error::{Error, Kind};
use grundy::period::exclude::{self, Excluded};
use grundy::run::RunReader;
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use holder::Holder;
use indicatif::HumanCount;
use object::Object;
use pace::Pace;
use report::Report;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Arguments of `grundy status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy status\n         \
                        grundy status runs/grundy --watch 10\n         \
                        grundy status runs/grundy --json\n\n\
                        JSON keys: dir game count width mask position rares last_rare max_value max_at too_large \
                        escapes digest checks errors suspect strategy time seconds kept excluded state running rate last_commit \
                        machines confirmed. \
                        'rares' is the number of rare positions, 'last_rare' the last of them; 'too_large' is \
                        the n at which the run ended because G(n) is above 65535, else null; 'suspect' is the n \
                        whose value failed a check and has not been recomputed, else null; 'strategy' is how the \
                        next values are computed, and why; 'time' is when the last record was written (UTC); \
                        'seconds' is the computing time over all processes; 'kept' lists the half-open ranges of n \
                        whose values are kept. 'excluded' says which periods are ruled out by zeros: all divisors \
                        of 'count' numbers, of which 'largest' is the largest. 'least_left' is the least \
                        period that no zero rules out, 'looked' the number of values searched for zeros. 'state' is \
                        'running'; 'stopped', if the last process ended with a clean stop; 'interrupted', if it did \
                        not; 'damaged' or 'unreadable', if its files cannot be opened; or 'unknown', if a process may \
                        write the run that is not visible here. 'running' is null, or has 'pid', 'since' (start of the process), 'to' (the N of --to) and 'end' (when it \
                        is expected to reach N); each but 'pid' may be null. 'rate' is values per second over the \
                        last five minutes of computing, 'last_commit' when the last values were committed; null if \
                        unknown. 'machines' lists the processor models that computed the values, with null \
                        for values of which no record states it. 'confirmed' is the number of first values that another kernel on another machine \
                        computed with equal digests, as 'grundy compare --record' noted; null if the file of the notes is damaged.\n\n\
                        Exit status 3 if a file of the run is missing or shorter than the journal says; 'grundy \
                        verify' checks every byte. Ctrl-C ends --watch with exit status 0.")]
pub(crate) struct Args {
    /// Run directories [default: list the runs in runs/, one line each].
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Repeat every SECONDS until Ctrl-C: redraw on a terminal, else print another block [default: 5].
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "5", value_parser = interval)]
    watch: Option<Duration>,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
}

/// Parses the interval of `--watch`.
fn interval(text: &str) -> Result<Duration, String> {
    match super::number::positive(text) {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        Ok(_) => Err("must be at most 86400 seconds".to_owned()),
        Err(why) if text.starts_with(|c: char| c.is_ascii_digit()) => Err(why),
        Err(_) => Err("not a number of seconds; name run directories before --watch".to_owned()),
    }
}

pub(crate) fn status(args: &Args) -> Result<()> {
    output::unless_reader_left(match args.watch {
        Some(interval) => watch(args, interval),
        None => print(Block::of(args)?, args.json),
    })
}

/// Prints the state of the runs, and again after each interval, until a signal sets the stop flag.
fn watch(args: &Args, interval: Duration) -> Result<()> {
    /// Polling interval of the stop flag.
    const POLL: Duration = Duration::from_millis(100);
    let stop = super::signals::stop_flag()?;
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let redraws = std::io::stdout().is_terminal() && !is_dumb && !args.json;
    loop {
        let mut block = Block::of(args)?;
        if !args.json && !block.text.is_empty() {
            let (now, every) = (report::utc(SystemTime::now()), layout::duration(interval));
            block.text = format!("{now}, every {every}; Ctrl-C ends\n\n{}\n", block.text);
        }
        if redraws {
            block.text = on_one_screen(block.text.trim_end());
            std::io::stdout().write_all(b"\x1b[H\x1b[2J")?;
        }
        print(block, args.json)?;
        let next = Instant::now() + interval;
        while Instant::now() < next {
            if stop.load(Ordering::Relaxed) {
                if redraws {
                    // After the ^C that the terminal echoes. The terminal may be gone.
                    let _ = writeln!(std::io::stdout());
                }
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
    }
}

/// The lines of a text that fit the terminal, and the number of the others.
fn on_one_screen(text: &str) -> String {
    let rows = terminal_size::terminal_size_of(std::io::stdout()).map_or(usize::MAX, |(_, rows)| rows.0.into());
    let lines: Vec<&str> = text.lines().collect();
    let shown = if lines.len() < rows { lines.len() } else { rows.saturating_sub(2) };
    let mut text: String = lines[..shown].iter().map(|line| format!("{line}\n")).collect();
    if shown < lines.len() {
        text += &format!("… {} more lines; enlarge the terminal\n", lines.len() - shown);
    }
    text
}

/// What one `status` prints, and the errors to report after it.
struct Block {
    text: String,
    errors: Vec<anyhow::Error>,
}

impl Block {
    fn of(args: &Args) -> Result<Block> {
        let runs = if args.dirs.is_empty() { source::runs_in(Path::new(super::RUNS)) } else { args.dirs.clone() };
        if runs.is_empty() {
            return Err(Usage(format!(
                "there are no runs in {}/; 'grundy run grundy --to 1e8' creates one, or name a run directory DIR",
                super::RUNS
            ))
            .into());
        }
        let is_list = args.dirs.is_empty() && !args.json;
        let (mut examined, mut errors) = (Vec::new(), Vec::new());
        for dir in &runs {
            match Examined::of(dir, !is_list) {
                Ok(run) if args.json => examined.push((dir.display().to_string(), run)),
                Ok(run) => examined.push((layout::printable(dir), run)),
                Err(error) => errors.push(error),
            }
        }
        let text = match (is_list, args.json) {
            (true, _) => list(&examined),
            (_, true) => objects(&examined)?,
            (_, false) => {
                examined.iter().map(|(dir, run)| Report { dir, run }.to_string()).collect::<Vec<String>>().join("\n")
            }
        };
        let reported = examined.into_iter().flat_map(|(_, run)| [run.damage, run.confirmed.err()]);
        errors.extend(reported.flatten().map(anyhow::Error::from));
        Ok(Block { text, errors })
    }
}

/// Prints a block. Returns its first error that is damage, or else the first one, and reports the others.
fn print(block: Block, json: bool) -> Result<()> {
    let printed = if json {
        output::print_while_read(|out| Ok(out.write_all(block.text.as_bytes())?))
    } else {
        output::styled(&block.text)
    };
    let mut errors = block.errors;
    if errors.is_empty() {
        return printed;
    }
    let is_damage = |error: &anyhow::Error| error.downcast_ref().map(Error::kind) == Some(Kind::Damage);
    let gravest = errors.remove(errors.iter().position(is_damage).unwrap_or(0));
    errors.iter().for_each(super::report);
    Err(gravest)
}

/// A run, as it was when `status` examined it.
struct Examined {
    contents: Contents,
    state: State,
    pace: Option<Pace>,
    /// The last record of values among the last records.
    last_commit: Option<Record>,
    /// Number of first values that another kernel on another machine computed with equal digests, or why the file that
    /// notes it cannot be read.
    confirmed: grundy::Result<u64>,
    /// The periods that zeros rule out; `None` if they were not searched or the values cannot be read.
    excluded: Option<Excluded>,
    /// Why the files cannot be opened, in particular what they lack against the journal.
    damage: Option<Error>,
    now: SystemTime,
}

/// Whether a process writes a run.
enum State {
    Running(Holder),
    /// The last process ended with a clean stop.
    Stopped,
    /// No process writes the run, but the last one ended without a clean stop.
    Interrupted,
    /// No process is visible, but the run was not stopped, and there may be a process for this reason.
    Unknown(&'static str),
}

/// Whether a process that is visible here writes the run in `dir`.
pub(super) fn is_running(dir: &Path) -> bool {
    holder::holder(dir).is_some()
}

impl Examined {
    fn of(dir: &Path, with_periods: bool) -> Result<Examined> {
        // Before the journal is read: a process that ends in between has then written its last record.
        let holder = holder::holder(source::run_directory(dir)?);
        // Opening the run compares the lengths of its files with the journal, and the summary of discarded values is a
        // file of its own. If a file is damaged, status still prints the journal, then reports the damage.
        let view = RunReader::open(dir).and_then(|view| match view.discarded_stats() {
            Err(error) if error.kind() == Kind::Damage => Err(error),
            _ => Ok(view), // a run that frees more values meanwhile replaces the summary
        });
        let excluded = view.as_ref().ok().filter(|_| with_periods).and_then(excluded);
        let (contents, damage) = match view {
            Ok(view) => (view.contents, None),
            Err(error) => (journal::read(dir)?, Some(error)),
        };
        let state = match holder {
            Some(holder) => State::Running(holder),
            None if contents.last.event == Event::Close => State::Stopped,
            None => holder::blind_spot(dir).map_or(State::Interrupted, State::Unknown),
        };
        // Without the speed, if the journal was truncated since.
        let mut records = journal::last_records(dir, contents.records, pace::RECORDS).unwrap_or_default();
        let pace = pace::pace(&records);
        records.retain(|record| record.event == Event::Commit);
        let noted = grundy::publish::confirmations(dir, &contents);
        let confirmed = noted.map(|noted| noted.iter().map(|noted| noted.values).max().unwrap_or(0));
        let (last_commit, now) = (records.pop(), SystemTime::now());
        Ok(Examined { contents, state, pace, last_commit, confirmed, excluded, damage, now })
    }

    /// When the running process is expected to have computed its N values.
    fn end(&self) -> Option<SystemTime> {
        let State::Running(Holder { to: Some(to), .. }) = self.state else { return None };
        pace::end(&self.contents.last, self.grows(), self.pace?, to, self.now)
    }

    /// Whether each value needs all pairs of heaps.
    fn grows(&self) -> bool {
        let last = &self.contents.last;
        last.mask == 0 && last.game.parse::<Rule>().is_ok_and(|rule| rule.has_splits())
    }
}

/// A table of runs, one line each. A name that is longer than its column has a line of its own.
fn list(runs: &[(String, Examined)]) -> String {
    /// Maximum number of columns of the names.
    const LONGEST: usize = 32;
    let length = |name: &str| name.chars().count();
    let width = runs.iter().map(|(name, _)| length(name).min(LONGEST)).max().unwrap_or(0);
    let row = |name: &str, count: &str, largest: &str| format!("{name:<width$}  {count:>15}  {largest:>7}  ");
    let mut text = painted(LABEL, &(row("run", "values", "largest") + "state")) + "\n";
    for (name, run) in runs {
        let last = &run.contents.last;
        let name = if length(name) > width {
            text += &format!("{name}\n");
            ""
        } else {
            name
        };
        let first = row(name, &HumanCount(last.count).to_string(), &last.max_value.to_string());
        text += &layout::filled(&short_state(run), &first, first.chars().count());
    }
    text
}

/// The state of a run in a few words.
fn short_state(run: &Examined) -> String {
    let ago = pace::time(&run.contents.last).and_then(|time| run.now.duration_since(time).ok());
    let ago = ago.map_or_else(String::new, |ago| format!(" {} ago", layout::duration(ago)));
    if let Some(error) = &run.damage {
        return painted(BAD, fault(error));
    }
    match &run.state {
        State::Running(_) => {
            let left = run.end().and_then(|end| end.duration_since(run.now).ok());
            let rate = run.pace.map(|pace| format!(", {}/s", HumanCount(pace.rate))).unwrap_or_default();
            let left = left.map(|left| format!(", {} left", layout::duration(left))).unwrap_or_default();
            format!("{}{rate}{left}", painted(ACTIVE, "running"))
        }
        State::Stopped if run.contents.last.too_large.is_some() => {
            format!("complete: the next value is above {}", u16::MAX)
        }
        State::Stopped => format!("stopped{ago}"),
        State::Interrupted => format!("interrupted{ago}"),
        State::Unknown(_) => format!("unknown; last record{ago}"),
    }
}

/// The state of a run whose files cannot be opened, in one word.
fn fault(error: &Error) -> &'static str {
    if error.kind() == Kind::Damage { "damaged" } else { "unreadable" }
}

/// The objects of runs, one line each.
fn objects(runs: &[(String, Examined)]) -> Result<String> {
    let mut text = Vec::new();
    for (dir, run) in runs {
        output::object(&mut text, &Object::of(dir, run))?;
    }
    Ok(String::from_utf8(text)?)
}

/// Prints the object of `status --json` for a run.
pub(super) fn object(dir: &Path) -> Result<()> {
    let run = Examined::of(dir, true)?;
    output::print(|out| output::object(out, &Object::of(&dir.display().to_string(), &run)))?;
    run.damage.or(run.confirmed.err()).map_or(Ok(()), |error| Err(error.into()))
}

/// The periods that zeros among the first values rule out; `None` if the values cannot be read, a fault that `verify`
/// reports.
fn excluded(view: &RunReader) -> Option<Excluded> {
    /// Maximum number of first values searched for zeros: later zeros are scarce, and status must be quick.
    const LOOKED: u64 = 1 << 22;
    let discarded = view.discarded();
    let there = if discarded.is_empty() { view.len() } else { discarded.start };
    exclude::excluded(&view.rule, view, there.min(LOOKED)).ok()
}

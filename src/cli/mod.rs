//! The command line: clap parses the arguments into plain structs, one function per command does the work, and [`main`]
//! turns errors into exit statuses. The library names no command and no option in its texts; `advice` adds them.
//!
//! Results go to stdout, everything else to stderr. Exit status: 0 success; 1 failure; 2 usage error; 3 damage or a
//! failed check; 4 results are missing (`merge`) or nothing can be compared (`compare`); 75 another process is using
//! the directory (EX_TEMPFAIL); 130 stopped by a signal or a time limit.
//!
//! `CONTRIBUTING.md` ("Add a command") lists the steps for a new command.

mod advice;
mod board;
mod check;
mod colour;
mod compare;
mod cpu;
mod deadline;
mod discarded;
mod duration;
mod export;
mod find;
mod games;
mod generate;
mod graph;
mod info;
mod input;
mod layout;
mod merge;
mod nim;
mod number;
mod output;
mod parquet_file;
mod period;
mod play;
mod progress;
mod publish;
mod published;
mod rectangle;
mod run;
mod selftest;
mod signals;
mod source;
mod space;
mod status;
mod survey;
mod temporary;
mod terms;
mod tune;
mod units;
mod values;
mod verify;
mod version;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand, ValueEnum};
use grundy::error::Kind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compute exact nim-values of heap games, into the billions and beyond. Runs can be stopped, resumed and verified.
#[derive(Debug, Parser)]
#[command(
    name = "grundy",
    version = version::short(),
    long_version = version::long(),
    arg_required_else_help = true,
    after_help = "Example: grundy run grundy --to 1e8\n\n\
                  Games: 'grundy', 'grundy:d=2', names from 'grundy games', octal and hexadecimal codes ('.77', \
                  '4.3', '.8F'), codes that repeat ('4.(3)'), 'sub:1,4,10' (take 1, 4 or 10), 'allbut:1,4' (all but \
                  these).\n\n\
                  Numbers: 1e9, 2^35, 3*2^24, 10M (= 10^7), 10_000_000.\n\n\
                  Ranges: A..B (half open: A to B-1), or a single number."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Show only results, warnings and errors: no progress, no log.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Without a terminal, write a line of progress every DURATION, such as 30s, 10m or 1h [default: after 30 s, then
    /// 1, 5 and 15 min later, then every 15 min].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::duration)]
    log_every: Option<std::time::Duration>,
    /// Colour of texts; 'auto' is colour on a terminal, unless NO_COLOR or CLICOLOR=0 is set.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: clap::ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compute the first N values into a run directory, or resume an existing run.
    Run(run::Args),
    /// Show what a run contains and which checks its values have passed.
    Status(status::Args),
    /// Print values, one "n value" per line, or the first hundred in rows.
    Values(values::Args),
    /// Write the values of a run or a game in another format.
    Export(export::Args),
    /// Find zeros, records, first positions, counts of values or rare positions of a sequence.
    Find(find::Args),
    /// Check a run or a certificate independently of the process that wrote it.
    Verify(verify::Args),
    /// Find the period of a game and prove it.
    Period(period::Args),
    /// Find the periods of many games: one record per game, and a table.
    Survey(survey::Args),
    /// Combine the records of several surveys into one table, or the results of units.
    Merge(merge::Args),
    /// Divide a survey or a verification into work units, or list those that are left.
    Units(units::UnitsArgs),
    /// Do one work unit.
    Unit(units::UnitArgs),
    /// Write a directory that others can cite and check: manifest, digests, tables, metadata.
    Publish(publish::Args),
    /// Compare two runs or manifests: where they agree, and where they first differ.
    Compare(compare::Args),
    /// Compare published values, such as an OEIS b-file, with those of a game or a run.
    Check(check::Args),
    /// Print the nim-value of a position of heaps, and every winning move.
    Play(play::Args),
    /// Print nim-values of Schrage's game: break a bar into two unequal bars, in any number of dimensions.
    Rectangle(rectangle::Args),
    /// Print outcomes and nim-values of finite games given as graphs, and of their sums.
    Graph(graph::Args),
    /// Search small games on boards and graphs: print the nim-value and the winner.
    Board(board::Args),
    /// Write a sequence as a tune to a MIDI file.
    Tune(tune::Args),
    /// List the named games and what is known about them.
    Games(games::Args),
    /// Show what is known about a game: moves, equal games, sparse space, period, first values.
    Info(info::Args),
    /// List the kernels that this processor can run.
    Cpu(cpu::Args),
    /// Test this build on this machine: kernels, values, a run, and whether verify detects damage.
    Selftest(selftest::Args),
    /// Write man pages, shell completions, or the help texts as Markdown.
    Generate(generate::Args),
}

/// How values are computed; every choice gives the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KernelChoice {
    /// The fastest kernel that this processor can run.
    Auto,
    /// 512-bit vectors (AVX-512 F, BW, VL, VBMI and VPOPCNTDQ; POPCNT, BMI1, BMI2).
    Avx512,
    /// 256-bit vectors (AVX2, POPCNT, BMI1, BMI2).
    Avx2,
    /// Portable code, for any processor.
    Scalar,
    /// No kernel: the mex over all options of each n, from all pairs; slow.
    Definition,
}

impl KernelChoice {
    fn method(self) -> anyhow::Result<grundy::solver::Method> {
        use grundy::{kernel::Kernel, solver::Method};
        let name = match self {
            KernelChoice::Auto => return Ok(Method::Sparse(Kernel::best())),
            KernelChoice::Definition => return Ok(Method::Definition),
            KernelChoice::Avx512 => "avx512",
            KernelChoice::Avx2 => "avx2",
            KernelChoice::Scalar => "scalar",
        };
        Ok(Method::Sparse(name.parse()?))
    }
}

/// Options of commands that compute values.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Compute {
    /// Number of threads, 1 to 1024 [default: one per core]. More than 8 make only some sequences faster.
    #[arg(long, value_name = "T", value_parser = number::within::<u16>(1..=1024))]
    threads: Option<u16>,
    /// Kernel that computes the values.
    #[arg(long, value_enum, default_value = "auto")]
    kernel: KernelChoice,
}

impl Compute {
    /// Number of threads; 0 means one per core.
    fn threads(self) -> usize {
        self.threads.map_or(0, usize::from)
    }

    /// Warns of more threads than this process has cores.
    fn warn(self) {
        warn_of_threads(self.threads());
    }

    /// The options as words of a command line; `None` if all are left to their defaults.
    fn words(self) -> Option<String> {
        let threads = self.threads.map(|threads| format!("--threads {threads}"));
        let kernel = self.kernel.to_possible_value().filter(|_| self.kernel != KernelChoice::Auto);
        let kernel = kernel.map(|kernel| format!("--kernel {}", kernel.get_name()));
        let words: Vec<String> = threads.into_iter().chain(kernel).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Warns of more threads than this process has cores.
fn warn_of_threads(threads: usize) {
    let cores = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    if threads > cores {
        let cores = layout::counted(cores as u64, "cores");
        complain!("grundy: warning: --threads {threads}, but there are only {cores}; more threads are slower");
    }
}

/// Warns of games that a survey computed twice.
fn warn_of_restarts(games: &[String]) {
    if !games.is_empty() {
        let games = games.join(", ");
        complain!(
            "grundy: warning: checks failed, and these games were computed again: {games}; test the memory of this machine"
        );
    }
}

/// Warns that the saved values of this number of sequences were not used.
fn warn_of_outdated(sequences: usize) {
    if sequences > 0 {
        let sequences = layout::counted(sequences as u64, "sequences");
        complain!("grundy: warning: saved values of another version of the program were not used: {sequences}");
    }
}

/// Starts the global thread pool, with this number of threads (0: one per core), which library functions without a
/// thread count use. Without this call the pool would start at its first use, and panic where a limit on memory or
/// processes prevents it.
///
/// # Errors
/// When the threads cannot be started.
fn start_threads(threads: usize) -> anyhow::Result<()> {
    use std::error::Error as _;
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        // An error without a source means that the pool exists already.
        Err(error) if error.source().is_some() => {
            Err(anyhow::anyhow!("starting threads: {error}; raise the limit on memory or processes ('ulimit -a')"))
        }
        _ => Ok(()),
    }
}

/// Writes a message to stderr, with colour if stderr has colour, in lines that fit the terminal.
macro_rules! complain {
    ($($what:tt)*) => { $crate::cli::tell(&format!($($what)*)) };
}
use complain;

/// Writes a message to stderr, as `complain!` does, and ignores a failure to write it.
fn tell(text: &str) {
    tell_after("", text);
}

/// Writes a label, which may have colour, and a message to stderr.
fn tell_after(label: &str, text: &str) {
    use std::io::Write as _;
    let _ = writeln!(anstream::stderr(), "{}", layout::message(&format!("{label}{}", layout::harmless(text))));
}

/// Exit status of `merge` when expected results are missing, and of `compare` when nothing can be compared.
const INCOMPLETE: u8 = 4;

/// Exit status when another process is using the directory: EX_TEMPFAIL of sysexits.h, try again later.
const IN_USE: u8 = 75;

/// Parses the command line, runs the command and returns the exit status.
pub(crate) fn main() -> ExitCode {
    let prepared = signals::prepare();
    colour::choose_early(std::env::args_os());
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(error),
    };
    colour::choose(cli.color);
    progress::init_log(cli.quiet, cli.log_every);
    status_of(prepared.and_then(|()| dispatch(cli.command, cli.quiet)))
}

/// Returns the exit status of a command; prints its error, if there is one.
fn status_of(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            report(&error);
            exit_status(&error)
        }
    }
}

/// Prints a text that the user asked for, or why the command line is refused; returns the exit status.
fn refused(mut error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return status_of(output::styled(&error.render().ansi().to_string()).map(|()| ExitCode::SUCCESS));
    }
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested); // the advice to write '-- --option', which is no option then
        if let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
            && let Some(why) = why_unknown(argument)
        {
            let label = colour::painted(colour::BAD, "error:") + " ";
            tell_after(&label, &format!("unexpected argument '{argument}': {why}"));
            return ExitCode::from(2);
        }
    }
    if error.kind() == ErrorKind::InvalidSubcommand
        && error.get(ContextKind::InvalidSubcommand) == Some(&ContextValue::String("plot".into()))
    {
        let label = colour::painted(colour::BAD, "error:") + " ";
        tell_after(&label, "the Python package draws pictures: python3 -m grundy plot (docs/PYTHON.md)");
        return ExitCode::from(2);
    }
    tell_after(error.render().ansi().to_string().trim_end(), "");
    ExitCode::from(2)
}

/// What to say of an argument that is no option, where that is known.
fn why_unknown(argument: &str) -> Option<&'static str> {
    if argument.starts_with("--misere") || argument.starts_with("--misère") {
        return Some(
            "misère play is not supported; this program computes normal play, in which the player who cannot move \
             loses",
        );
    }
    if number::range(argument).is_ok() {
        return Some("a number or a range follows its option, as in --to 1e6 or --range 0..20; see --help");
    }
    let is_number = argument.strip_prefix('-')?.starts_with(|c: char| c.is_ascii_digit());
    is_number.then_some("numbers must not be negative here (ranges are written as 0..20)")
}

/// Prints an error, with the advice that belongs to it.
fn report(error: &anyhow::Error) {
    let label = colour::painted(colour::BAD, "grundy: error:") + " ";
    match error.downcast_ref::<grundy::Error>() {
        Some(whole) => tell_after(&label, &advice::message(whole)), // its text includes the cause
        None => tell_after(&label, &advice::chain(error)),
    }
}

fn dispatch(command: Command, quiet: bool) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => return run::run(&args, quiet),
        Command::Verify(args) => return verify::verify(&args, quiet),
        Command::Period(args) => return period::period(&args, quiet),
        Command::Survey(args) => return survey::survey(&args, quiet),
        Command::Merge(args) => return merge::merge(&args),
        Command::Unit(args) => return units::unit(&args, quiet),
        Command::Compare(args) => return compare::compare(&args),
        Command::Check(args) => return check::check(&args, quiet),
        Command::Units(args) => units::units(&args, quiet),
        Command::Publish(args) => publish::publish(&args, quiet),
        Command::Selftest(args) => return selftest::selftest(&args, quiet),
        Command::Status(args) => status::status(&args),
        Command::Values(args) => values::values(&args, quiet),
        Command::Export(args) => export::export(&args, quiet),
        Command::Find(args) => find::find(&args, quiet),
        Command::Play(args) => play::play(&args, quiet),
        Command::Rectangle(args) => rectangle::rectangle(&args, quiet),
        Command::Graph(args) => graph::graph(&args),
        Command::Board(args) => board::board(&args, quiet),
        Command::Tune(args) => tune::tune(&args, quiet),
        Command::Games(args) => games::games(&args),
        Command::Info(args) => info::info(&args),
        Command::Cpu(args) => cpu::cpu(&args),
        Command::Generate(args) => generate::generate(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The number of values that a process with these arguments computes, if it is a `run` with `--to`.
fn goal_of(arguments: Vec<String>) -> Option<u64> {
    match Cli::try_parse_from(arguments).ok()?.command {
        Command::Run(args) => args.to,
        _ => None,
    }
}

/// A usage error that clap cannot detect; exit status 2.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn exit_status(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<signals::Stopped>().is_some() {
        return ExitCode::from(signals::STOPPED);
    }
    if error.downcast_ref::<Usage>().is_some() {
        return ExitCode::from(2);
    }
    match error.downcast_ref::<grundy::Error>().map(grundy::Error::kind) {
        Some(Kind::Usage) => ExitCode::from(2),
        Some(Kind::Damage) => ExitCode::from(3),
        Some(Kind::Busy) => ExitCode::from(IN_USE),
        _ => ExitCode::from(1),
    }
}

/// Whether the reader of our output has closed the pipe, which is not reported as an error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}

/// The parent of the default run directories.
const RUNS: &str = "runs";

/// The default run directory of a game.
fn default_directory(rule: &grundy::theory::rule::Rule) -> PathBuf {
    PathBuf::from(RUNS).join(rule.directory_name())
}

//! The command line: words become plain structs, one short function a command, errors become exit statuses.
//!
//! Results go to stdout, everything else to stderr. Exit status: 0 done, 1 failed, 2 usage, 3 damage or a failed check,
//! 4 expected results are missing (`merge`), 75 another process is using the directory (EX_TEMPFAIL), 130 stopped by a
//! signal and resumable.
//!
//! **To add a command**: a variant of [`Command`] with its arguments and an example in `after_help`, a file with one
//! function that takes them, a line in [`dispatch`], and an example in `tests/cli.rs`. It writes its result with
//! [`output::print`], or with [`output::whole_file`] when the user names a file.

mod board;
mod cpu;
mod export;
mod games;
mod generate;
mod graph;
mod input;
mod nim;
mod number;
mod output;
mod period;
mod play;
mod progress;
mod rectangle;
mod run;
mod selftest;
mod signals;
mod source;
mod status;
mod survey;
mod temporary;
mod tune;
mod values;
mod verify;

use clap::{Parser, Subcommand, ValueEnum};
use grundy::error::Kind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exact nim-values of heap games, into the billions and beyond; runs that can be stopped, resumed and checked.
#[derive(Debug, Parser)]
#[command(
    name = "grundy",
    version = grundy::PROGRAM.trim_start_matches("grundy "),
    arg_required_else_help = true,
    after_help = "Games: 'grundy', 'grundy:d=2', 'nim', octal codes ('.77', '0.6', '4.3'), names of 'grundy games'.\n\
                  Numbers: 1e9, 2^35, 3*2^24, 10M (= 10^7), 10_000_000. Ranges: A..B (half open) or a single number.\n\n\
                  Example: grundy run grundy --to 1e8"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// No progress and no log, only results and errors.
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compute the first N values into a run directory, or resume the run that is there.
    Run(run::Args),
    /// What a run holds and how far it may be trusted.
    Status(status::Args),
    /// Print values, one "n value" a line.
    Values(values::Args),
    /// Write the values of a run in another format.
    Export(export::Args),
    /// Check a run, or a certificate, without trusting the process that made it.
    Verify(verify::Args),
    /// Find the period of a game, and prove it.
    Period(period::Args),
    /// Find the periods of many games; one record a game, and a table.
    Survey(survey::SurveyArgs),
    /// One table of the records of several surveys.
    Merge(survey::MergeArgs),
    /// The nim-value of heaps on the table, and every winning move.
    Play(play::Args),
    /// Schrage's game: break a bar into two unequal rectangles, in any number of dimensions.
    Rectangle(rectangle::Args),
    /// Losing positions and nim-values of a finite game given as a graph, and of sums of such games.
    Graph(graph::Args),
    /// Small games on boards and graphs, searched: nim-value, and who wins.
    Board(board::Args),
    /// A sequence as a tune, in a MIDI file.
    Tune(tune::Args),
    /// The games that have names here, with what is known of them.
    Games(games::Args),
    /// The kernels that this processor can run.
    Cpu(cpu::Args),
    /// Whether this build works on this machine: kernels, values, a run, what verify finds.
    Selftest(selftest::Args),
    /// Man pages and shell completions.
    Generate(generate::Args),
}

/// How values are computed; the values are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KernelChoice {
    /// The fastest of this processor.
    Auto,
    /// 512-bit vectors (AVX-512 F, BW, VL, VBMI and VPOPCNTDQ; POPCNT, BMI1, BMI2).
    Avx512,
    /// 256-bit vectors (AVX2, POPCNT, BMI1, BMI2).
    Avx2,
    /// Portable.
    Scalar,
    /// All pairs for every value: slow, and right by construction.
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
        let missing =
            || anyhow::anyhow!("this processor cannot run the kernel {name}; 'grundy cpu' lists those it can");
        Ok(Method::Sparse(Kernel::named(name).ok_or_else(missing)?))
    }
}

/// How a command computes.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Compute {
    /// Threads; left out: one a core.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// How values are computed.
    #[arg(long, value_enum, default_value = "auto")]
    kernel: KernelChoice,
}

impl Compute {
    /// Threads; 0 for one a core.
    fn threads(self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}

/// Starts the threads that library functions without a thread count use, one per core. Without this they would start
/// at the first use, and panic where a limit of memory or processes does not allow it.
///
/// # Errors
/// When the threads cannot be started.
fn start_threads() -> anyhow::Result<()> {
    use std::error::Error as _;
    match rayon::ThreadPoolBuilder::new().build_global() {
        // Without a cause: the threads are there already.
        Err(error) if error.source().is_some() => {
            Err(anyhow::anyhow!("starting threads: {error}; raise the limit of memory or processes ('ulimit -a')"))
        }
        _ => Ok(()),
    }
}

/// A line for people on stderr. Whoever does not listen is not told, and nothing else changes.
macro_rules! complain {
    ($($what:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($what)*);
    }};
}
use complain;

/// Exit status of `merge` when expected results are missing.
const INCOMPLETE: u8 = 4;

/// Exit status when another process is using the directory: EX_TEMPFAIL of sysexits.h, try again later.
const IN_USE: u8 = 75;

/// Parses the command line, does what it says and returns the exit status.
pub(crate) fn main() -> ExitCode {
    let prepared = signals::prepare();
    let cli = Cli::parse();
    progress::init_log(cli.quiet);
    match prepared.and_then(|()| dispatch(cli.command, cli.quiet)) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<grundy::Error>() {
                Some(whole) => complain!("grundy: error: {whole}"), // its text has the cause in it
                None => complain!("grundy: error: {error:#}"),
            }
            exit_status(&error)
        }
    }
}

fn dispatch(command: Command, quiet: bool) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => return run::run(&args, quiet),
        Command::Verify(args) => return verify::verify(&args, quiet),
        Command::Period(args) => return period::period(&args, quiet),
        Command::Survey(args) => return survey::survey(&args, quiet),
        Command::Merge(args) => return survey::merge(&args),
        Command::Selftest(args) => return selftest::selftest(&args),
        Command::Status(args) => status::status(&args),
        Command::Values(args) => values::values(&args, quiet),
        Command::Export(args) => export::export(&args, quiet),
        Command::Play(args) => play::play(&args, quiet),
        Command::Rectangle(args) => rectangle::rectangle(&args, quiet),
        Command::Graph(args) => graph::graph(&args),
        Command::Board(args) => board::board(&args, quiet),
        Command::Tune(args) => tune::tune(&args, quiet),
        Command::Games(args) => games::games(&args),
        Command::Cpu(args) => cpu::cpu(&args),
        Command::Generate(args) => generate::generate(&args),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// A mistake in what was typed that clap could not see.
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

/// Whether the reader of our output has gone away, which is no error of ours.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}

/// The directory of the runs whose directory is not named.
const RUNS: &str = "runs";

/// The directory of a game's run unless another is named.
fn default_directory(rule: &grundy::theory::rule::Rule) -> PathBuf {
    PathBuf::from(RUNS).join(rule.directory_name())
}

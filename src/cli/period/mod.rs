//! `grundy period`: find a period and prove it.
//!
//! The values of a directory are verified before they are searched. A signal ends a search early: the command prints
//! what it has found with the status `stopped` and exits with status 130. If the proof is complete when the signal
//! arrives, including the least preperiod and the data of the certificate, the command reports the proof and exits with
//! status 0.

pub(super) mod report;
mod rows;

use report::{Object, Report};

use super::advice::{quoted, quoted_path};
use super::deadline::Deadline;
use super::layout::{counted, fitted};
use super::number;
use super::output::Output;
use super::progress::{Meter, means, note};
use super::signals::{STOPPED, stop_flag, until_stopped};
use super::source::{Source, is_slow};
use super::temporary::Temporary;
use super::{Compute, complain};
use anyhow::{Result, bail};
use grundy::period::certificate::Certificate;
use grundy::period::{self, Finding, Found, LISTED, MemorySearch, Repeat, RunSearch, Stopped, Subject};
use grundy::run::{Observer, Options, RunReader};
use grundy::solver::Method;
use grundy::theory::catalogue::{self, PeriodFact, Sourced};
use grundy::theory::definition::{Prefix, Sequence};
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of values held in memory, two bytes each; longer sequences are computed in a directory.
pub(super) const IN_MEMORY: u64 = 1 << 28;

/// Default of `--to`: maximum number of values to compute.
const TO: u64 = 1 << 24;

/// The same for a game whose values take long ([`is_slow`]).
const TO_OF_SLOW: u64 = 1 << 14;

/// Name of the search in progress lines.
const TASK: &str = "period";

/// Arguments of `grundy period`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy period kayles\n         \
                        grundy period .104 --to 2^29 --certificate 104.json\n         \
                        grundy verify 104.json\n         \
                        grundy period runs/grundy --json\n         \
                        grundy period .106 --to 2^40 --keep 1G --dir runs/106\n\n\
                        The values of a directory are verified against its journal before they are searched; damage \
                        ends the command with exit status 3, and so does a proof that contradicts the known period of the \
                        game. Without a period, --certificate, --exceptions and --values \
                        end it with exit status 1. A signal (Ctrl-C) stops a search with exit status 130; with --dir, \
                        the same command resumes it. A proof that is complete when the signal arrives is reported.\n\n\
                        JSON keys: game status period preperiod max_value theorem checked_through preperiod_at_most \
                        saltus needed exceptions exception_heaps searched_end searched_from. 'status' is proved, \
                        observed, none, or stopped. Unknown numbers are null; so is 'preperiod' if the values that \
                        determine it have been freed. 'checked_through' is the number of values searched, \
                        'searched_from' the first n searched. 'saltus' is not 0 if G(n+period) = G(n) + saltus; it \
                        is 0 for octal codes that do not repeat: none of these games is arithmetic-periodic. \
                        'needed' is a number of values that suffices for a proof of an observed period, if the \
                        repetition lasts; P2 and P4 may need fewer. 'exceptions' is \
                        the number of n before the preperiod that do not fit the period, 'exception_heaps' the first \
                        100 of them. 'searched_end' is a number of last values that do not occur earlier in the sequence; \
                        null if there are too few values to tell.\n\n\
                        --values prints rows of whole periods if they fit 80 columns, otherwise rows of twenty or \
                        ten.\n\n\
                        --exceptions writes lines of n and G(n). An exception is an n before the preperiod whose \
                        value differs from the one that the period gives when it is continued backwards.")]
pub(crate) struct Args {
    /// Game, or run directory (./x is always a directory).
    #[arg(value_name = "GAME|DIR")]
    source: OsString,
    /// Maximum number of values to compute [default: 2^24; 2^14 if a move leaves three heaps, or two and the
    /// code repeats]; with a run directory, number of values to search [default: all].
    #[arg(long, value_name = "N", value_parser = number::positive, allow_negative_numbers = true)]
    to: Option<u64>,
    /// Compute in this directory, so that the search can be resumed [default: in memory; above 2^28 values in a
    /// temporary directory].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep the first 2^26 values and at least the last SIZE values, and free the others (with --dir, or above 2^28
    /// values) [default: keep all]. The period is then detected when it recurs; finding the preperiod computes
    /// some values again.
    #[arg(long, value_name = "SIZE", value_parser = number::positive, allow_negative_numbers = true)]
    keep: Option<u64>,
    /// Write a certificate of the proof to a file; 'grundy verify FILE' checks it. With '-', the certificate goes to
    /// stdout and the report to stderr.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Write all exceptions to a file, one 'n G(n)' per line. With '-', the exceptions go to stdout and the report to
    /// stderr.
    #[arg(long, value_name = "FILE", conflicts_with = "keep")]
    exceptions: Option<PathBuf>,
    /// Print the values up to the end of the first whole period in rows; a '*' marks each exception.
    #[arg(long, conflicts_with_all = ["json", "keep"])]
    values: bool,
    #[command(flatten)]
    deadline: Deadline,
    #[command(flatten)]
    compute: Compute,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Maximum number of values to compute.
    fn limit(&self, rule: &Rule) -> u64 {
        self.to.unwrap_or(if is_slow(rule) { TO_OF_SLOW } else { TO })
    }

    /// The shell command that resumes this one, with every option that changes its result.
    fn command(&self) -> String {
        let mut words = vec!["grundy period".to_owned(), quoted_path(Path::new(&self.source))];
        words.extend(self.to.map(|to| format!("--to {to}")));
        words.extend(self.dir.as_deref().map(|dir| format!("--dir {}", quoted_path(dir))));
        words.extend(self.keep.map(|keep| format!("--keep {keep}")));
        words.extend(self.certificate.as_deref().map(|file| format!("--certificate {}", quoted_path(file))));
        words.extend(self.exceptions.as_deref().map(|file| format!("--exceptions {}", quoted_path(file))));
        words.extend(self.values.then(|| "--values".to_owned()));
        words.extend(self.compute.words());
        words.extend(self.deadline.words());
        words.extend(self.json.then(|| "--json".to_owned()));
        words.join(" ")
    }

    /// Whether the certificate goes to stdout.
    fn is_certificate_printed(&self) -> bool {
        is_stdout(self.certificate.as_deref())
    }

    /// Whether the exceptions go to stdout.
    fn are_exceptions_printed(&self) -> bool {
        is_stdout(self.exceptions.as_deref())
    }
}

/// Whether this output is stdout.
fn is_stdout(path: Option<&Path>) -> bool {
    path.is_some_and(|path| Output::to(path).is_ok_and(|output| output.is_stdout()))
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Done,
    /// A signal stopped the search before `to` values were searched.
    Stopped {
        what: Stopped,
        to: u64,
    },
}

pub(crate) fn period(args: &Args, quiet: bool) -> Result<ExitCode> {
    let method = args.compute.kernel.method()?;
    args.compute.warn();
    for path in args.certificate.iter().chain(&args.exceptions) {
        super::output::can_write(path)?;
    }
    let output = |path: &Option<PathBuf>| path.as_deref().map(Output::to).transpose();
    let (certificate, exceptions) = (output(&args.certificate)?, output(&args.exceptions)?);
    if let (Some(certificate), Some(exceptions)) = (&certificate, &exceptions)
        && certificate.is_same(exceptions)
    {
        return Err(super::Usage("--certificate and --exceptions need different files".into()).into());
    }
    if args.are_exceptions_printed() && (args.json || args.values) {
        let text = "with --exceptions -, stdout contains nothing but the exceptions; give --exceptions a file name";
        return Err(super::Usage(text.into()).into());
    }
    if args.is_certificate_printed() && (args.json || args.values || args.are_exceptions_printed()) {
        let text = "with --certificate -, stdout contains nothing but the certificate; write it or the other to a file";
        return Err(super::Usage(text.into()).into());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.compute.threads()).build()?;
    pool.install(|| match Source::find(&args.source)? {
        Source::Directory(dir) => {
            for (option, is_given) in [("--dir", args.dir.is_some()), ("--keep", args.keep.is_some())] {
                if is_given {
                    let dir = dir.display();
                    let text = format!("{option} is for computing a game, but {dir} is a run directory; omit {option}");
                    return Err(super::Usage(text).into());
                }
            }
            search_directory(&dir, args, method, quiet)
        }
        Source::Game(rule) if rule.is_nim() => {
            if args.dir.is_some() || args.keep.is_some() {
                let text = "no values of nim are computed, because G(n) = n; omit --dir and --keep";
                return Err(super::Usage(text.into()).into());
            }
            nim(args)
        }
        Source::Game(rule) => match &args.dir {
            Some(dir) => on_disk(&rule, dir, args, method, quiet),
            None if args.limit(&rule) > IN_MEMORY => {
                note("the values are computed in a temporary directory; --dir DIR keeps them for a later search");
                on_disk(&rule, &Temporary::new("grundy-period-")?.run(), args, method, quiet)
            }
            None => in_memory(&rule, args, method, quiet),
        },
    })
}

/// Nim has no exceptions; its values are printed without a computation.
fn nim(args: &Args) -> Result<ExitCode> {
    if let Some(path) = &args.certificate {
        return Err(super::nim::no_certificate(path));
    }
    super::nim::report(args.json)?;
    if args.values {
        let repeat = Repeat { period: 1, preperiod: 0, exact: true, saltus: 1, proof: None };
        let values: Vec<u16> = (0..20).collect();
        rows::print(&values, &repeat, 19)?;
    }
    if let Some(path) = &args.exceptions {
        super::output::whole_file(path, |_| Ok(()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn in_memory(rule: &Rule, args: &Args, method: Method, quiet: bool) -> Result<ExitCode> {
    let to = args.limit(rule);
    let stop = stop_flag()?;
    let mut meter = Meter::with_task(quiet, TASK);
    args.deadline.arm(&stop, &meter)?;
    let most = rule.largest_heap().map_or(to, |largest| to.min(largest + 1));
    let means = means(rule, method.name(), rayon::current_num_threads());
    meter.introduce(format!("{TASK} {rule}: up to {} values in memory ({means})", HumanCount(most)));
    meter.started(rule, 0, Some(most));
    let go_on = |n| {
        meter.at(n);
        !stop.load(Ordering::Relaxed)
    };
    let mut search = MemorySearch::new(rule, method);
    let is_done = search.until_proved(to, go_on)? || {
        search.search_known()?;
        search.is_proved() || search.count() >= to
    };
    meter.end();
    if search.has_restarted() {
        complain!(
            "grundy: warning: a check failed, so the search computed all values again: test the memory of this machine"
        );
    }
    if let Some(end) = search.end().filter(|_| !search.is_proved()) {
        complain!("grundy: warning: {end}");
    }
    let ending = if is_done { Ending::Done } else { Ending::Stopped { what: Stopped::Searching, to } };
    conclude(search.subject(), search.finding().expect("the values were searched"), ending, args)
}

fn on_disk(rule: &Rule, dir: &Path, args: &Args, method: Method, quiet: bool) -> Result<ExitCode> {
    let to = args.limit(rule);
    if !super::source::may_have_run(dir) {
        super::output::refuse_unsuitable_directory(&Path::new(".").join(dir))?;
    }
    let stop = stop_flag()?;
    let mut meter = Meter::with_task(quiet, TASK);
    args.deadline.arm(&stop, &meter)?;
    let threads = args.compute.threads();
    let options = Options { to: Some(to), threads, method, width: None, keep: args.keep, rollback: false };
    let search = RunSearch { rule, dir, options: &options, certify: args.certificate.is_some() };
    let found = search.compute_until_proved(&mut meter, &stop);
    meter.end();
    match found? {
        Found::Unverified { verified, of } => unverified(rule, verified, of, args),
        Found::Searched { view, finding, stopped } => {
            let freed = view.discarded_stats()?;
            let subject = Subject { rule, method, space: view.space(), values: &*view, freed: &freed };
            let ending = stopped.map_or(Ending::Done, |what| Ending::Stopped { what, to });
            conclude(subject, &finding, ending, args)
        }
    }
}

/// Verifies a run directory, then searches its values.
fn search_directory(dir: &Path, args: &Args, method: Method, quiet: bool) -> Result<ExitCode> {
    let stop = stop_flag()?;
    let rule = RunReader::open(dir)?.rule;
    if rule.is_nim() {
        return nim(args);
    }
    let meter = Meter::new(quiet);
    args.deadline.arm(&stop, &meter)?;
    let view = verified(dir, &meter, &stop);
    meter.end();
    let view = match view? {
        Ok(view) => view,
        Err((verified, of)) => return unverified(&rule, verified, of, args),
    };
    let freed = view.discarded_stats()?;
    let values = &Prefix { of: &view, count: args.to.unwrap_or(u64::MAX).min(view.len()) };
    let subject = Subject { rule: &view.rule, method, space: view.space(), values, freed: &freed };
    meter.begin(&format!("{TASK} {}", view.rule), values.len(), None);
    let at_stop = || {
        meter.end();
        stopped(&rule, "stopped before the search was complete", args);
    };
    let finding = until_stopped(&stop, at_stop, || subject.find());
    meter.end();
    let finding = finding?;
    if let Some(to) = args.to.filter(|&to| to > view.len() && finding.repeat.is_none()) {
        note(&format!("the run has {} values, fewer than --to {to}", HumanCount(view.len())));
    }
    conclude(subject, &finding, Ending::Done, args)
}

/// Verifies the kept values of a run against its journal and opens the run. If `stop` is set meanwhile, the inner error
/// is the number of values verified and the number to verify.
fn verified(dir: &Path, meter: &Meter, stop: &AtomicBool) -> Result<Result<RunReader, (u64, u64)>> {
    let mut reached = None;
    let view = grundy::verify::verified(dir, |done, of| {
        reached = Some((done, of));
        meter.phase("verifying", done, of);
        !stop.load(Ordering::Relaxed)
    })?;
    Ok(view.ok_or(reached.unwrap_or_default()))
}

/// Reports that a signal stopped the verification, so that no value was searched.
fn unverified(rule: &Rule, verified: u64, of: u64, args: &Args) -> Result<ExitCode> {
    let (verified, of) = (HumanCount(verified), HumanCount(of));
    stopped(rule, &format!("stopped after {verified} of {of} values were verified; no value was searched"), args);
    Ok(ExitCode::from(STOPPED))
}

/// Reports a search without a result that a signal stopped. The exit status is the same whether or not this can be
/// printed.
fn stopped(rule: &Rule, what: &str, args: &Args) {
    let _ = super::output::print(|out| {
        if args.json {
            let object = Object { game: rule.name(), status: "stopped".into(), ..Object::default() };
            return super::output::object(out, &object);
        }
        Ok(writeln!(out, "{rule}: {what}")?)
    });
    complain!("stopped; to resume: {}", args.command());
}

/// What is known of a period beside a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    /// No period is known, or the known one was found.
    Agrees,
    /// No period was found, or a period without a proof that is not the known one: the search ended too early.
    Differs { period: u64, preperiod: u64 },
    /// The proof contradicts what is known, as the clause states: a computed value is wrong, or the catalogue is.
    Contradicts(String),
}

impl Known {
    fn beside(rule: &Rule, finding: &Finding) -> Known {
        let Some(Sourced { fact, .. }) = catalogue::known(rule).period else { return Known::Agrees };
        let is_it = |repeat: &Repeat| match fact {
            PeriodFact::Periodic { period, preperiod } => {
                let fits = if repeat.exact { repeat.preperiod == preperiod } else { preperiod <= repeat.preperiod };
                repeat.period == period && fits
            }
            PeriodFact::Searched { .. } => false,
        };
        let repeat = finding.repeat.as_ref().filter(|repeat| !is_it(repeat));
        let proved = repeat.filter(|repeat| repeat.proof.is_some());
        if let Some(known) = proved.and_then(|proved| fact.contradiction(proved.period, proved.preperiod)) {
            return Known::Contradicts(known);
        }
        match fact {
            PeriodFact::Periodic { period, preperiod } if repeat.is_some() || finding.repeat.is_none() => {
                Known::Differs { period, preperiod }
            }
            _ => Known::Agrees,
        }
    }

    /// Tells the user. Returns whether the proof may be wrong.
    fn report(&self, rule: &Rule) -> bool {
        let name = quoted(rule.name());
        match self {
            Known::Agrees => false,
            Known::Differs { period, preperiod } => {
                let [period, preperiod] = [*period, *preperiod].map(HumanCount);
                note(&format!(
                    "the period of {rule} is known to be {period}, from n = {preperiod} on ('grundy info {name}')"
                ));
                false
            }
            Known::Contradicts(known) => {
                complain!(
                    "grundy: warning: the proof contradicts the catalogue ('grundy info {name}'): {known}. A computed \
                     value is wrong, or the catalogue is. No certificate is written. Repeat the search, if possible on \
                     another machine, and report the game if it finds the same"
                );
                true
            }
        }
    }
}

/// Prints the finding and writes the certificate; after a signal, prints the command that resumes the search.
fn conclude(subject: Subject<'_>, finding: &Finding, ending: Ending, args: &Args) -> Result<ExitCode> {
    let exceptions = exceptions(subject, finding)?;
    let count = exceptions.as_ref().map(|(count, _)| *count);
    let report = Report { rule: subject.rule, finding, ending, exceptions };
    let printed = if args.is_certificate_printed() || args.are_exceptions_printed() {
        complain!("{}", fitted(&report.to_string()).trim_end());
        Ok(())
    } else {
        super::output::print(|out| {
            if args.json {
                return super::output::object(out, &report.object());
            }
            Ok(out.write_all(fitted(&report.to_string()).as_bytes())?)
        })
    };
    if ending == Ending::Done {
        let contradicts = Known::beside(subject.rule, finding).report(subject.rule);
        let printed = printed.and_then(|()| {
            if !args.values {
                return Ok(());
            }
            let repeat = compared(subject, finding, "no values are printed")?;
            rows::print(subject.values, repeat, finding.max_value)
        });
        // Each output is written whether or not the others could be.
        let written = write_exceptions(subject, finding, count, args);
        if contradicts {
            return written.and(printed).map(|()| ExitCode::from(3));
        }
        certify(subject, finding, args)?;
        return written.and(printed).map(|()| ExitCode::SUCCESS);
    }
    let contradicts = Known::beside(subject.rule, finding).report(subject.rule);
    match args.dir {
        Some(_) => complain!("stopped; to resume: {}", args.command()),
        None => complain!(
            "stopped; nothing was kept. To keep the values, so that the search can be resumed: {} --dir DIR",
            args.command()
        ),
    }
    if contradicts {
        return printed.map(|()| ExitCode::from(3));
    }
    Ok(ExitCode::from(STOPPED))
}

/// The number of values before the preperiod that do not fit the period, and the first n of them; `None` if they are
/// not known.
fn exceptions(subject: Subject<'_>, finding: &Finding) -> Result<Option<(u64, Vec<u64>)>> {
    if let Some(copies) = &finding.copies {
        return Ok(copies.exceptions.clone());
    }
    let Some(repeat) = &finding.repeat else { return Ok(None) };
    if !repeat.exact || !subject.values.discarded().is_empty() {
        return Ok(None);
    }
    Ok(Some(period::exceptions(subject.values, repeat, LISTED)?))
}

/// The repetition, if all values are there, so that each of them can be compared with it; otherwise an error that
/// begins with `what`.
fn compared<'a>(subject: Subject<'_>, finding: &'a Finding, what: &str) -> Result<&'a Repeat> {
    let Some(repeat) = &finding.repeat else { bail!("{what}, because no period was found") };
    if !subject.values.discarded().is_empty() {
        bail!("{what}, because the run has freed values; compute the game without --keep, in another directory");
    }
    Ok(repeat)
}

/// Writes the exceptions to the file of `--exceptions`, one 'n G(n)' per line; `count` is their number.
fn write_exceptions(subject: Subject<'_>, finding: &Finding, count: Option<u64>, args: &Args) -> Result<()> {
    let Some(path) = &args.exceptions else { return Ok(()) };
    let repeat = compared(subject, finding, &format!("{}: no exceptions are written", path.display()))?;
    let output = Output::to(path)?;
    let count = count.unwrap_or(0);
    output.require_room(count.saturating_mul("0 0\n".len() as u64))?;
    note(&format!("{}: {} to {}", subject.rule, counted(count, "exceptions"), output.name()));
    output.write(|out| {
        period::compare_before_preperiod(subject.values, repeat, |n, value, fits| -> Result<()> {
            if !fits {
                writeln!(out, "{n} {value}")?;
            }
            Ok(())
        })
    })
}

/// Writes the certificate that `--certificate` requests.
fn certify(subject: Subject<'_>, finding: &Finding, args: &Args) -> Result<()> {
    let Some(path) = &args.certificate else { return Ok(()) };
    let repeat = finding.repeat.as_ref();
    let proof = repeat.and_then(|repeat| repeat.proof.as_ref());
    match repeat.map(|repeat| Certificate::new(subject, repeat, finding.copies.as_ref())).transpose()?.flatten() {
        Some(certificate) => {
            super::output::whole_file(path, |out| Ok(out.write_all(certificate.to_json().as_bytes())?))?;
            if !args.is_certificate_printed() {
                let quoted = quoted_path(path);
                note(&format!("wrote the certificate {}; 'grundy verify {quoted}' checks it", path.display()));
            }
            Ok(())
        }
        None if proof.is_none() => {
            Err(anyhow::anyhow!("{}: no certificate is written, because no period is proved", path.display()))
        }
        None => Err(anyhow::anyhow!(
            "{}: no certificate is written, because it would cover freed values, or too many values; 'grundy \
             period {} --keep SIZE --dir DIR --certificate FILE' computes the values again",
            path.display(),
            subject.rule
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_proof_that_contradicts_the_known_period_is_reported() {
        let rule: Rule = "kayles".parse().unwrap();
        let mut search = MemorySearch::new(&rule, Method::default());
        search.look(100, |_| true).unwrap();
        let mut finding = search.finding().unwrap().clone();
        assert!(finding.repeat.as_ref().is_none_or(|repeat| repeat.proof.is_none()));
        let known = Known::Differs { period: 12, preperiod: 71 };
        assert!(Known::beside(&rule, &finding) == known && !known.report(&rule));

        search.until_proved(5000, |_| true).unwrap();
        finding = search.finding().unwrap().clone();
        assert_eq!(Known::beside(&rule, &finding), Known::Agrees);
        finding.repeat.as_mut().unwrap().preperiod += 1;
        let known = Known::beside(&rule, &finding);
        assert!(matches!(&known, Known::Contradicts(why) if why.contains("12, from n = 71 on")), "{known:?}");
        assert!(known.report(&rule));
    }

    #[test]
    fn resume_command_keeps_every_option_and_quotes_for_a_shell() {
        let given = ["period", ".777", "--to", "2^30", "--dir", "a b/it's", "--certificate", "c;d.json"];
        let more = ["--exceptions", "e f", "--threads", "3", "--kernel", "scalar", "--for", "90m", "--json"];
        let line = Line::parse_from(given.iter().chain(&more));
        let command = line.args.command();
        assert_eq!(
            command,
            r"grundy period .777 --to 1073741824 --dir 'a b/it'\''s' --certificate 'c;d.json' --exceptions 'e f' --threads 3 --kernel scalar --for 1h30m --json"
        );
        assert_eq!(Line::parse_from(["period", "$HOME"]).args.command(), "grundy period '$HOME'");
        for rest in ["--keep 5", "--values"] {
            let line = Line::parse_from(["period", ".7"].into_iter().chain(rest.split(' ')));
            assert_eq!(line.args.command(), format!("grundy period .7 {rest}"));
        }
    }
}

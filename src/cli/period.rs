//! `grundy period`: find a period, and prove it.

use super::number;
use super::progress::Meter;
use super::signals::stop_flag;
use super::source::Source;
use super::{Compute, KernelChoice};
use anyhow::{Context, Result};
use grundy::definition::{First, Sequence};
use grundy::engine::{Options, View};
use grundy::period::certificate::Certificate;
use grundy::period::{self, Finding, LISTED, Repeat, Status, Subject, Theorem, exceptions};
use grundy::rule::Rule;
use grundy::sparse::{Known, Method};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Up to so many values are held in memory, two bytes each; more go to a directory.
const IN_MEMORY: u64 = 1 << 28;

/// How far a search goes unless it is told otherwise.
const TO: u64 = 1 << 24;

/// Arguments of `grundy period`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy period kayles\n         \
                        grundy period .104 --to 2^29 --certificate 104.json\n         \
                        grundy verify 104.json\n         \
                        grundy period runs/grundy --json\n\
                        grundy period .106 --to 2^40 --keep 1G --dir runs/106\n\
                        JSON keys: game status period preperiod max_value theorem checked_through preperiod_at_most\n\
                        saltus needed exceptions exception_heaps searched_end searched_from. 'status' is proved, observed or none;\n\
                        numbers that there are not are null, the preperiod too when values are freed that would tell.\n\
                        'saltus' is not 0 when G(n+period) = G(n) + saltus. 'needed' is how many\n\
                        values a proof of what is observed would need. 'exception_heaps' are the first 100 heaps before\n\
                        the preperiod that do not fit the period. 'searched_end': no period shows in the last so many\n\
                        values, when none is found, among those from 'searched_from' on.")]
pub(crate) struct Args {
    /// A game, or the directory of a run (./x is always a directory).
    #[arg(value_name = "GAME|DIR")]
    source: String,
    /// How many values are computed at most, 2^24 unless given; of a directory, how many are looked at.
    #[arg(long, value_name = "N", value_parser = number::positive)]
    to: Option<u64>,
    /// Compute in this directory, which can be resumed; without it in memory, or in a temporary directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep the first 2^26 values and at least the last SIZE, free the others (with --dir, or beyond 2^28 values). The
    /// period then shows when it comes round; for the preperiod the values are computed again.
    #[arg(long, value_name = "SIZE", value_parser = number::positive)]
    keep: Option<u64>,
    /// Write what was proved to a file that 'grundy verify FILE' checks.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    compute: Compute,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn period(args: &Args, quiet: bool) -> Result<ExitCode> {
    let method = args.compute.kernel.method()?;
    args.certificate.as_deref().map_or(Ok(()), super::output::can_write)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.compute.threads()).build()?;
    pool.install(|| match Source::find(&args.source)? {
        Source::Directory(dir) => {
            if args.dir.is_some() {
                return Err(
                    super::Usage("--dir says where to compute; here a directory is given already".into()).into()
                );
            }
            let view = View::open(&dir)?;
            look_at(&view, args, method)?;
            Ok(ExitCode::SUCCESS)
        }
        Source::Game(rule) => {
            let to = args.to.unwrap_or(TO);
            match &args.dir {
                Some(dir) => on_disk(&rule, to, dir, args, method, quiet),
                None if to > IN_MEMORY => {
                    let dir = tempfile::Builder::new().prefix("grundy-period-").tempdir()?;
                    on_disk(&rule, to, dir.path(), args, method, quiet)
                }
                None => in_memory(&rule, to, args, method, quiet),
            }
        }
    })
}

fn in_memory(rule: &Rule, to: u64, args: &Args, method: Method, quiet: bool) -> Result<ExitCode> {
    let stop = stop_flag()?;
    let mut meter = Meter::new(quiet);
    meter.begin(rule.name(), 0, Some(to));
    let go_on = |n| {
        meter.at(n, String::new);
        !stop.load(Ordering::Relaxed)
    };
    let hunt = period::hunt(rule, method, |_, _| to, go_on)?;
    meter.end();
    let freed = Known::default();
    let subject = Subject { rule, method, space: hunt.space, values: hunt.values.as_slice(), freed: &freed };
    tell(subject, &hunt.finding, args)?;
    if hunt.stopped {
        super::complain!("stopped; with --dir the same command goes on where it was");
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

fn on_disk(rule: &Rule, to: u64, dir: &Path, args: &Args, method: Method, quiet: bool) -> Result<ExitCode> {
    let stop = stop_flag()?;
    let mut meter = Meter::new(quiet);
    let threads = args.compute.threads();
    let options = Options { to: Some(to), threads, method, width: None, keep: args.keep, rollback: false };
    let found = period::hunt_in(rule, dir, &options, args.certificate.is_some(), &mut meter, &stop);
    meter.end();
    let (view, finding, stopped) = found?;
    let freed = view.freed_known()?;
    tell(Subject { rule, method, space: view.space(), values: &view, freed: &freed }, &finding, args)?;
    if stopped {
        if args.dir.is_some() {
            super::complain!("stopped; the same command goes on");
        }
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

fn look_at(view: &View, args: &Args, method: Method) -> Result<()> {
    let freed = view.freed_known()?;
    let values = &First { of: view, count: args.to.unwrap_or(u64::MAX).min(view.len()) };
    let subject = Subject { rule: &view.rule, method, space: view.space(), values, freed: &freed };
    tell(subject, &subject.find()?, args)
}

/// Prints what was found, and writes the certificate.
fn tell<S: Sequence + ?Sized>(subject: Subject<'_, S>, finding: &Finding, args: &Args) -> Result<()> {
    let repeat = finding.repeat.as_ref();
    let odd = match repeat {
        _ if finding.lag.is_some() => finding.lag.as_ref().and_then(|lag| lag.exceptions.clone()),
        Some(r) if r.exact && r.saltus == 0 && subject.values.freed().is_empty() => {
            Some(exceptions(subject.values, r.period, r.preperiod, LISTED)?)
        }
        _ => None,
    };
    let proof = repeat.and_then(|repeat| repeat.proof.as_ref());
    super::output::print(|out| {
        if args.json {
            let object = serde_json::json!({
                "game": subject.rule.name(),
                "status": finding.status(),
                "period": repeat.map(|r| r.period),
                "preperiod": repeat.filter(|r| r.exact).map(|r| r.preperiod),
                "max_value": finding.max_value,
                "theorem": proof.map(|proof| proof.theorem),
                "checked_through": finding.count,
                "preperiod_at_most": repeat.map(|r| r.preperiod),
                "saltus": repeat.map(|r| r.saltus),
                "needed": if proof.is_none() { finding.needed(subject.rule) } else { None },
                "exceptions": odd.as_ref().map(|odd| odd.0),
                "exception_heaps": odd.as_ref().map(|odd| &odd.1),
                "searched_end": repeat.is_none().then_some(finding.shortest),
                "searched_from": finding.start,
            });
            return Ok(writeln!(out, "{object}")?);
        }
        in_words(out, subject, finding, odd.as_ref())
    })?;
    let Some(path) = &args.certificate else { return Ok(()) };
    match repeat.map(|repeat| Certificate::new(subject, repeat, finding.lag.as_ref())).transpose()?.flatten() {
        Some(certificate) => {
            super::output::whole_file(path, |out| Ok(out.write_all(certificate.to_json().as_bytes())?))
        }
        None if proof.is_none() => {
            Err(anyhow::anyhow!("{}: no certificate is written, since no period is proved", path.display()))
        }
        None => Err(anyhow::anyhow!(
            "{}: no certificate is written, since it would speak of values that are freed; 'grundy period GAME --keep SIZE --dir DIR --certificate FILE' \
             computes them again",
            path.display()
        )),
    }
}

fn in_words<S: Sequence + ?Sized>(
    out: &mut dyn Write,
    subject: Subject<'_, S>,
    finding: &Finding,
    odd: Option<&(u64, Vec<u64>)>,
) -> Result<()> {
    let (rule, count) = (subject.rule, finding.count);
    let Some(repeat) = &finding.repeat else {
        let (largest, shortest, start) = (finding.max_value, finding.shortest, finding.start);
        match (shortest, start) {
            (0, _) => writeln!(out, "{rule}: none: {count} values are too few to look for a period")?,
            (_, 0) => writeln!(
                out,
                "{rule}: none: {count} values, the largest {largest}, show no period: the last {shortest} stand nowhere \
                 before"
            )?,
            _ => writeln!(
                out,
                "{rule}: none: of {count} values, the largest {largest}, those from {start} on are kept and show no \
                 period: the last {shortest} stand nowhere before among them"
            )?,
        }
        return Ok(());
    };
    let Repeat { period, preperiod, exact, saltus, proof } = repeat;
    let status = finding.status();
    let at_most = if *exact { "" } else { "at most " };
    if *saltus > 0 {
        writeln!(out, "{rule}: {status}: G(n + {period}) = G(n) + {saltus} for {preperiod} <= n < {}", count - period)?;
        return Ok(());
    }
    writeln!(
        out,
        "{rule}: {status}: period {period}, preperiod {at_most}{preperiod}, largest value {}",
        finding.max_value
    )?;
    if let Some((count, heaps)) = odd.filter(|odd| odd.0 > 0) {
        /// In words, so many are enough.
        const FEW: usize = 20;
        let list: Vec<String> = heaps.iter().take(FEW).map(u64::to_string).collect();
        let more = if *count > list.len() as u64 { ", …" } else { "" };
        let noun = if *count == 1 { "exception" } else { "exceptions" };
        writeln!(out, "  {count} {noun}: {}{more}", list.join(", "))?;
    }
    match proof {
        Some(proof) => {
            let by = match proof.theorem {
                Theorem::P1 => "P1 (Guy and Smith)",
                Theorem::P2 => "P2 (Grundy's game)",
                Theorem::P3 => "P3 (splits with a least difference)",
                Theorem::P4 => "P4 (windows)",
            };
            match (exact, count.checked_sub(*period)) {
                (true, Some(end)) => writeln!(
                    out,
                    "  proved by {by}: G(n + {period}) = G(n) was compared for all n from {preperiod} to {}",
                    end.saturating_sub(1)
                )?,
                _ => writeln!(
                    out,
                    "  proved by {by}, from {preperiod} on; values that would tell the preperiod are freed ('grundy period {rule} \
                     --dir DIR' computes them again)"
                )?,
            }
            match proof.window {
                Some(w) => writeln!(
                    out,
                    "  the {} values before {} and {} agree; between them no heap is rare (the last of {} is {}), and \
                     witnesses lie at most {} deep",
                    w.width(rule),
                    w.from,
                    w.to,
                    w.rares,
                    w.last_rare,
                    w.depth
                )?,
                None => writeln!(out, "  the first {} values were needed, {count} are there", proof.length)?,
            }
        }
        None => {
            write!(out, "  G(n + {period}) = G(n) for {preperiod} <= n < {}; that is no proof", count - period)?;
            match finding.needed(rule) {
                Some(needed) => writeln!(out, ", for which {needed} values are needed: --to {needed}")?,
                None => writeln!(out)?,
            }
        }
    }
    Ok(())
}

/// Checks a certificate, computing the game's values anew.
pub(super) fn verify(path: &Path, json: bool, quiet: bool) -> Result<ExitCode> {
    let text = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let certificate = Certificate::parse(&text)?;
    let rule = certificate.the_rule()?;
    let method = KernelChoice::Auto.method()?;
    let count = certificate.checked_through;
    if count > IN_MEMORY {
        let stop = stop_flag()?;
        let dir = tempfile::Builder::new().prefix("grundy-verify-").tempdir()?;
        let mut meter = Meter::new(quiet);
        let options = Options { to: Some(count), threads: 0, method, width: None, keep: None, rollback: false };
        let outcome = grundy::engine::run(Some(&rule), dir.path(), &options, &mut meter, &stop);
        meter.end();
        if outcome?.stopped {
            super::complain!("stopped before the certificate was checked");
            return Ok(ExitCode::from(130));
        }
        certificate.check(method, &View::open(dir.path())?)?;
    } else {
        let mut meter = Meter::new(quiet);
        meter.begin(rule.name(), 0, Some(count));
        let length = usize::try_from(count)?;
        let values = grundy::sparse::extend(&rule, method, Vec::new(), length, grundy::sparse::BLOCK, |n| {
            meter.at(n, String::new);
            true
        })?;
        meter.end();
        certificate.check(method, values.as_slice())?;
    }
    let Certificate { theorem, period, preperiod, .. } = certificate;
    super::output::print(|out| {
        if json {
            let object = serde_json::json!({
                "game": rule.name(), "status": Status::Proved, "period": period, "preperiod": preperiod,
                "max_value": certificate.max_value, "theorem": theorem, "checked_through": count,
            });
            writeln!(out, "{object}")?;
        } else {
            writeln!(
                out,
                "{rule}: period {period}, preperiod {preperiod}, by {theorem}: {count} values computed anew, all as the \
                 certificate says"
            )?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

//! `grundy selftest`: test this build on this machine.

use super::layout::fitted_after;
use super::progress::{Meter, note};
use super::signals::stop_flag;
use anyhow::Result;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Arguments of `grundy selftest`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy selftest\n\n\
                        Takes about 10 to 20 seconds and writes below TMPDIR. Exit status 3 if a \
                        check fails, 1 if checks fail only because the system does not permit them (no room).\n\n\
                        JSON keys: ok checks. Each element of 'checks' has name ok said milliseconds")]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn selftest(args: &Args, quiet: bool) -> Result<ExitCode> {
    super::start_threads(0)?;
    let mut checks = Vec::new();
    let mut is_wrong = false;
    let mut printed = Ok(());
    let stop = stop_flag()?;
    let meter = Meter::new(quiet);
    meter.begin_counting("checks", "selftest", 0, Some(grundy::selftest::names().len() as u64));
    let mut done = 0;
    let all_ok = grundy::selftest::run(|check| {
        done += 1;
        meter.at(done);
        let ok = check.outcome.is_ok();
        is_wrong |= !ok && !check.is_hindered;
        let said = match &check.outcome {
            Ok(said) | Err(said) => said,
        };
        if args.json {
            checks.push(serde_json::json!({
                "name": check.name, "ok": ok, "said": said,
                "milliseconds": u64::try_from(check.time.as_millis()).unwrap_or(u64::MAX),
            }));
        } else if printed.is_ok() {
            let word = if ok { "ok    " } else { "FAILED" };
            let seconds = check.time.as_secs_f64();
            let line = fitted_after(&format!("{word} {seconds:5.1} s  "), &format!("{}: {said}", check.name));
            printed = meter.print_above(|| super::output::print(|out| Ok(writeln!(out, "{line}")?)));
        }
        !stop.load(Ordering::Relaxed)
    });
    meter.end();
    printed?;
    let all = grundy::selftest::names().len() as u64;
    if done < all && stop.load(Ordering::Relaxed) {
        super::complain!("stopped after {done} of {all} checks");
        return Ok(ExitCode::from(super::signals::STOPPED));
    }
    if args.json {
        super::output::print(|out| {
            writeln!(out, "{}", serde_json::json!({ "ok": all_ok, "checks": checks }))?;
            Ok(())
        })?;
    }
    Ok(match (all_ok, is_wrong) {
        (true, _) => {
            note(&format!("all {all} checks passed: they found no fault of this build on this machine"));
            ExitCode::SUCCESS
        }
        (false, true) => ExitCode::from(3),
        (false, false) => ExitCode::FAILURE,
    })
}

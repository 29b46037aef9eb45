//! Nim without computing: G(n) = n for every n, also where n does not fit the 16 bits of a stored value.

use super::output::print;
use anyhow::{Result, anyhow};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

/// `grundy values nim`.
pub(super) fn values(ranges: &[Range<u64>], json: bool) -> Result<()> {
    print(|out| {
        for n in ranges.iter().cloned().flatten() {
            match json {
                true => writeln!(out, "{{\"n\":{n},\"value\":{n}}}")?,
                false => writeln!(out, "{n} {n}")?,
            }
        }
        Ok(())
    })
}

/// `grundy period nim`. The differences are periodic, the values are not, so none of the theorems applies; the proof is
/// induction over n.
pub(super) fn period(json: bool, certificate: Option<&Path>) -> Result<ExitCode> {
    print(|out| match json {
        true => {
            let object = serde_json::json!({
                "game": "nim",
                "status": "proved",
                "period": 1,
                "preperiod": 0,
                "max_value": null,
                "theorem": null,
                "checked_through": 0,
                "preperiod_at_most": 0,
                "saltus": 1,
                "needed": null,
                "exceptions": null,
                "exception_heaps": null,
                "searched_end": null,
                "searched_from": 0,
            });
            Ok(writeln!(out, "{object}")?)
        }
        false => Ok(writeln!(
            out,
            "nim: proved: G(n + 1) = G(n) + 1 for all n, since G(n) = n: period 1, saltus 1, preperiod 0"
        )?),
    })?;
    match certificate {
        None => Ok(ExitCode::SUCCESS),
        Some(path) => Err(anyhow!(
            "{}: no certificate is written: certificates are for periods with saltus 0; G(n) = n needs none",
            path.display()
        )),
    }
}

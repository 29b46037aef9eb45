//! `values` and `period` of nim without a computation: G(n) = n for every n, also if n does not fit in the 16 bits of a
//! stored value.

use super::output::print;
use super::period::report::Object;
use anyhow::{Result, anyhow};
use std::ops::Range;
use std::path::Path;

/// Runs `grundy values nim`.
pub(super) fn values(ranges: &[Range<u64>], json: bool) -> Result<()> {
    print(|out| {
        for n in ranges.iter().cloned().flatten() {
            if json {
                writeln!(out, "{{\"n\":{n},\"value\":{n}}}")?;
            } else {
                writeln!(out, "{n} {n}")?;
            }
        }
        Ok(())
    })
}

/// Prints the result of `grundy period nim`. The differences G(n+1) - G(n) are periodic, the values are not, so none of
/// the period theorems applies; the proof is induction over n.
pub(super) fn report(json: bool) -> Result<()> {
    print(|out| {
        if json {
            let object = Object {
                game: "nim",
                status: "proved".into(),
                period: Some(1),
                preperiod: Some(0),
                preperiod_at_most: Some(0),
                saltus: Some(1),
                exceptions: Some(0),
                exception_heaps: Some(&[]),
                ..Object::default()
            };
            return super::output::object(out, &object);
        }
        Ok(writeln!(
            out,
            "nim: proved: G(n + 1) = G(n) + 1 for all n, because G(n) = n: period 1, saltus 1, preperiod 0"
        )?)
    })
}

/// The error for `--certificate`.
pub(super) fn no_certificate(path: &Path) -> anyhow::Error {
    let path = path.display();
    anyhow!("{path}: no certificate is written: certificates cover periods with saltus 0 only; G(n) = n needs none")
}

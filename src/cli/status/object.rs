//! The object of `status --json`.

use super::{Examined, State, fault};
use grundy::checkpoint::journal::{Checks, Origin};
use grundy::table::Width;
use serde::Serialize;
use std::time::SystemTime;

/// The object of `status --json`: one field per key.
#[derive(Serialize)]
pub(super) struct Object<'a> {
    dir: &'a str,
    game: &'a str,
    count: u64,
    width: Width,
    mask: u16,
    position: u8,
    rares: u64,
    last_rare: u64,
    max_value: u16,
    max_at: u64,
    too_large: Option<u64>,
    escapes: u64,
    digest: &'a str,
    checks: &'a Checks,
    errors: u64,
    suspect: Option<u64>,
    strategy: Option<&'a str>,
    time: &'a str,
    seconds: u64,
    kept: &'a [(u64, u64)],
    excluded: Option<ExcludedPeriods>,
    state: &'static str,
    running: Option<RunningProcess>,
    rate: Option<u64>,
    last_commit: Option<&'a str>,
    /// The machines that computed the values; null for values of which no record states it.
    machines: Vec<Option<String>>,
    /// Number of first values that another kernel on another machine computed with equal digests;
    /// null if `confirmed.json` is damaged.
    confirmed: Option<u64>,
}

/// The object `excluded` of `status --json`.
#[derive(Serialize)]
struct ExcludedPeriods {
    count: usize,
    largest: Option<u64>,
    least_left: u64,
    looked: u64,
}

/// The object `running` of `status --json`. Times are UTC, RFC 3339.
#[derive(Serialize)]
struct RunningProcess {
    pid: i32,
    since: Option<String>,
    to: Option<u64>,
    end: Option<String>,
}

impl<'a> Object<'a> {
    /// The object of the run in `dir`.
    pub(super) fn of(dir: &'a str, run: &'a Examined) -> Object<'a> {
        let record = &run.contents.last;
        let excluded = run.excluded.as_ref().map(|excluded| ExcludedPeriods {
            count: excluded.non_multiples.len(),
            largest: excluded.non_multiples.last().copied(),
            least_left: excluded.least_left,
            looked: excluded.examined,
        });
        let time = |time: SystemTime| humantime::format_rfc3339_seconds(time).to_string();
        let (state, running) = match &run.state {
            State::Running(holder) => ("running", Some(holder)),
            State::Stopped => ("stopped", None),
            State::Interrupted => ("interrupted", None),
            State::Unknown(_) => ("unknown", None),
        };
        let state = run.damage.as_ref().map_or(state, fault);
        let running = running.map(|holder| RunningProcess {
            pid: holder.pid,
            since: holder.since.map(time),
            to: holder.to,
            end: run.end().map(time),
        });
        Object {
            dir,
            game: &record.game,
            count: record.count,
            width: record.width,
            mask: record.mask,
            position: record.position,
            rares: record.rares,
            last_rare: record.last_rare,
            max_value: record.max_value,
            max_at: record.max_at,
            too_large: record.too_large,
            escapes: record.escapes,
            digest: &record.digest,
            checks: &record.checks,
            errors: record.errors,
            suspect: record.suspect,
            strategy: record.strategy.as_deref(),
            time: &record.time,
            seconds: record.seconds,
            kept: &record.kept,
            excluded,
            state,
            running,
            rate: run.pace.map(|pace| pace.rate),
            last_commit: run.last_commit.as_ref().map(|record| record.time.as_str()),
            machines: Origin::machines(&run.contents.origins),
            confirmed: run.confirmed.as_ref().ok().copied(),
        }
    }
}

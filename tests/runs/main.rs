//! Run directories and what can happen to them: stops, kills, damage, full disks, recovery and checks, through the
//! command line.

mod damage;
mod full_disk;
mod keep;
mod kill;
mod lock;
mod period_runs;
mod power_cut;
mod progress;
mod recovery;
mod resume;
mod signals;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod verify;

//! Computes Kayles in a directory and shows progress; stops when a file `stop` appears. The next call resumes the run.

use grundy::{Observer, Progress, Run};
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
struct Counter;
impl Observer for Counter {
    fn advanced(&mut self, progress: &Progress) {
        eprint!("\r{} values", progress.count);
        STOP.store(std::path::Path::new("stop").exists(), Ordering::Relaxed);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: run_with_progress DIR")?;
    let outcome = Run::builder(&"kayles".parse()?, dir).to(1_000_000).observer(&mut Counter).stop(&STOP).run()?;
    println!("{} values, the largest is {}", outcome.progress.count, outcome.progress.max_value);
    Ok(())
}

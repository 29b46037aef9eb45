//! Replays the corpora of the fuzzers: no input may panic, hang, or need more than 64 MiB.
//!
//! `scripts/fuzz` searches for new inputs. After the correction, a failing input becomes a file of `fuzz/corpus`.

#![cfg(has_corpora)]

mod support;

#[path = "../fuzz/properties.rs"]
mod properties;

use peak_alloc::PeakAlloc;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use support::Tally;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MOST_BYTES: usize = 64 << 20;
/// Maximum time for one input; inputs take milliseconds on an idle machine.
const LONGEST: Duration = Duration::from_secs(10);

/// One test for all inputs, because the peak of memory is measured for the whole process.
#[test]
fn every_corpus_input_keeps_the_fuzzed_properties() {
    let tally = Tally::begin("hostile text and files");
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let (mut cases, mut longest, mut most) = (0, Duration::ZERO, 0);
    for (name, property) in properties::ALL {
        let inputs = std::fs::read_dir(corpora.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut paths: Vec<_> = inputs.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert!(paths.len() >= 20, "{name} has {} inputs", paths.len());
        for path in paths {
            let input = std::fs::read(&path).unwrap();
            MEMORY.reset_peak_usage();
            let begun = Instant::now();
            let (done, wait) = mpsc::channel();
            let thread = std::thread::spawn(move || {
                property(&input);
                done.send(()).unwrap();
            });
            if wait.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
                panic!("{}: not done after {LONGEST:?}", path.display());
            }
            assert!(thread.join().is_ok(), "{}: see above", path.display());
            let peak = MEMORY.peak_usage();
            assert!(peak <= MOST_BYTES, "{}: {peak} bytes at once", path.display());
            (cases, longest, most) = (cases + 1, longest.max(begun.elapsed()), most.max(peak));
        }
    }
    let seen = format!("no panic, the longest took {longest:.1?}, the largest {:.1} MiB", most as f64 / 1048576.0);
    tally.end(cases, &seen);
}

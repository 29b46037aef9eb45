//! Prints values of a run directory: `cargo run --release --example read_run -- runs/grundy 1000 1012`

use grundy::RunReader;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, dir, from, to] = &arguments[..] else { return Err("usage: read_run DIR FROM TO".into()) };
    let (from, to) = (from.parse()?, to.parse()?);

    let run = RunReader::open(Path::new(dir))?;
    for (n, value) in (from..).zip(run.values(from..to)?) {
        println!("{n} {value}");
    }
    Ok(())
}

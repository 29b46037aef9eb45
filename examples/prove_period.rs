//! Proves the period of a game and writes the certificate: `... --example prove_period -- .16 16.json`

use grundy::{Rule, period};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, game, file] = &arguments[..] else { return Err("usage: prove_period GAME FILE".into()) };
    let rule: Rule = game.parse()?;

    let proved = period::prove(&rule, 1 << 24)?.ok_or("no period is proved by the first 2^24 values")?;
    proved.certificate().expect("a code names its game").write(Path::new(file))?;
    println!("period {}, preperiod {}, theorem {}", proved.period(), proved.preperiod(), proved.theorem());
    Ok(())
}

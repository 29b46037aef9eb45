//! Checks a certificate by computing every value that it covers: `... --example check_certificate -- 16.json`

use grundy::period::certificate::Certificate;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: check_certificate FILE")?;

    let certificate = Certificate::read(Path::new(&file))?;
    certificate.verify()?;
    println!("{} has period {} from {} on", certificate.game, certificate.period, certificate.preperiod);
    Ok(())
}

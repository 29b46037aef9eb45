//! Prints each value of Grundy's game that exceeds all earlier ones, without holding all values in memory.

use grundy::{Method, Rule, ValueStream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rule: Rule = "grundy".parse()?;
    let to = std::env::args().nth(1).as_deref().unwrap_or("10000000").parse()?;

    let mut largest = 0;
    let mut stream = ValueStream::new(&rule, Method::default(), to)?;
    while let Some((from, values)) = stream.next_chunk()? {
        for (n, &value) in (from..).zip(values) {
            if value > largest {
                println!("{n} {value}");
                largest = value;
            }
        }
    }
    Ok(())
}

//! Prints the first values of a game: `cargo run --release --example first_values -- kayles 50`

use grundy::Rule;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rule: Rule = arguments.next().as_deref().unwrap_or("grundy").parse()?;
    let count = arguments.next().as_deref().unwrap_or("39").parse()?;

    for (n, value) in grundy::values(&rule, count)?.into_iter().enumerate() {
        println!("{n} {value}");
    }
    Ok(())
}

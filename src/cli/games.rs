//! `grundy games`: the games that have names here.

use anyhow::Result;
use grundy::rule::KNOWN;

/// Arguments of `grundy games`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy games\nJSON keys: game aliases mask position about (mask 0: none known)")]
pub(crate) struct Args {
    /// JSON Lines, one object a game.
    #[arg(long)]
    json: bool,
}

pub(crate) fn games(args: &Args) -> Result<()> {
    super::output::print(|out| {
        for known in KNOWN {
            let (mask, position) = known.space.unwrap_or((0, 0));
            if args.json {
                let object = serde_json::json!({
                    "game": known.game, "aliases": known.aliases, "mask": mask, "position": position, "about": known.about,
                });
                writeln!(out, "{object}")?;
            } else {
                writeln!(out, "{:<16}{:<15}{}", known.game, known.aliases.join(" "), known.about)?;
            }
        }
        if !args.json {
            writeln!(out, "{:<16}{:<15}two heaps that differ by at least D (Schrage)", "grundy:d=D", "")?;
            writeln!(out, "{:<16}{:<15}octal games: 0.d1d2d3… and 4.d1d2d3…, digits 0 to 7", "0.77 4.3 …", "")?;
        }
        Ok(())
    })
}

//! `grundy games`: list the named games and what is known about them.

use anyhow::Result;
use grundy::Rule;
use grundy::theory::names::NAMED_GAMES;

/// Arguments of `grundy games`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy games\n\
                        Names are compared without case, blanks, hyphens, underscores and apostrophes. All games are\n\
                        under normal play: the player who cannot move loses.\n\
                        JSON keys: game aliases mask position last_rare period preperiod about. 'mask' is 0 if no\n\
                        sparse space is known; 'last_rare', 'period' and 'preperiod' are null if unknown.")]
pub(crate) struct Args {
    /// Print JSON Lines, one object per game.
    #[arg(long)]
    json: bool,
}

pub(crate) fn games(args: &Args) -> Result<()> {
    super::output::print(|out| {
        for known in NAMED_GAMES {
            let (mask, position) = known.space.unwrap_or((0, 0));
            if args.json {
                let object = serde_json::json!({
                    "game": known.game,
                    "aliases": known.aliases,
                    "mask": mask,
                    "position": position,
                    "last_rare": known.last_rare,
                    "period": known.period.map(|period| period.0),
                    "preperiod": known.period.map(|period| period.1),
                    "about": known.summary(),
                });
                writeln!(out, "{object}")?;
            } else {
                let alias = known.aliases.first().copied().unwrap_or_default();
                writeln!(out, "{:<16}{alias:<15}{}", known.game, known.summary())?;
            }
        }
        if !args.json {
            writeln!(out, "{:<16}{:<15}two heaps that differ by at least D (Schrage)", "grundy:d=D", "")?;
            writeln!(out, "{:<16}{:<15}octal games: 0.d1d2d3… and 4.d1d2d3…, digits 0 to 7", "0.77 4.3 …", "")?;
            writeln!(out, "{:<16}{:<15}hexadecimal games: digits 0 to F, after 0, 4, 8 or C", "0.8F C.1 …", "")?;
            writeln!(out, "{:<16}{:<15}codes whose last digits repeat, also 4.333...", "4.(3) …", "")?;
            writeln!(out, "{:<16}{:<15}take 1, 4 or 10 tokens", "sub:1,4,10", "")?;
            writeln!(out, "{:<16}{:<15}take any number of tokens except 1 and 4", "allbut:1,4", "")?;
        }
        Ok(())
    })
}

/// The canonical name of a game; a code with the usual name of its game.
pub(super) fn with_name(rule: &Rule) -> String {
    let is_code = rule.name().starts_with(|c: char| c.is_ascii_digit());
    match rule.known().and_then(|known| known.aliases.first()).filter(|_| is_code) {
        Some(alias) => format!("{rule} ({alias})"),
        None => rule.to_string(),
    }
}

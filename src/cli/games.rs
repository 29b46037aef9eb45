//! `grundy games`: list the named games and what is known about them.

use super::layout;
use anyhow::Result;
use grundy::Rule;
use grundy::theory::names::{NAMED_GAMES, NamedGame};
use indicatif::HumanCount;

/// Arguments of `grundy games`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy games\n\n\
                        Names are compared without case, blanks, hyphens, underscores and apostrophes. All games are \
                        under normal play: the player who cannot move loses.\n\n\
                        JSON keys: game aliases mask position last_rare period preperiod about. 'mask' is 0 if no \
                        sparse space is known; 'last_rare', 'period' and 'preperiod' are null if unknown.")]
pub(crate) struct Args {
    /// Print JSON Lines, one object per game.
    #[arg(long)]
    json: bool,
}

pub(crate) fn games(args: &Args) -> Result<()> {
    if !args.json {
        return super::output::styled(&list());
    }
    super::output::print(|out| {
        for known in NAMED_GAMES {
            let (mask, position) = known.space.unwrap_or((0, 0));
            let object = serde_json::json!({
                "game": known.game,
                "aliases": known.aliases,
                "mask": mask,
                "position": position,
                "last_rare": known.last_rare,
                "period": known.period.map(|period| period.0),
                "preperiod": known.period.map(|period| period.1),
                "about": known.about,
            });
            writeln!(out, "{object}")?;
        }
        Ok(())
    })
}

/// [`NamedGame::summary`] with separators in numbers.
fn summary(known: &NamedGame) -> String {
    let Some((period, preperiod)) = known.period else { return known.summary() };
    let [period, preperiod] = [period, preperiod].map(HumanCount);
    format!("{}; period {period}, preperiod {preperiod}", known.about)
}

/// The games, one paragraph each: code or name, usual alias, and what is known.
fn list() -> String {
    let row = |game: &str, alias: &str, about: &str| {
        let first = format!("{game:<16}{alias:<15}");
        layout::filled(about, &first, first.chars().count())
    };
    let named = NAMED_GAMES.iter().map(|known| {
        let alias = known.aliases.first().copied().unwrap_or_default();
        row(known.game, alias, &summary(known))
    });
    let others = [
        row("grundy:d=D", "", "two heaps that differ by at least D (Schrage)"),
        row("0.77 4.3 …", "", "octal games: 0.d1d2d3… and 4.d1d2d3…, digits 0 to 7"),
        row("0.8F C.1 …", "", "hexadecimal games: digits 0 to F, after 0, 4, 8 or C"),
        row("4.(3) …", "", "games whose last digits repeat without end, also 4.333..."),
        row("sub:1,4,10", "", "take 1, 4 or 10 tokens"),
        row("allbut:1,4", "", "take any number of tokens except 1 and 4"),
    ];
    named.chain(others).chain([layout::filled("'grundy info GAME' shows more about any game.", "", 0)]).collect()
}

/// The canonical name of a game; a code with the usual name of its game.
pub(super) fn with_name(rule: &Rule) -> String {
    let is_code = rule.name().starts_with(|c: char| c.is_ascii_digit());
    match rule.known().and_then(|known| known.aliases.first()).filter(|_| is_code) {
        Some(alias) => format!("{rule} ({alias})"),
        None => rule.to_string(),
    }
}

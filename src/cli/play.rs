//! `grundy play`: print the nim-value of a position of heaps, and every winning move.

use super::layout::counted;
use super::run::resume_command;
use super::source::Source;
use super::values::{computed, open};
use super::{Usage, number};
use anyhow::{Result, bail};
use grundy::Error;
use grundy::games::play::{Game, Heap, Winning, value, winning_moves};
use grundy::run::RunReader;
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::io::Write;
use std::path::PathBuf;

/// Maximum number of values computed in memory for one position, over all its games.
const MAX_VALUES: u64 = 1 << 28;

/// Maximum number of winning moves printed without `--all`.
const SHOWN: u64 = 20;

/// Arguments of `grundy play`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy play nim 39 35 25 14\n         \
                        grundy play grundy 17 10 4\n         \
                        grundy play kayles:12 nim:5 grundy:d=2:100\n         \
                        grundy play runs/grundy 1e9 1000\n         \
                        grundy play --table 8\n\n\
                        GAME is a game of 'grundy games', an octal code, or a run directory (./x is always one). \
                        The values of all games but nim must fit in memory, at most 2^28 of them together: a game \
                        whose largest heap is n needs n + 1. Larger heaps need a run directory. The player who cannot \
                        move loses. For a run, checks the journal and reads the table as it is; --verify checks the \
                        table first. Prints the nim-value and winning moves: 'heap 3: 25 -> 10 (take 15)', 'heap 1: 17 \
                        -> 5 + 12'. \
                        '*1' after '->' is a component of nim-value 1 that the move leaves beside the \
                        heaps: in remove-a-square, the other cell of a column. To play on, enter it as the heap \
                        'nim:1'.\n\n\
                        JSON keys: value lost heaps moves. A heap has game (a directory as it was typed), size and \
                        value; a move has heap (from 1), from, to (the heaps left), take and constant (the 1 of \
                        '*1', else 0).\n\n\
                        With --table, JSON Lines, one object per row: {\"row\":0,\"values\":[0,1,2]}.")]
pub(crate) struct Args {
    /// Position to evaluate: GAME HEAP HEAP … for one game, or GAME:HEAP GAME:HEAP …
    #[arg(value_name = "GAME|HEAP|GAME:HEAP", required_unless_present = "table", conflicts_with = "table")]
    position: Vec<String>,
    /// Print the nim-addition table of 0 to N-1.
    #[arg(long, value_name = "N", value_parser = number::positive, allow_negative_numbers = true)]
    table: Option<u64>,
    /// Print all winning moves, not only the first 20 (with --json, all are printed anyway).
    #[arg(long, conflicts_with = "table")]
    all: bool,
    /// Print one JSON object; with --table, one per row.
    #[arg(long)]
    json: bool,
    /// Verify the tables of runs against the digests in their journals first; exit with status 3 if a byte was altered.
    /// Only with a run directory.
    #[arg(long, conflicts_with = "table")]
    verify: bool,
}

/// Parses the arguments into heaps: for each, the game as it was typed, and the size.
fn heaps(position: &[String]) -> Result<Vec<(&str, u64)>> {
    let bad = |why: String| anyhow::Error::from(Usage(why));
    if position.len() > 1 && position.iter().all(|text| text.bytes().all(|c| c.is_ascii_digit())) {
        let heaps = position.join(" ");
        return Err(bad(format!("the game is missing before {heaps}; heaps of Nim are 'grundy play nim {heaps}'")));
    }
    if let [game, sizes @ ..] = position
        && let Some(first) = sizes.first()
        && (number::number(first).is_ok() || !first.contains(':'))
    {
        if let Some((game, heap)) = split_heap(game) {
            if sizes.iter().any(|size| number::number(size).is_err()) {
                return Err(bad(format!(
                    "'{game}:{heap}' names a heap with its game, so every heap needs its game; write GAME:HEAP \
                     GAME:HEAP …"
                )));
            }
            let (rest, each) = (sizes.join(" "), sizes.iter().map(|size| format!(" {game}:{size}")));
            let each: String = each.collect();
            return Err(bad(format!(
                "'{game}:{heap}' is a heap, and a game is expected before '{rest}'; write '{game} {heap} {rest}' or \
                 '{game}:{heap}{each}'"
            )));
        }
        let size = |text: &String| {
            number::number(text).map_err(|why| {
                let mixed = if text.parse::<Rule>().is_ok() || split_heap(text).is_some() {
                    "; heaps of several games are GAME:HEAP GAME:HEAP …"
                } else {
                    ""
                };
                bad(format!("heap '{text}': {why}{mixed}"))
            })
        };
        return sizes.iter().map(|text| Ok((game.as_str(), size(text)?))).collect();
    }
    let heap = |text: &'_ String| -> Result<(usize, u64)> {
        let at = text
            .rfind(':')
            .ok_or_else(|| bad(format!("'{text}' has no heap; write GAME HEAP HEAP … or GAME:HEAP GAME:HEAP …")))?;
        let size = number::number(&text[at + 1..]).map_err(|why| bad(format!("the heap of '{text}': {why}")))?;
        Ok((at, size))
    };
    position.iter().map(|text| heap(text).map(|(at, size)| (&text[..at], size))).collect()
}

/// The game and the size of `GAME:HEAP`, if the whole text is not the name of a game.
fn split_heap(text: &str) -> Option<(&str, &str)> {
    let (game, heap) = text.rsplit_once(':')?;
    let is_heap = match text.parse::<Rule>() {
        // 'grundy:2' is a mistyped 'grundy:d=2'.
        Err(Error::UnknownGame { suggestions, .. }) => suggestions.iter().all(|name| !name.contains(':')),
        Err(_) => true,
        Ok(_) => false,
    };
    let is_heap = is_heap && number::number(heap).is_ok() && game.parse::<Rule>().is_ok();
    is_heap.then_some((game, heap))
}

/// A game of the position, and the values of its heaps.
enum Component {
    Nim,
    Memory(Rule, Vec<u16>),
    /// The directory as it was typed, and its run.
    Directory(String, Box<RunReader>),
}

impl Component {
    fn name(&self) -> &str {
        match self {
            Component::Nim => "nim",
            Component::Memory(rule, _) => rule.name(),
            Component::Directory(typed, _) => typed,
        }
    }
}

/// The game that a typed name denotes, before any value is computed or read.
enum Named {
    Nim,
    Rule(Rule),
    Directory(PathBuf),
}

fn named(text: &str) -> Result<Named> {
    Ok(match Source::find(text.as_ref())? {
        Source::Game(rule) if rule.is_nim() => Named::Nim,
        Source::Game(rule) => Named::Rule(rule),
        Source::Directory(dir) => Named::Directory(dir),
    })
}

/// What to do where the values of all games do not fit the memory, because of the largest heap.
fn too_many(largest: u64, rule: &Rule) -> String {
    let (game, count) = (super::advice::quoted(rule.name()), largest.saturating_add(1));
    format!(
        "heap {largest}: the games of the position need more than 2^28 values together, too many for memory; if the \
         period of {game} is proved, 'grundy values {game} {largest}' prints the value; otherwise compute the values with \
         'grundy run {game} --to {count} --dir DIR' and give the heap as DIR:{largest}"
    )
}

/// The distinct games of the position, and for each heap the index of its game.
fn games(heaps: &[(&str, u64)], verify: bool, quiet: bool) -> Result<(Vec<Component>, Vec<usize>)> {
    let mut found: Vec<(&str, Named, u64)> = Vec::new();
    let mut of = Vec::new();
    for &(text, size) in heaps {
        let at = found.iter().position(|(known, ..)| *known == text).unwrap_or(found.len());
        match found.get_mut(at) {
            Some((.., largest)) => *largest = size.max(*largest),
            None => found.push((text, named(text)?, size)),
        }
        of.push(at);
    }
    if verify && !found.iter().any(|(_, game, _)| matches!(game, Named::Directory(_))) {
        return Err(Usage(super::values::COMPUTED.into()).into());
    }
    let in_memory = found.iter().filter_map(|(_, game, largest)| match game {
        Named::Rule(rule) => Some((*largest, rule)),
        Named::Nim | Named::Directory(_) => None,
    });
    let total = in_memory.clone().fold(0, |sum: u64, (largest, _)| sum.saturating_add(largest.saturating_add(1)));
    if let Some((largest, rule)) = in_memory.max_by_key(|(largest, _)| *largest).filter(|_| total > MAX_VALUES) {
        return Err(Usage(too_many(largest, rule)).into());
    }
    let known = found.into_iter().map(|(text, game, largest)| match game {
        Named::Nim => Ok(Component::Nim),
        Named::Directory(dir) => {
            let view = open(&dir, verify, quiet)?;
            let count = view.len();
            if largest >= count {
                let more = resume_command(&view.rule, &dir, largest.checked_add(1));
                bail!(
                    "heap {largest}: {text} holds {}; '{more}' computes the missing values",
                    counted(count, "values")
                );
            }
            Ok(Component::Directory(text.to_owned(), Box::new(view)))
        }
        Named::Rule(rule) => {
            let values = computed(&rule, largest + 1, quiet)?;
            Ok(Component::Memory(rule, values))
        }
    });
    let known: Result<Vec<Component>> = known.collect();
    Ok((known?, of))
}

pub(crate) fn play(args: &Args, quiet: bool) -> Result<()> {
    if let Some(size) = args.table {
        return super::output::print(|out| print_table(out, args.json, size));
    }
    let typed = heaps(&args.position)?;
    let (games, of) = games(&typed, args.verify, quiet)?;
    let position: Vec<Heap<'_>> = typed
        .iter()
        .zip(&of)
        .map(|(&(_, size), &at)| {
            let game = match &games[at] {
                Component::Nim => Game::Nim,
                Component::Memory(rule, values) => Game::Heap { rule, values },
                Component::Directory(_, view) => Game::Heap { rule: &view.rule, values: view.as_ref() },
            };
            Heap { game, size }
        })
        .collect();
    let names: Vec<&str> = of.iter().map(|&at| games[at].name()).collect();
    let total = value(&position)?;
    let most = if args.all { u64::MAX } else { SHOWN };
    super::output::print(|out| {
        if args.json { print_json(out, &position, &names, total) } else { print_moves(out, &position, total, most) }
    })
}

/// Prints the nim-value and the first `most` winning moves, and counts the others.
fn print_moves(out: &mut dyn Write, position: &[Heap<'_>], total: u64, most: u64) -> Result<()> {
    if total == 0 {
        return Ok(writeln!(out, "nim-value 0: the player to move loses")?);
    }
    // Written together with the first move, which exists because `total` is not 0: an error while reading a run then
    // precedes all output.
    let mut head = Some(format!("nim-value {total}: the player to move wins with\n"));
    let mut count = 0u64;
    winning_moves(position, |win| -> Result<()> {
        count += 1;
        if count <= most {
            writeln!(out, "{}{}", head.take().unwrap_or_default(), sentence(&win))?;
        }
        Ok(())
    })?;
    if count > most {
        writeln!(out, "… {} winning moves in all; --all prints them", HumanCount(count))?;
    }
    Ok(())
}

/// A move in words, such as `heap 3: 25 -> 10 (take 15)`.
fn sentence(win: &Winning) -> String {
    let constant = (win.constant != 0).then(|| format!("*{}", win.constant));
    let left: Vec<String> = win.parts().map(|part| part.to_string()).chain(constant).collect();
    let left = if left.is_empty() { "0".to_owned() } else { left.join(" + ") };
    let take = if win.taken() > 0 { format!(" (take {})", win.taken()) } else { String::new() };
    format!("heap {}: {} -> {left}{take}", win.heap + 1, win.from)
}

/// Prints one JSON object, each move as it is found: a large heap may have millions of winning moves.
fn print_json(out: &mut dyn Write, position: &[Heap<'_>], names: &[&str], total: u64) -> Result<()> {
    let heaps: Result<Vec<serde_json::Value>> = position
        .iter()
        .zip(names)
        .map(|(heap, game)| Ok(serde_json::json!({ "game": game, "size": heap.size, "value": heap.value()? })))
        .collect();
    let heaps = serde_json::Value::from(heaps?);
    let head = format!("{{\"value\":{total},\"lost\":{},\"heaps\":{heaps},\"moves\":[", total == 0);
    let mut before = head.as_str(); // written with the first move, so that an error while reading precedes all output
    winning_moves(position, |win| -> Result<()> {
        let to: Vec<u64> = win.parts().collect();
        let object = serde_json::json!({
            "heap": win.heap + 1, "from": win.from, "to": to, "take": win.taken(), "constant": win.constant,
        });
        write!(out, "{before}{object}")?;
        before = ",";
        Ok(())
    })?;
    Ok(writeln!(out, "{}]}}", if total == 0 { before } else { "" })?)
}

/// Prints the nim-addition table; without spaces, as it was printed in 1939, if all its numbers have one digit.
fn print_table(out: &mut dyn Write, json: bool, size: u64) -> Result<()> {
    // No nim-sum has a bit above the highest bit of the largest number.
    let largest = u64::MAX.checked_shr((size - 1).leading_zeros()).unwrap_or(0);
    let (width, space) = if largest < 8 { (1, "") } else { (largest.to_string().len(), " ") };
    for x in 0..size {
        if json {
            write!(out, "{{\"row\":{x},\"values\":[")?;
            (0..size).try_for_each(|y| write!(out, "{}{}", if y == 0 { "" } else { "," }, x ^ y))?;
            writeln!(out, "]}}")?;
        } else {
            (0..size).try_for_each(|y| write!(out, "{}{:width$}", if y == 0 { "" } else { space }, x ^ y))?;
            writeln!(out)?;
        }
    }
    Ok(())
}

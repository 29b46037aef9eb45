//! `grundy board`: small games, searched to the end.

use super::graph::{edges, outcome};
use super::{Usage, number};
use anyhow::{Context, Result};
use clap::Subcommand;
use grundy::Error;
use grundy::games::edges::{Direction, Edges};
use grundy::games::finite::{self, Solver};
use grundy::games::no_factor::NoFactor;
use grundy::games::remove_edge::{RemoveEdge, SimpleGraph};
use grundy::games::remove_square::RemoveSquare;
use grundy::games::rows_columns::RowsColumns;
use grundy::games::shape::Shape;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

/// Arguments of `grundy board`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy board remove-square '###/#.#' 2x0..20\n         \
                        grundy board rows-columns diamond:2 cross:3x5\n         \
                        grundy board remove-edge path:0..60 cycle:7 edges:a-b,b-c,c-a graph.dot\n         \
                        grundy board no-factor 1..20\n\
                        Prints 'position: nim-value V, player W wins' a line, player 1 being who moves first.\n\
                        --json: JSON Lines {\"game\",\"position\",\"value\",\"outcome\",\"winner\"}; outcome P or N, winner 1\n\
                        or 2.")]
pub(crate) struct Args {
    #[command(subcommand)]
    game: Game,
}

/// What --help of the games on shapes says, after an example.
macro_rules! shapes_help {
    ($example:expr) => {
        concat!(
            "Example: grundy board ",
            $example,
            "\n\
             Positions: rows such as '##./###', MxN (rows x columns), diamond:C, cross:MxN (a row of M and a\n\
             column of N); the last number may be a range A..B. Or a file with rows of # and ."
        )
    };
}

#[derive(Debug, Subcommand)]
enum Game {
    /// Tokens on a grid; take all of one row or one column.
    #[command(after_help = shapes_help!("rows-columns diamond:2 cross:3x5 '##./###'"))]
    RowsColumns(Positions),
    /// A shape of cells; take a square of them, of any size.
    #[command(after_help = shapes_help!("remove-square '###/#.#' 2x0..20"))]
    RemoveSquare(Positions),
    /// A simple graph; take two neighbours and all their edges.
    #[command(after_help = "Example: grundy board remove-edge path:0..60 cycle:7 edges:a-b,b-c,c-a\n\
                            Positions: path:N, cycle:N, star:N, complete:N with N vertices (or a range of N);\n\
                            edges:a-b,b-c; or a file, in DOT (graph, '--') or an edge 'a b' a line.")]
    RemoveEdge(Positions),
    /// The numbers 1 to N; take any that have no proper factor left.
    #[command(after_help = "Example: grundy board no-factor 1..20\nPositions: N or a range of N, at most 64.")]
    NoFactor(Positions),
}

#[derive(Debug, clap::Args)]
struct Positions {
    /// Positions to search.
    #[arg(required = true, value_name = "POSITION")]
    positions: Vec<String>,
    /// The most positions to hold; left out: 2^21, fewer for large boards (1 GiB, minutes).
    #[arg(long = "positions", value_name = "N", value_parser = number::positive)]
    bound: Option<u64>,
    /// JSON Lines.
    #[arg(long)]
    json: bool,
}

pub(crate) fn board(args: &Args) -> Result<()> {
    let mut lines = String::new();
    match &args.game {
        Game::RowsColumns(args) => {
            args.search(&RowsColumns, "rows-columns", shapes, |shape| shape.cells().len(), &mut lines)?;
        }
        Game::RemoveSquare(args) => {
            args.search(&RemoveSquare, "remove-square", shapes, |shape| shape.cells().len(), &mut lines)?;
        }
        Game::RemoveEdge(args) => {
            args.search(&RemoveEdge, "remove-edge", graphs, |graph| graph.edges().len(), &mut lines)?;
        }
        Game::NoFactor(args) => {
            let ranges = args.positions.iter().map(|text| number::range(text).map_err(Usage));
            let ranges = ranges.collect::<Result<Vec<Range<u64>>, Usage>>()?;
            // The largest first: a range that ends too far out is refused at once.
            ranges.iter().try_for_each(|range| NoFactor::new(range.end.saturating_sub(1)).map(drop))?;
            for range in ranges {
                for n in range {
                    let game = NoFactor::new(n)?;
                    let value = Solver::new(&game, args.bound(2)?).value(game.start())?;
                    args.show("no-factor", &n.to_string(), value, &mut lines)?;
                }
            }
        }
    }
    super::export::print(|out| Ok(out.write_all(lines.as_bytes())?))
}

impl Positions {
    /// Solves all positions that the texts mean, in one memory each.
    fn search<G: finite::Game>(
        &self,
        game: &G,
        name: &str,
        read: impl Fn(&str) -> Result<Vec<(String, G::Position)>>,
        parts: impl Fn(&G::Position) -> usize,
        lines: &mut String,
    ) -> Result<()> {
        for text in &self.positions {
            let starts = read(text)?;
            let largest = starts.iter().map(|(_, start)| parts(start)).max().unwrap_or(0);
            let mut solver = Solver::new(game, self.bound(largest)?);
            for (called, start) in starts {
                self.show(name, &called, solver.value(start)?, lines)?;
            }
        }
        Ok(())
    }

    fn bound(&self, parts: usize) -> Result<usize> {
        let given = self.bound.map(usize::try_from).transpose()?;
        Ok(given.unwrap_or_else(|| finite::bound(parts)))
    }

    fn show(&self, game: &str, position: &str, value: u16, lines: &mut String) -> Result<()> {
        let winner = if value == 0 { 2 } else { 1 };
        if self.json {
            let outcome = outcome(value);
            let object = serde_json::json!({
                "game": game, "position": position, "value": value, "outcome": outcome, "winner": winner
            });
            writeln!(lines, "{object}")?;
        } else {
            writeln!(lines, "{position}: nim-value {value}, player {winner} wins")?;
        }
        Ok(())
    }
}

/// The most positions that a range may name, and the most cells or edges that these have together.
const MOST: u64 = 10_000;
const MOST_PARTS: usize = 1 << 22;

/// One position for each number of a range, called `before` and the number; `parts` counts its cells or edges.
fn each<P>(
    before: &str,
    range: Range<u64>,
    make: impl Fn(u64) -> grundy::Result<P>,
    parts: impl Fn(&P) -> usize,
) -> Result<Vec<(String, P)>> {
    let called = format!("{before}{}..{}", range.start, range.end);
    if range.end - range.start > MOST {
        return Err(Usage(format!("{called}: a range has at most {MOST} numbers")).into());
    }
    let (mut all, mut positions) = (0, Vec::new());
    for n in range {
        let position = make(n)?;
        all += parts(&position);
        if all > MOST_PARTS {
            let what = format!("the positions {called} have more than {MOST_PARTS} cells or edges together");
            return Err(Error::Board(what).into());
        }
        positions.push((format!("{before}{n}"), position));
    }
    Ok(positions)
}

/// What comes before an `x`, and the range after it.
fn sides(text: &str) -> Result<(u64, Range<u64>), String> {
    let (m, n) = text.split_once('x').ok_or("sides are written MxN")?;
    Ok((number::number(m)?, number::range(n)?))
}

fn shapes(text: &str) -> Result<Vec<(String, Shape)>> {
    let cells = |shape: &Shape| shape.cells().len();
    if let Some(c) = text.strip_prefix("diamond:") {
        return each("diamond:", number::range(c).map_err(Usage)?, Shape::diamond, cells);
    }
    if let Some(arms) = text.strip_prefix("cross:") {
        let (m, n) = sides(arms).map_err(Usage)?;
        return each(&format!("cross:{m}x"), n, |n| Shape::cross(m, n), cells);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) && !Path::new(text).exists() {
        let (m, n) = sides(text).map_err(Usage)?;
        return each(&format!("{m}x"), n, |n| Shape::rectangle(m, n), cells);
    }
    let rows = text.chars().all(|c| matches!(c, '#' | '.' | '/'));
    if !text.is_empty() && (rows || text.contains('#') && !Path::new(text).exists()) {
        return Ok(vec![(text.to_owned(), text.parse()?)]);
    }
    // A file is a failure where it is wrong, not a mistake in what was typed.
    let path = Path::new(text);
    let rows = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let shape = Shape::from_rows(rows.lines()).map_err(|error| match error {
        Error::Shape { row, column, found } => {
            let found = found.escape_default();
            let what = format!("'{found}' in column {column}; a shape has rows of '#' and '.' only");
            Error::Line { path: path.into(), line: row, what }
        }
        other => other,
    })?;
    Ok(vec![(text.to_owned(), shape)])
}

fn graphs(text: &str) -> Result<Vec<(String, SimpleGraph)>> {
    type Family = fn(u64) -> grundy::Result<SimpleGraph>;
    let families: [(&str, Family); 4] = [
        ("path:", SimpleGraph::path),
        ("cycle:", SimpleGraph::cycle),
        ("star:", SimpleGraph::star),
        ("complete:", SimpleGraph::complete),
    ];
    for (name, make) in families {
        if let Some(n) = text.strip_prefix(name) {
            return each(name, number::range(n).map_err(Usage)?, make, |graph| graph.edges().len());
        }
    }
    let Some(typed) = text.strip_prefix("edges:") else {
        let graph = SimpleGraph::new(&edges(Path::new(text), Direction::Undirected)?)?;
        return Ok(vec![(text.to_owned(), graph)]);
    };
    let bad = |edge: &str| Usage(format!("'{}' is no edge; edges are written edges:a-b,b-c", edge.escape_debug()));
    let mut all = String::new();
    for edge in typed.split(',') {
        let ends: Vec<&str> = edge.split('-').collect();
        let good = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        match ends[..] {
            [from, to] if ends.iter().all(good) => writeln!(all, "{from} {to}")?,
            _ => return Err(bad(edge).into()),
        }
    }
    let read = Edges::read(Path::new("edges"), &all, Direction::Undirected);
    let graph = read.and_then(|read| SimpleGraph::new(&read)).map_err(|error| Usage(error.to_string()))?;
    Ok(vec![(text.to_owned(), graph)])
}

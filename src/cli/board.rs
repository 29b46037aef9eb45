//! `grundy board`: search small games exhaustively.

use super::advice::message;
use super::graph::{edges, outcome};
use super::input::{called, read_text};
use super::progress::Meter;
use super::{Usage, number};
use anyhow::{Result, anyhow};
use clap::Subcommand;
use grundy::Error;
use grundy::error::Kind;
use grundy::games::edges::{Direction, Edges};
use grundy::games::finite::{self, GameSolver};
use grundy::games::no_factor::NoFactor;
use grundy::games::remove_edge::{RemoveEdge, SimpleGraph};
use grundy::games::remove_square::RemoveSquare;
use grundy::games::rows_columns::RowsColumns;
use grundy::games::shape::Shape;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::Path;

/// Maximum length of a shape file, in bytes.
const MAX_SHAPE_BYTES: u64 = 16 << 20;

/// Arguments of `grundy board`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy board remove-square '###/#.#' 2x0..20\n         \
                        grundy board rows-columns diamond:2 cross:3x5\n         \
                        grundy board remove-edge path:0..60 cycle:7 edges:a-b,b-c,c-a graph.dot\n         \
                        grundy board no-factor 1..20\n\n\
                        Prints one line 'position: nim-value V, player W wins' per position; player 1 moves first.\n\n\
                        --json: JSON Lines {\"game\",\"position\",\"value\",\"outcome\",\"winner\"}; outcome P or N, \
                        winner 1 or 2.")]
pub(crate) struct Args {
    #[command(subcommand)]
    game: Game,
}

/// The `after_help` text of the games on shapes, with an example.
macro_rules! shapes_help {
    ($example:expr) => {
        concat!(
            "Example: grundy board ",
            $example,
            "\n\n\
             Positions: rows such as '##./###', MxN (rows x columns), diamond:C, cross:MxN (a row of M and a column \
             of N), where the last number may be a range A..B; or a file of at most 16 MiB with rows of # and . ('-' \
             is standard input)."
        )
    };
}

#[derive(Debug, Subcommand)]
enum Game {
    /// Search tokens on a grid; a move takes all tokens of one row or one column.
    #[command(after_help = shapes_help!("rows-columns diamond:2 cross:3x5 '##./###'"))]
    RowsColumns(Positions),
    /// Search a shape of cells; a move takes a square of cells, of any size.
    #[command(after_help = shapes_help!("remove-square '###/#.#' 2x0..20"))]
    RemoveSquare(Positions),
    /// Search a simple graph; a move takes two neighbours and all their edges.
    #[command(after_help = "Example: grundy board remove-edge path:0..60 cycle:7 edges:a-b,b-c,c-a\n\n\
                            Positions: path:N, cycle:N, star:N, complete:N with N vertices (or a range of N); \
                            edges:a-b,b-c; or a file of at most 256 MiB, in DOT (graph, '--') or with one edge 'a b' \
                            per line ('-' is standard input).")]
    RemoveEdge(Positions),
    /// Search the numbers 1 to N; a move takes one or more numbers of which no proper factor is left.
    #[command(after_help = "Example: grundy board no-factor 1..20\n\n\
                            Positions: N or a range of N, each at most 64.")]
    NoFactor(Positions),
}

#[derive(Debug, clap::Args)]
struct Positions {
    /// Positions to search.
    #[arg(required = true, value_name = "POSITION")]
    positions: Vec<String>,
    /// Maximum number of positions in memory; replaces the default limits [default: 2^21 positions, about 1 GiB, some
    /// minutes of search].
    #[arg(long = "positions", value_name = "N", value_parser = number::positive, allow_negative_numbers = true)]
    bound: Option<u64>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

pub(crate) fn board(args: &Args, quiet: bool) -> Result<()> {
    super::output::print(|out| {
        let (name, positions) = match &args.game {
            Game::RowsColumns(positions) => ("rows-columns", positions),
            Game::RemoveSquare(positions) => ("remove-square", positions),
            Game::RemoveEdge(positions) => ("remove-edge", positions),
            Game::NoFactor(positions) => ("no-factor", positions),
        };
        let mut search = Search { name, positions, begun: 0, of: 0, meter: Meter::new(quiet), out };
        match &args.game {
            Game::RowsColumns(_) => search.all(&RowsColumns, shapes),
            Game::RemoveSquare(_) => search.all(&RemoveSquare, shapes),
            Game::RemoveEdge(_) => search.all(&RemoveEdge, graphs),
            Game::NoFactor(_) => search.no_factor(),
        }
    })
}

/// The search of the positions of one command.
struct Search<'a> {
    /// The name of the game.
    name: &'static str,
    positions: &'a Positions,
    /// Number of the positions of the command whose search has begun, and number of all.
    begun: u64,
    of: u64,
    meter: Meter,
    out: &'a mut dyn Write,
}

impl Search<'_> {
    /// Solves the positions of all arguments; the positions of one argument share a solver.
    fn all<G: finite::Game>(&mut self, game: &G, read: impl Fn(&str) -> Result<Starts<G::Position>>) -> Result<()> {
        let bound = self.positions.bound.map(usize::try_from).transpose()?;
        // Report malformed positions before any search. A position that is too large is reported when its turn comes.
        let (name, texts) = (self.name, &self.positions.positions);
        let positions = texts.iter().map(|text| read(text).map_err(|error| of_position(name, text, error)));
        let all: Vec<Starts<G::Position>> = positions.collect::<Result<_>>()?;
        self.of =
            all.iter().map(|starts| starts.size_hint().1.unwrap_or(usize::MAX) as u64).fold(0, u64::saturating_add);
        for (text, starts) in texts.iter().zip(all) {
            let mut solver = bound.map_or_else(|| GameSolver::limited(game), |bound| GameSolver::new(game, bound));
            for start in starts {
                let (called, start) = start.map_err(|error| of_position(name, text, error))?;
                self.solve(&called, &mut solver, start, None)?;
            }
        }
        Ok(())
    }

    fn no_factor(&mut self) -> Result<()> {
        let bound = self.positions.bound.map(usize::try_from).transpose()?.unwrap_or(finite::POSITIONS);
        let range = |text: &String| number::range(text).map_err(|why| malformed(text, &why));
        let ranges = self.positions.positions.iter().map(range);
        let ranges = ranges.collect::<Result<Vec<Range<u64>>, Usage>>()?;
        self.of = ranges.iter().map(|range| range.end - range.start).fold(0, u64::saturating_add);
        for n in ranges.into_iter().flatten() {
            let game = NoFactor::new(n)?;
            // The search would hold every position, so refuse one that is too large before it begins.
            let Some(positions) = game.positions(bound) else {
                return Err(in_place(&n.to_string(), Error::Positions { bound }).into());
            };
            let mut solver = GameSolver::new(&game, bound);
            self.solve(&n.to_string(), &mut solver, game.start(), Some(positions as u64))?;
        }
        Ok(())
    }

    /// Finds a value and prints it at once, because the next position may take long or be refused. The search holds
    /// `to` positions at its end, if that is known.
    fn solve<G: finite::Game>(
        &mut self,
        called: &str,
        solver: &mut GameSolver<'_, G>,
        start: G::Position,
        to: Option<u64>,
    ) -> Result<()> {
        self.begun += 1;
        let number = if self.of > 1 { format!(" {} of {}:", self.begun, self.of) } else { String::new() };
        let name = format!("{}{number} {called}", self.name);
        self.meter.begin_counting("positions", &name, solver.known() as u64, to);
        let value = solver.watched(start, |known, used| match to {
            Some(_) => self.meter.at(known as u64),
            None => self.meter.within(known as u64, used),
        });
        self.meter.end();
        self.show(called, value.map_err(|error| in_place(called, error))?)?;
        Ok(self.out.flush()?)
    }

    fn show(&mut self, position: &str, value: u16) -> Result<()> {
        let winner = if value == 0 { 2 } else { 1 };
        if self.positions.json {
            let outcome = outcome(value);
            let object = serde_json::json!({
                "game": self.name, "position": position, "value": value, "outcome": outcome, "winner": winner
            });
            writeln!(self.out, "{object}")?;
        } else {
            writeln!(self.out, "{position}: nim-value {value}, player {winner} wins")?;
        }
        Ok(())
    }
}

/// The error of a malformed position.
fn malformed(position: &str, why: &str) -> Usage {
    Usage(format!("'{}': {why}", position.escape_debug()))
}

/// Names the position in a usage error, and says what an argument that is no file may be.
fn of_position(game: &str, position: &str, error: anyhow::Error) -> anyhow::Error {
    if let Some(Usage(why)) = error.downcast_ref() {
        return malformed(position, why).into();
    }
    let is_missing =
        error.root_cause().downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::NotFound);
    if is_missing {
        let position = position.escape_debug();
        return anyhow!(
            "'{position}' is neither a position nor a file; 'grundy board {game} --help' lists the positions"
        );
    }
    error
}

/// The positions of one argument, each with its name; built lazily.
type Starts<P> = Box<dyn Iterator<Item = Result<(String, P)>>>;

/// One position for each number of a range, named by `before` and the number.
fn each<P: 'static>(
    before: String,
    range: Range<u64>,
    make: impl Fn(u64) -> grundy::Result<P> + 'static,
) -> Result<Starts<P>> {
    // If any number of the range is malformed as a position, so is the least.
    if let Err(error) = make(range.start)
        && error.kind() == Kind::Usage
    {
        return Err(error.into());
    }
    Ok(Box::new(range.map(move |n| {
        let called = format!("{before}{n}");
        let position = make(n).map_err(|error| in_place(&called, error))?;
        Ok((called, position))
    })))
}

/// A single position.
fn one<P: 'static>(called: &str, position: Result<P>) -> Starts<P> {
    let called = called.to_owned();
    Box::new(std::iter::once(position.map(|position| (called, position))))
}

/// Puts the name of the position in front of an error.
fn in_place(called: &str, error: Error) -> Error {
    Error::Board(format!("{called}: {}", message(&error)))
}

/// Parses `MxN`, where N may be a range.
fn sides(text: &str) -> Result<(u64, Range<u64>), String> {
    let (m, n) = text.split_once('x').ok_or("write the sides as MxN")?;
    Ok((number::number(m)?, number::range(n)?))
}

fn shapes(text: &str) -> Result<Starts<Shape>> {
    if let Some(c) = text.strip_prefix("diamond:") {
        return each("diamond:".into(), number::range(c).map_err(Usage)?, Shape::diamond);
    }
    if let Some(arms) = text.strip_prefix("cross:") {
        let (m, n) = sides(arms).map_err(Usage)?;
        return each(format!("cross:{m}x"), n, move |n| Shape::cross(m, n));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) && !Path::new(text).exists() {
        let (m, n) = sides(text).map_err(Usage)?;
        return each(format!("{m}x"), n, move |n| Shape::rectangle(m, n));
    }
    let rows = text.chars().all(|c| matches!(c, '#' | '.' | '/'));
    if !text.is_empty() && (rows || text.contains('#') && !Path::new(text).exists()) {
        return Ok(one(text, Ok(text.parse()?)));
    }
    Ok(one(text, shape_of(Path::new(text))))
}

/// Reads a shape from a file. A malformed file is a failure (exit status 1), not a usage error.
fn shape_of(path: &Path) -> Result<Shape> {
    let rows = read_text(path, MAX_SHAPE_BYTES)?;
    Ok(Shape::from_rows(rows.lines()).map_err(|error| match error {
        Error::Shape { row, column, found } => {
            let found = found.escape_default();
            let what = format!("'{found}' in column {column}; rows of a shape contain only '#' and '.'");
            Error::Line { path: called(path).into(), line: row, what }
        }
        other => other,
    })?)
}

fn graphs(text: &str) -> Result<Starts<SimpleGraph>> {
    type Family = fn(u64) -> grundy::Result<SimpleGraph>;
    let families: [(&str, Family); 4] = [
        ("path:", SimpleGraph::path),
        ("cycle:", SimpleGraph::cycle),
        ("star:", SimpleGraph::star),
        ("complete:", SimpleGraph::complete),
    ];
    for (name, make) in families {
        if let Some(n) = text.strip_prefix(name) {
            return each(name.into(), number::range(n).map_err(Usage)?, make);
        }
    }
    let Some(typed) = text.strip_prefix("edges:") else {
        let graph = edges(Path::new(text), Direction::Undirected).and_then(|read| Ok(SimpleGraph::new(&read)?));
        return Ok(one(text, graph));
    };
    let bad = |edge: &str| Usage(format!("'{}' is not an edge; write edges as edges:a-b,b-c", edge.escape_debug()));
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
    let graph = read.and_then(|read| SimpleGraph::new(&read)).map_err(|error| Usage(message(&error)))?;
    Ok(one(text, Ok(graph)))
}

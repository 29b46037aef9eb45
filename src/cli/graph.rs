//! `grundy graph`: outcomes and nim-values of finite games given as graphs, and of their sums.

use super::Usage;
use super::input::{called, read_text};
use anyhow::{Result, bail};
use grundy::games::edges::{Direction, Edges};
use grundy::games::graph::Graph;
use grundy::theory::nimber::nim_sum;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Maximum length of a graph file, in bytes.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// Arguments of `grundy graph`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "grundy graph [OPTIONS] <FILE>... [--sum <VERTEX>...]",
    after_help = "Example: grundy graph game.dot\n         \
                        grundy graph heap.txt heap.txt --sum 3 5\n\n\
                        A file is in DOT (digraph, '->', sets; attributes are ignored; no subgraphs), or each line \
                        is a move 'a b', a chain of moves 'a -> b -> c', or a vertex 'a'; # begins a comment. The \
                        player who cannot move loses. Prints one line 'vertex outcome value' per vertex: outcome P \
                        (the previous player wins, value 0) or N (the next player wins). --sum adds the position in \
                        the sum, 'sum outcome value' (value is the nim-sum), and every winning move, 'move game: \
                        vertex -> vertex'.\n\n\
                        --json: {\"graphs\":[{\"file\",\"vertices\":[{\"vertex\",\"outcome\",\"value\"}]}], \
                        \"sum\":{\"position\",\"outcome\",\"value\",\"moves\":[{\"game\",\"from\",\"to\"}]}}; sum is \
                        null without --sum, games are numbered from 1."
)]
pub(crate) struct Args {
    /// Files with one graph each, of at most 256 MiB, 2^21 vertices and 2^22 edges; '-' is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Evaluate a position in the sum of the games: one vertex of each file, in the order of the files.
    #[arg(long, num_args = 1.., value_name = "VERTEX", allow_negative_numbers = true)]
    sum: Option<Vec<String>>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A winning move in a sum.
struct WinningMoves {
    /// Index of the game, from 0.
    game: usize,
    from: usize,
    to: usize,
}

pub(crate) fn graph(args: &Args) -> Result<()> {
    if args.sum.as_ref().is_some_and(|names| names.len() != args.files.len()) {
        return Err(Usage(format!("--sum takes one vertex of each game, {} in all", args.files.len())).into());
    }
    let graphs = args.files.iter().map(|path| read(path)).collect::<Result<Vec<Graph>>>()?;
    let position = args.sum.as_ref().map(|names| position(args, &graphs, names)).transpose()?;
    super::output::print(|out| {
        if args.json {
            print_json(out, args, &graphs, position.as_deref())
        } else {
            print(out, args, &graphs, position.as_deref())
        }
    })
}

fn read(path: &Path) -> Result<Graph> {
    let graph = Graph::new(edges(path, Direction::Directed)?)?;
    let (path, names) = (called(path).display(), graph.names());
    let Some(first) = names.first() else { bail!("{path}: no vertex; write a move 'a b' in each line") };
    let is_list = names.iter().all(|name| name.contains([',', ';']));
    if is_list && (0..names.len()).all(|vertex| graph.options(vertex).is_empty()) {
        let first = first.escape_debug();
        bail!("{path}: no move: '{first}' is the name of one vertex; write a move 'a b' with a blank");
    }
    Ok(graph)
}

/// Reads the edges of a graph from a file.
pub(super) fn edges(path: &Path, direction: Direction) -> Result<Edges> {
    Ok(Edges::read(called(path), &read_text(path, MAX_TEXT_BYTES)?, direction)?)
}

/// Finds the named vertices, one in each game.
fn position(args: &Args, graphs: &[Graph], names: &[String]) -> Result<Vec<usize>> {
    let find = |((path, graph), name): ((&PathBuf, &Graph), &String)| {
        let missing = || Usage(format!("{} has no vertex '{}'", called(path).display(), name.escape_debug()));
        Ok(graph.find(name).ok_or_else(missing)?)
    };
    args.files.iter().zip(graphs).zip(names).map(find).collect()
}

fn value(graphs: &[Graph], position: &[usize]) -> u16 {
    nim_sum(graphs.iter().zip(position).map(|(graph, &at)| graph.values()[at]))
}

fn winning<'a>(graphs: &'a [Graph], position: &'a [usize]) -> impl Iterator<Item = WinningMoves> + 'a {
    let sum = value(graphs, position);
    graphs.iter().zip(position).enumerate().flat_map(move |(game, (graph, &from))| {
        let target = graph.values()[from] ^ sum; // if the sum is 0, this is the value of `from`, which no option has
        let to = graph.options(from).into_iter().filter(move |&to| graph.values()[to] == target);
        to.map(move |to| WinningMoves { game, from, to })
    })
}

/// P if the previous player wins, N if the next player wins.
pub(super) fn outcome(value: u16) -> &'static str {
    if value == 0 { "P" } else { "N" }
}

/// A name as one word of an output line, quoted where it needs quotes.
fn word(name: &str) -> String {
    let plain = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"');
    if plain { name.to_owned() } else { format!("{name:?}") }
}

fn print(out: &mut dyn Write, args: &Args, graphs: &[Graph], position: Option<&[usize]>) -> Result<()> {
    for (path, graph) in args.files.iter().zip(graphs) {
        if graphs.len() > 1 {
            writeln!(out, "{}:", path.display())?;
        }
        for (name, &value) in graph.names().iter().zip(graph.values()) {
            writeln!(out, "{} {} {value}", word(name), outcome(value))?;
        }
    }
    let Some(position) = position else { return Ok(()) };
    let sum = value(graphs, position);
    writeln!(out, "sum {} {sum}", outcome(sum))?;
    for WinningMoves { game, from, to } in winning(graphs, position) {
        let [from, to] = [from, to].map(|at| word(&graphs[game].names()[at]));
        writeln!(out, "move {}: {from} -> {to}", game + 1)?;
    }
    Ok(())
}

/// Prints the JSON object piece by piece, because the whole object would need more memory than the graphs.
fn print_json(out: &mut dyn Write, args: &Args, graphs: &[Graph], position: Option<&[usize]>) -> Result<()> {
    write!(out, "{{\"graphs\":[")?;
    for (at, (path, graph)) in args.files.iter().zip(graphs).enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(out, "{comma}{{\"file\":{},\"vertices\":[", json!(path.display().to_string()))?;
        for (at, (name, &value)) in graph.names().iter().zip(graph.values()).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(out, "{comma}{}", json!({"vertex": name, "outcome": outcome(value), "value": value}))?;
        }
        write!(out, "]}}")?;
    }
    let sum = position.map(|position| {
        let name = |game: usize, at: usize| &graphs[game].names()[at];
        let names: Vec<_> = position.iter().enumerate().map(|(game, &at)| name(game, at)).collect();
        let moves: Vec<_> = winning(graphs, position)
            .map(|w| json!({"game": w.game + 1, "from": name(w.game, w.from), "to": name(w.game, w.to)}))
            .collect();
        let value = value(graphs, position);
        json!({"position": names, "outcome": outcome(value), "value": value, "moves": moves})
    });
    writeln!(out, "],\"sum\":{}}}", json!(sum))?;
    Ok(())
}

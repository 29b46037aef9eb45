//! Remove an edge: a move takes two neighbours of a simple graph, with all their edges. (P. Alladi et al.,
//! *PRIMES STEP Plays Games*; paths are Dawson's Kayles, OEIS A215721 has its zeros, A274161 those of cycles.)
//!
//! Connected parts are independent, and vertices without edges have no effect, so a position is the list of its
//! edges. The vertices of each part are numbered in breadth-first order from a vertex of least degree: all paths of
//! one length become the same list, and so do cycles, stars and complete graphs.

use super::edges::Edges;
use super::finite::Game;
use crate::error::{Error, Result};
use std::collections::{HashSet, VecDeque};

/// The game; its positions are the graphs that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoveEdge;

/// A simple graph: its edges, sorted, each once, the smaller vertex first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SimpleGraph {
    edges: Vec<(u16, u16)>,
}

/// Maximum number of edges of a graph, far above those that a search can solve.
const MAX_EDGES: u64 = 1 << 20;

impl SimpleGraph {
    /// Creates a path of `n` vertices.
    ///
    /// # Errors
    /// [`Error::Board`] when it is too large.
    pub fn path(n: u64) -> Result<SimpleGraph> {
        SimpleGraph::of(n, n, |n| (1..n).map(|v| (v - 1, v)).collect())
    }

    /// Creates a cycle of `n` vertices, at least 3.
    ///
    /// # Errors
    /// [`Error::Position`] when it is too small, [`Error::Board`] when it is too large.
    pub fn cycle(n: u64) -> Result<SimpleGraph> {
        if n < 3 {
            return Err(Error::Position(format!("a cycle of {n} vertices is no simple graph; it needs at least 3")));
        }
        SimpleGraph::of(n, n, |n| (1..n).map(|v| (v - 1, v)).chain([(0, n - 1)]).collect())
    }

    /// Creates a star of `n` vertices, one of which is joined to all others.
    ///
    /// # Errors
    /// [`Error::Board`] when it is too large.
    pub fn star(n: u64) -> Result<SimpleGraph> {
        SimpleGraph::of(n, n, |n| (1..n).map(|v| (0, v)).collect())
    }

    /// Creates a complete graph of `n` vertices.
    ///
    /// # Errors
    /// [`Error::Board`] when it is too large.
    pub fn complete(n: u64) -> Result<SimpleGraph> {
        SimpleGraph::of(n, n.saturating_mul(n), |n| (1..n).flat_map(|b| (0..b).map(move |a| (a, b))).collect())
    }

    fn of(n: u64, edges: u64, make: impl Fn(u16) -> Vec<(u16, u16)>) -> Result<SimpleGraph> {
        let vertices = u16::try_from(n).ok().filter(|_| edges <= MAX_EDGES).ok_or_else(too_large)?;
        let mut edges = make(vertices);
        edges.sort_unstable();
        Ok(SimpleGraph { edges })
    }

    /// Creates the graph of these edges.
    ///
    /// # Errors
    /// [`Error::Line`] at a loop or a repeated edge, [`Error::Board`] when it is too large.
    pub fn new(read: &Edges) -> Result<SimpleGraph> {
        if read.edges.len() as u64 > MAX_EDGES {
            return Err(too_large());
        }
        let mut edges = HashSet::new();
        for edge in &read.edges {
            let name = |at: usize| read.names[at].escape_debug();
            if edge.from == edge.to {
                let what = format!("an edge from '{0}' to '{0}'; the graph has to be simple", name(edge.from));
                return Err(read.at(edge.line, what));
            }
            let ends = [edge.from.min(edge.to), edge.from.max(edge.to)].map(u16::try_from);
            let [Ok(from), Ok(to)] = ends else { return Err(too_large()) };
            if !edges.insert((from, to)) {
                let (from, to) = (name(edge.from), name(edge.to));
                let what = format!("the edge between '{from}' and '{to}' a second time; the graph has to be simple");
                return Err(read.at(edge.line, what));
            }
        }
        let mut edges: Vec<(u16, u16)> = edges.into_iter().collect();
        edges.sort_unstable();
        Ok(SimpleGraph { edges })
    }

    /// Returns the edges.
    #[must_use]
    pub fn edges(&self) -> &[(u16, u16)] {
        &self.edges
    }
}

fn too_large() -> Error {
    Error::Board(format!("a graph here has at most {MAX_EDGES} edges and 65535 vertices"))
}

impl Game for RemoveEdge {
    type Position = SimpleGraph;

    fn options(&self, graph: SimpleGraph) -> impl Iterator<Item = SimpleGraph> {
        (0..graph.edges.len()).map(move |at| {
            let (a, b) = graph.edges[at];
            let apart = |&&(c, d): &&(u16, u16)| c != a && c != b && d != a && d != b;
            SimpleGraph { edges: graph.edges.iter().filter(apart).copied().collect() }
        })
    }

    fn components(&self, graph: SimpleGraph) -> Vec<SimpleGraph> {
        // The lists are indexed by the number of the vertex instead of hashed, because a search spends most of its
        // time here.
        let vertices = graph.edges.iter().map(|edge| usize::from(edge.1) + 1).max().unwrap_or(0);
        let mut neighbours: Vec<Vec<u16>> = vec![Vec::new(); vertices];
        for &(a, b) in &graph.edges {
            neighbours[usize::from(a)].push(b);
            neighbours[usize::from(b)].push(a);
        }
        let mut starts: Vec<u16> = (0..=u16::MAX).take(vertices).collect();
        starts.retain(|&vertex| !neighbours[usize::from(vertex)].is_empty());
        starts.sort_by_key(|&vertex| neighbours[usize::from(vertex)].len());
        let mut numbers: Vec<Option<u16>> = vec![None; vertices];
        let mut parts = Vec::new();
        for start in starts {
            if numbers[usize::from(start)].is_some() {
                continue;
            }
            let (mut next, mut queue, mut edges) = (1, VecDeque::from([(start, 0)]), Vec::new());
            numbers[usize::from(start)] = Some(0);
            while let Some((vertex, from)) = queue.pop_front() {
                for &neighbour in &neighbours[usize::from(vertex)] {
                    let to = *numbers[usize::from(neighbour)].get_or_insert_with(|| {
                        queue.push_back((neighbour, next));
                        next += 1;
                        next - 1
                    });
                    if to > from {
                        edges.push((from, to));
                    }
                }
            }
            edges.sort_unstable();
            parts.push(SimpleGraph { edges });
        }
        parts
    }

    fn parts(&self, graph: &SimpleGraph) -> usize {
        graph.edges.len()
    }
}

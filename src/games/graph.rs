//! Games given as graphs: vertices are positions, edges are moves, and the player to move at a vertex without edges
//! loses.
//!
//! Every finite game is such a graph (M. Dufour, *The Grundy theorem for combinatorial games*, 2007, section 1). The
//! graph must have no cycle: every play ends if and only if it has none. The losing positions are those of value 0.
//!
//! Invariant: a [`Graph`] has no cycle, and every vertex has its value.

use super::edges::Edges;
use super::finite::{Game, GameSolver};
use crate::error::Result;
use petgraph::algo::{astar, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

/// An acyclic graph whose vertices have names and nim-values. A vertex is identified by its index, from 0, in the
/// order in which names were read.
#[derive(Clone, Debug)]
pub struct Graph {
    edges: Edges,
    /// Vertices in the order of the names; edges with their lines.
    moves: Moves,
    values: Vec<u16>,
}

/// The graph without names and values, as the solver searches it.
#[derive(Clone, Debug)]
struct Moves(DiGraph<(), usize>);

impl Game for Moves {
    type Position = NodeIndex;

    fn options(&self, vertex: NodeIndex) -> impl Iterator<Item = NodeIndex> {
        self.0.neighbors(vertex)
    }
}

impl Graph {
    /// Creates the game on these edges, and computes all its values.
    ///
    /// # Errors
    /// [`Error::Line`](crate::Error::Line) when there is a cycle, with the line at which it is complete.
    ///
    /// ```
    /// use grundy::games::{edges::{Direction, Edges}, graph::Graph};
    /// let heap_of_two = Edges::read("nim".as_ref(), "2 1\n2 0\n1 0\n", Direction::Directed)?;
    /// let graph = Graph::new(heap_of_two)?;
    /// assert_eq!(graph.values(), [2, 1, 0]);
    /// # Ok::<(), grundy::Error>(())
    /// ```
    pub fn new(edges: Edges) -> Result<Graph> {
        let mut moves = DiGraph::with_capacity(edges.names.len(), edges.edges.len());
        let vertices: Vec<NodeIndex> = edges.names.iter().map(|_| moves.add_node(())).collect();
        for edge in &edges.edges {
            moves.add_edge(vertices[edge.from], vertices[edge.to], edge.line);
        }
        if let Err(cycle) = toposort(&moves, None) {
            return Err(refusal(&edges, &moves, cycle.node_id()));
        }
        let moves = Moves(moves);
        // Each vertex occurs at most once among the values and on the stack, so the bound is never exceeded.
        let mut solver = GameSolver::new(&moves, edges.names.len());
        let values = vertices.iter().map(|&vertex| solver.value(vertex)).collect::<Result<_>>()?;
        Ok(Graph { edges, moves, values })
    }

    /// Returns the names of the vertices.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.edges.names
    }

    /// Returns the nim-values of the vertices.
    #[must_use]
    pub fn values(&self) -> &[u16] {
        &self.values
    }

    /// Returns the vertex with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.edges.find(name)
    }

    /// Returns the vertices to which moves from this one lead, ascending, each once.
    ///
    /// # Panics
    /// Panics when there is no such vertex.
    #[must_use]
    pub fn options(&self, vertex: usize) -> Vec<usize> {
        let mut options: Vec<usize> =
            self.moves.0.neighbors(NodeIndex::new(vertex)).map(|option| option.index()).collect();
        options.sort_unstable();
        options.dedup();
        options
    }
}

/// Returns the error for a cycle through a vertex: it names the cycle, and the line at which it is complete.
fn refusal(edges: &Edges, moves: &DiGraph<(), usize>, vertex: NodeIndex) -> crate::Error {
    let back = moves.neighbors(vertex).find_map(|next| astar(moves, next, |at| at == vertex, |_| 1, |_| 0));
    let path: Vec<NodeIndex> = std::iter::once(vertex).chain(back.into_iter().flat_map(|(_, path)| path)).collect();
    let lines = path.windows(2).filter_map(|pair| moves.edges_connecting(pair[0], pair[1]).map(|e| *e.weight()).min());
    let line = lines.max().unwrap_or(1);
    let mut names: Vec<String> = path.iter().map(|at| edges.names[at.index()].escape_debug().to_string()).collect();
    if names.len() > 12 {
        names.splice(6..names.len() - 5, ["…".to_owned()]);
    }
    edges.at(line, format!("a cycle, {}; every play of a game must end", names.join(" -> ")))
}

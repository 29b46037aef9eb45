//! Games given as graphs: vertices are positions, edges are moves, and who stands on a vertex without edges loses.
//!
//! Every finite game is one (M. Dufour, *The Grundy theorem for combinatorial games*, 2007, section 1), provided that
//! the graph has no cycle: then, and only then, every play ends. The losing positions are those of value 0.
//!
//! Invariant: a [`Graph`] has no cycle, and every vertex has its value.

use super::edges::Edges;
use super::finite::{Game, GameSolver};
use crate::error::Result;
use petgraph::algo::{astar, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

/// An acyclic graph whose vertices have names and nim-values. A vertex is known by its place, from 0, in the order in
/// which names were read.
#[derive(Clone, Debug)]
pub struct Graph {
    edges: Edges,
    /// Vertices in the order of the names; edges with their lines.
    moves: Moves,
    values: Vec<u16>,
}

/// The graph alone, which the solver walks.
#[derive(Clone, Debug)]
struct Moves(DiGraph<(), usize>);

impl Game for Moves {
    type Position = NodeIndex;

    fn options(&self, vertex: NodeIndex) -> impl Iterator<Item = NodeIndex> {
        self.0.neighbors(vertex)
    }
}

impl Graph {
    /// The game on these edges, with all its values.
    ///
    /// # Errors
    /// [`Error::Line`](crate::Error::Line) when there is a cycle, with the line of the last of its edges.
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
        // Each vertex is once among the values or on the stack.
        let mut solver = GameSolver::new(&moves, edges.names.len());
        let values = vertices.iter().map(|&vertex| solver.value(vertex)).collect::<Result<_>>()?;
        Ok(Graph { edges, moves, values })
    }

    /// The names of the vertices.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.edges.names
    }

    /// The nim-values of the vertices.
    #[must_use]
    pub fn values(&self) -> &[u16] {
        &self.values
    }

    /// The vertex of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.edges.find(name)
    }

    /// The vertices that moves from this one lead to, ascending, each once.
    ///
    /// # Panics
    /// When there is no such vertex.
    #[must_use]
    pub fn options(&self, vertex: usize) -> Vec<usize> {
        let mut options: Vec<usize> =
            self.moves.0.neighbors(NodeIndex::new(vertex)).map(|option| option.index()).collect();
        options.sort_unstable();
        options.dedup();
        options
    }
}

/// Names the cycle through a vertex, and the last line that it needs.
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

//! Board games of *PRIMES STEP Plays Games* against the statements of that article, and the limits of the search.
//!
//! Extend this file for a board game or for `grundy board`, and `graphs.rs` for a game that a file defines.

use crate::support::{Random, data, grundy, start, text};
use grundy::error::Error;
use grundy::games::edges::{Direction, Edges};
use grundy::games::finite::{Game, GameSolver};
use grundy::games::no_factor::NoFactor;
use grundy::games::remove_edge::{RemoveEdge, SimpleGraph};
use grundy::games::remove_square::RemoveSquare;
use grundy::games::rows_columns::RowsColumns;
use grundy::games::shape::Shape;
use grundy::theory::definition;
use grundy::theory::nimber::mex;
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;

fn value<G: Game>(game: &G, position: G::Position) -> u16 {
    GameSolver::new(game, 1 << 20).value(position).unwrap()
}

fn defined(game: &str, count: usize) -> Vec<u16> {
    definition::values(&game.parse().unwrap(), count).unwrap()
}

fn shape(rows: &str) -> Shape {
    rows.parse().unwrap()
}

fn path(n: u64) -> SimpleGraph {
    SimpleGraph::path(n).unwrap()
}

/// The definition alone: recursion over whole positions, without components and normal forms.
fn plainly<G: Game>(game: &G, position: &G::Position, known: &mut HashMap<G::Position, u16>) -> u16 {
    if let Some(&value) = known.get(position) {
        return value;
    }
    let options: Vec<u16> = game.options(position.clone()).map(|option| plainly(game, &option, known)).collect();
    let value = u16::try_from(mex(options)).unwrap();
    known.insert(position.clone(), value);
    value
}

// ---- The solver.

#[test]
fn splitting_and_normal_forms_keep_values_of_random_positions() {
    let mut random = Random::new("parts_and_normal_forms");
    let mut several = 0;
    for _ in 0..60 {
        let (rows, columns) = (2 + random.below(3), 2 + random.below(3));
        let cells = Shape::rectangle(rows, columns).unwrap();
        let drawn: Vec<_> = cells.cells().iter().copied().filter(|_| random.below(4) > 0).collect();
        let drawn = Shape::new(drawn);
        let expected = plainly(&RemoveSquare, &drawn, &mut HashMap::new());
        assert_eq!(value(&RemoveSquare, drawn.clone()), expected, "{drawn:?}");
        assert_eq!(value(&RowsColumns, drawn.clone()), plainly(&RowsColumns, &drawn, &mut HashMap::new()), "{drawn:?}");
        several += usize::from(RemoveSquare.components(drawn).len() > 1);
    }
    assert!(several > 10, "enough of them had parts");
    for _ in 0..60 {
        let n = 3 + random.below(5);
        let lines: String = (0..n)
            .flat_map(|b| (0..b).map(move |a| (a, b)))
            .filter(|_| random.below(3) == 0)
            .map(|(a, b)| format!("{b} {a}\n"))
            .collect();
        let graph = SimpleGraph::new(&Edges::read(Path::new("x"), &lines, Direction::Undirected).unwrap()).unwrap();
        let expected = plainly(&RemoveEdge, &graph, &mut HashMap::new());
        assert_eq!(value(&RemoveEdge, graph), expected, "{lines}");
    }
}

#[test]
fn too_large_a_search_ends_at_its_bound_before_memory_is_exhausted() {
    let eight = Shape::rectangle(8, 8).unwrap();
    let refused = |result| matches!(result, Err(Error::Positions { bound: 100 }));
    assert!(refused(GameSolver::new(&RowsColumns, 100).value(Shape::diamond(5).unwrap())));
    assert!(refused(GameSolver::new(&RemoveSquare, 100).value(eight)));
    assert!(refused(GameSolver::new(&RemoveEdge, 100).value(SimpleGraph::new(&grid(8)).unwrap())));
    // One position with 2^17 options.
    let game = NoFactor::new(60).unwrap();
    let primes = game.start() & !1;
    assert!(refused(GameSolver::new(&game, 100).value(primes)));
}

/// An n×n grid as a graph.
fn grid(n: u64) -> Edges {
    let across = (0..n * n).filter(|v| v % n > 0).map(|v| format!("{} {v}\n", v - 1));
    let down = (n..n * n).map(|v| format!("{} {v}\n", v - n));
    Edges::read(Path::new("grid"), &across.chain(down).collect::<String>(), Direction::Undirected).unwrap()
}

/// A game that never ends has no values. The solver must refuse it before memory is exhausted.
#[test]
fn game_with_a_cycle_is_refused() {
    struct Circle;
    impl Game for Circle {
        type Position = u64;
        fn options(&self, position: u64) -> impl Iterator<Item = u64> {
            std::iter::once((position + 1) % 3)
        }
    }
    assert!(matches!(GameSolver::new(&Circle, 1000).value(0), Err(Error::Positions { bound: 1000 })));
}

// ---- Rows and columns.

#[test]
fn diamond_is_a_p_position_unless_it_is_one_token() {
    assert_eq!(Shape::diamond(2).unwrap(), shape("..#../.###./#####/.###./..#.."));
    for c in 0..4 {
        let value = value(&RowsColumns, Shape::diamond(c).unwrap());
        assert_eq!(value == 0, c > 0, "|a| + |b| <= {c}");
    }
}

#[test]
fn cross_is_a_p_position_iff_m_plus_n_is_even_and_both_exceed_1() {
    assert_eq!(Shape::cross(3, 5).unwrap(), shape(".#./.#./###/.#./.#."));
    let mut solver = GameSolver::new(&RowsColumns, 1 << 20);
    for m in 1..12 {
        for n in 1..12 {
            let value = solver.value(Shape::cross(m, n).unwrap()).unwrap();
            assert_eq!(value == 0, (m + n) % 2 == 0 && m > 1 && n > 1, "{m} and {n}");
        }
    }
}

#[test]
fn shapes_symmetric_to_both_token_free_axes_are_p_positions() {
    let mut random = Random::new("symmetric");
    for _ in 0..40 {
        let quarter: Vec<(u16, u16)> =
            (0..3).flat_map(|r| (0..3).map(move |c| (r, c))).filter(|_| random.below(2) == 0).collect();
        let all = quarter.iter().flat_map(|&(r, c)| [(r, c), (6 - r, c), (r, 6 - c), (6 - r, 6 - c)]);
        let whole = Shape::new(all.collect());
        assert_eq!(value(&RowsColumns, whole.clone()), 0, "{whole:?}");
    }
}

// ---- Remove a square.

#[test]
fn the_squares_and_the_five_block_have_the_printed_values() {
    assert_eq!(value(&RemoveSquare, shape("#")), 1);
    assert_eq!(value(&RemoveSquare, shape("##")), 0);
    assert_eq!(value(&RemoveSquare, shape("##/##")), 2);
    assert_eq!(value(&RemoveSquare, shape("#.../..##/..##")), 3, "1 and 2 make 3");
    assert_eq!(value(&RemoveSquare, shape("##./###")), 3, "the five-block of figure 3");
    assert_eq!(RemoveSquare.options(shape("##./###")).count(), 6, "one 2x2 and five 1x1");
    // 2x3: taking a 2x2 square wins; the answer to a cell of the first column is a cell of the middle one.
    assert_eq!(value(&RemoveSquare, shape("###/###")), 2);
    assert_eq!(value(&RemoveSquare, shape("#/#")), 0);
    assert_eq!(value(&RemoveSquare, shape("..#/#.#")), 1);
    assert_eq!(value(&RemoveSquare, shape(".##/#.#")), 0);
}

/// Compares the search of boards, the heap rule by its definition, and Table 1.
#[test]
fn board_heap_rule_and_printed_table_agree_on_2_by_n() {
    let printed: Vec<u16> =
        data("remove-a-square-a286332.txt").split_whitespace().map(|v| v.parse().unwrap()).collect();
    let heaps = defined("remove-a-square", 96);
    let mut solver = GameSolver::new(&RemoveSquare, 1 << 20);
    for n in 0..96 {
        let board = solver.value(Shape::rectangle(2, n as u64).unwrap()).unwrap();
        assert_eq!((board, heaps[n]), (printed[n], printed[n]), "2x{n}");
        // The zeros are 12a + 1, so the first player wins 2x2k; n = 0 is no game.
        assert_eq!(board == 0, n == 0 || n % 12 == 1, "2x{n}");
    }
}

/// The recurrence as it is printed, with i from 1 on, leaves out the 2x2 square at the end and has no option for n = 2.
#[test]
fn the_printed_recurrence_of_2_by_n_needs_i_from_0_on() {
    let by = |first: usize| {
        let mut g: Vec<u16> = vec![0, 0];
        for n in 2..96 {
            let squares = (first..n - 1).map(|i| g[i] ^ g[n - i - 2]);
            let cells = (first..n).map(|j| g[j] ^ 1 ^ g[n - j - 1]);
            let next = mex(squares.chain(cells).collect::<Vec<_>>());
            g.push(u16::try_from(next).unwrap());
        }
        g
    };
    let heaps = defined("remove-a-square", 96);
    assert_eq!(by(0), heaps);
    assert_eq!((by(1)[2], heaps[2]), (0, 2), "as printed, 2x2 would be lost");
}

// ---- Remove an edge.

#[test]
fn stars_are_n_positions_and_complete_graphs_depend_on_n_mod_4() {
    for n in 0..30 {
        let star = value(&RemoveEdge, SimpleGraph::star(n).unwrap());
        assert_eq!(star > 0, n > 1, "a star of {n}");
    }
    for n in 0..16 {
        let complete = value(&RemoveEdge, SimpleGraph::complete(n).unwrap());
        assert_eq!(complete > 0, n % 4 >= 2, "complete, {n}");
    }
}

/// OEIS A215721 with its recurrence, up to below `end`.
fn a215721(end: usize) -> BTreeSet<usize> {
    let mut zeros: Vec<usize> =
        data("dawson-kayles-a215721.txt").split_whitespace().map(|heap| heap.parse().unwrap()).collect();
    while *zeros.last().unwrap() < end {
        zeros.push(zeros[zeros.len() - 5] + 34);
    }
    zeros.into_iter().filter(|&n| n < end).collect()
}

#[test]
fn paths_equal_dawsons_kayles_and_cycles_of_n_are_won_two_above() {
    const END: usize = 110;
    let (heaps, zeros) = (defined("dawson-kayles", END), a215721(END));
    let mut solver = GameSolver::new(&RemoveEdge, 1 << 20);
    for (n, &heap) in heaps.iter().enumerate() {
        let found = solver.value(path(n as u64)).unwrap();
        assert_eq!(found, heap, "a path of {n}");
        assert_eq!(found == 0, zeros.contains(&n), "a path of {n}");
        assert!(n == 0 || n % 2 == 1 || found > 0, "even paths are won");
        if n >= 3 {
            let cycle = solver.value(SimpleGraph::cycle(n as u64).unwrap()).unwrap();
            assert_eq!(cycle > 0, zeros.contains(&(n - 2)), "a cycle of {n}: A274161");
        }
    }
}

/// The recurrence for paths is printed with a 1 that is not there, and from i = 1; the printed P-positions decide.
#[test]
fn the_printed_recurrence_of_paths_has_a_spurious_1() {
    let by = |first: usize, constant: u16| -> BTreeSet<usize> {
        let mut g: Vec<u16> = vec![0, 0];
        for n in 2..80 {
            let next = mex((first..n - 1).map(|i| g[i] ^ constant ^ g[n - i - 2]).collect::<Vec<_>>());
            g.push(u16::try_from(next).unwrap());
        }
        (0..80).filter(|&n| g[n] == 0).collect()
    };
    assert_eq!(by(0, 0), a215721(80));
    assert_ne!(by(0, 1), a215721(80));
    assert_ne!(by(1, 1), a215721(80));
}

/// Another game of the article: a move deletes one edge and must isolate no vertex.
struct EdgeDelete;

impl Game for EdgeDelete {
    type Position = Vec<(u64, u64)>;

    fn options(&self, edges: Self::Position) -> impl Iterator<Item = Self::Position> {
        let degree = |v: u64| edges.iter().filter(|&&(a, b)| a == v || b == v).count();
        let allowed: Vec<_> = edges.iter().copied().filter(|&(a, b)| degree(a) > 1 && degree(b) > 1).collect();
        allowed.into_iter().map(move |gone| edges.iter().copied().filter(|&edge| edge != gone).collect())
    }
}

#[test]
fn p_positions_of_edge_delete_on_paths_are_a274161() {
    let zeros = a215721(100);
    let mut solver = GameSolver::new(&EdgeDelete, 1 << 20);
    let mut known = GameSolver::new(&RemoveEdge, 1 << 20);
    for n in 2..17 {
        let found = solver.value((1..n).map(|v| (v - 1, v)).collect()).unwrap();
        assert_eq!(found == 0, zeros.contains(&(n as usize - 2)), "a path of {n}");
        assert_eq!(found, known.value(path(n - 2)).unwrap(), "dominoes on 1x{}", n - 2);
    }
}

#[test]
fn graphs_that_are_not_simple_are_refused_with_their_line() {
    for (bad, line, words) in [("a b\nb b\n", 2, "'b' to 'b'"), ("a b\nc d\nb a\n", 3, "second time")] {
        let read = Edges::read(Path::new("bad.txt"), bad, Direction::Undirected).unwrap();
        let message = SimpleGraph::new(&read).unwrap_err().to_string();
        assert!(message.starts_with(&format!("bad.txt, line {line}: ")) && message.contains(words), "{message}");
    }
    assert!(
        SimpleGraph::cycle(2).is_err()
            && SimpleGraph::complete(1 << 40).is_err()
            && path(65_535).edges().len() == 65_534
    );
    assert!(SimpleGraph::path(65_536).is_err());
}

// ---- No factor.

#[test]
fn the_second_player_wins_no_factor_for_n_above_1() {
    for n in 1..22 {
        let game = NoFactor::new(n).unwrap();
        let found = value(&game, game.start());
        assert_eq!(found > 0, n == 1, "n = {n}");
        assert!(game.options(game.start()).eq([game.start() - 1]), "the first move takes 1");
    }
}

/// Computes the moves by their description: tries all sets of numbers one by one.
#[test]
fn the_moves_of_no_factor_are_all_sets_without_proper_factors_left() {
    let game = NoFactor::new(10).unwrap();
    for left in 0..1u64 << 10 {
        let is_left = |set: u64, i: u64| set >> (i - 1) & 1 == 1;
        let may = |i: u64| (1..i).all(|j| !(i.is_multiple_of(j) && is_left(left, j)));
        let sets = (1..1u64 << 10).filter(|&set| set & !left == 0 && (1..=10).all(|i| !is_left(set, i) || may(i)));
        let expected: BTreeSet<u64> = sets.map(|set| left & !set).collect();
        let options: Vec<u64> = game.options(left).collect();
        assert_eq!(options.len(), expected.len(), "each once");
        assert_eq!(options.into_iter().collect::<BTreeSet<u64>>(), expected, "{left:b}");
    }
}

/// The search is refused by this number. If it were too large, possible searches would be refused; if too small, a
/// search could exhaust memory.
#[test]
fn the_positions_of_no_factor_are_counted_right_without_a_search() {
    for n in 1..14u64 {
        let divides = |set: u64| {
            (1..=n).any(|j| (1..j).any(|i| j.is_multiple_of(i) && set >> (i - 1) & 1 == 1 && set >> (j - 1) & 1 == 1))
        };
        let expected = (0..1u64 << n).filter(|&set| !divides(set)).count();
        let game = NoFactor::new(n).unwrap();
        assert_eq!(game.positions(expected), Some(expected), "n = {n}");
        assert_eq!(game.positions(expected - 1), None, "n = {n}");
        let mut solver = GameSolver::new(&game, expected);
        assert_eq!(solver.value(game.start()).unwrap() > 0, n == 1);
        assert_eq!(solver.known(), expected, "all of them come up, n = {n}");
    }
    // OEIS A051026.
    assert_eq!(NoFactor::new(30).unwrap().positions(1 << 20), Some(879_937));
    assert_eq!(NoFactor::new(64).unwrap().positions(1 << 21), None);
}

// ---- What the article says of single moves.

/// Remove-a-square on 2x2k: "Remove the middle 2x2 square. If k > 1, the game separates into two identical
/// configurations."
#[test]
fn taking_the_middle_square_wins_2_by_2k() {
    for k in 1..20u16 {
        let board = Shape::rectangle(2, 2 * u64::from(k)).unwrap();
        let left = board.filter(|(_, column)| column != k - 1 && column != k);
        assert!(RemoveSquare.options(board).any(|option| option == left), "2x{} has this move", 2 * k);
        assert_eq!(value(&RemoveSquare, left), 0, "2x{}", 2 * k);
    }
}

/// Figure 4 of the article: G(3) = mex {0, 1, 3} = 2; and the moves on 2x3 that the text before it describes.
#[test]
fn the_options_of_2_by_3_have_the_values_0_1_and_3() {
    let board = shape("###/###");
    let values: BTreeSet<u16> =
        RemoveSquare.options(board.clone()).map(|option| value(&RemoveSquare, option)).collect();
    assert_eq!(values, BTreeSet::from([0, 1, 3]));
    // Takes a cell of the first column and then one of the middle column: four moves are left in any order.
    for answer in [".##/#.#", "..#/###"] {
        let answer = shape(answer);
        assert!(RemoveSquare.options(shape(".##/###")).any(|option| option == answer));
        assert_eq!((answer.cells().len(), value(&RemoveSquare, answer)), (4, 0));
    }
    // A 2x2 square: "the game ends in three moves, and player 1 wins".
    assert_eq!(value(&RemoveSquare, shape("#../#..")), 0);
}

/// Remove-an-edge on an even path: "player 1 can remove the center edge, dividing the game into two equivalent games".
#[test]
fn taking_the_centre_edge_wins_even_paths() {
    for n in (2..60).step_by(2) {
        let start = path(n);
        let centre = RemoveEdge.options(start.clone()).nth(start.edges().len() / 2).unwrap();
        let halves = RemoveEdge.components(centre.clone());
        assert_eq!(halves, vec![path(n / 2 - 1); if n < 6 { 0 } else { 2 }], "a path of {n}");
        assert_eq!(value(&RemoveEdge, centre), 0, "a path of {n}");
    }
}

/// A star is won in one move, a complete graph of n becomes one of n - 2, and a cycle of n a path of n - 2, by every
/// move.
#[test]
fn moves_on_stars_complete_graphs_and_cycles_match_the_article() {
    let all_lead_to = |start: SimpleGraph, to: SimpleGraph| {
        let to = RemoveEdge.components(to);
        start.edges().len()
            == RemoveEdge.options(start).filter(|left| RemoveEdge.components(left.clone()) == to).count()
    };
    for n in 3..12 {
        assert!(all_lead_to(SimpleGraph::star(n).unwrap(), SimpleGraph::default()), "a star of {n}");
        assert!(all_lead_to(SimpleGraph::complete(n).unwrap(), SimpleGraph::complete(n - 2).unwrap()), "complete, {n}");
        assert!(all_lead_to(SimpleGraph::cycle(n).unwrap(), path(n - 2)), "a cycle of {n}");
    }
}

/// The search follows only one of several equal lines. This loses no value.
#[test]
fn moves_of_rows_and_columns_are_all_lines_up_to_equality() {
    let mut random = Random::new("lines");
    let mut alike = 0;
    for _ in 0..100 {
        let cells = Shape::rectangle(4, 4).unwrap();
        let drawn = Shape::new(cells.cells().iter().copied().filter(|_| random.below(2) == 0).collect());
        let by_row = (0..4).map(|row| drawn.filter(|cell| cell.0 != row));
        let by_column = (0..4).map(|column| drawn.filter(|cell| cell.1 != column));
        let all: Vec<Shape> = by_row.chain(by_column).filter(|left| *left != drawn).collect();
        let known = |left: &Shape| plainly(&RowsColumns, left, &mut HashMap::new());
        let expected: BTreeSet<u16> = all.iter().map(known).collect();
        let found: Vec<Shape> = RowsColumns.options(drawn.clone()).collect();
        assert!(found.iter().all(|left| all.contains(left)), "{drawn:?}");
        assert_eq!(found.iter().map(known).collect::<BTreeSet<u16>>(), expected, "{drawn:?}");
        alike += all.len() - found.len();
    }
    assert!(alike > 20, "some lines were alike");
}

// ---- The command line.

/// Stdout and stderr of the program, which must exit with `status`: the result, or an error and no result.
fn exits_with(status: i32, arguments: &[&str]) -> (String, String) {
    let output = grundy(arguments).output().unwrap();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {out}{error}");
    assert!((status == 0) == error.is_empty() && (status == 0 || out.is_empty()), "{arguments:?}: {out}{error}");
    (out, error)
}

#[test]
fn the_board_command_prints_values_and_winners() {
    let board = |arguments: &[&str]| exits_with(0, &[&["board"], arguments].concat()).0;
    assert_eq!(
        board(&["remove-square", "##./###", "2x2..4"]),
        "##./###: nim-value 3, player 1 wins\n2x2: nim-value 2, player 1 wins\n2x3: nim-value 2, player 1 wins\n"
    );
    assert_eq!(board(&["rows-columns", "diamond:2"]), "diamond:2: nim-value 0, player 2 wins\n");
    assert_eq!(board(&["rows-columns", "cross:2x2"]), "cross:2x2: nim-value 0, player 2 wins\n");
    assert_eq!(
        board(&["remove-edge", "path:5", "edges:a-b,b-c,c-a"]),
        "path:5: nim-value 0, player 2 wins\nedges:a-b,b-c,c-a: nim-value 1, player 1 wins\n"
    );
    assert_eq!(board(&["no-factor", "1..3"]), "1: nim-value 1, player 1 wins\n2: nim-value 0, player 2 wins\n");
    assert_eq!(
        board(&["remove-edge", "star:4", "--json"]),
        "{\"game\":\"remove-edge\",\"outcome\":\"N\",\"position\":\"star:4\",\"value\":1,\"winner\":1}\n"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        std::fs::write(dir.path().join(name), content).unwrap();
        dir.path().join(name).to_str().unwrap().to_owned()
    };
    let (rows, dot) = (file("rows", "##.\n###\n"), file("dot", "graph { a -- b -- c -- a }"));
    assert_eq!(board(&["remove-square", &rows]), format!("{rows}: nim-value 3, player 1 wins\n"));
    assert_eq!(board(&["remove-edge", &dot]), format!("{dot}: nim-value 1, player 1 wins\n"));
    let (bad_rows, bad_edges) = (file("bad", "##\n#x\n"), file("bad2", "a b\na a\n"));
    for (status, arguments, words) in [
        (2, ["remove-square", "##/#?"], "row 2, column 2"),
        (2, ["remove-square", "2y3"], "MxN"),
        (2, ["remove-edge", "path:x"], "'path:x': not a whole number"),
        (2, ["no-factor", "1.."], "'1..'"),
        (1, ["rows-columns", "foo:3"], "'foo:3' is neither a position nor a file"),
        (2, ["remove-edge", "edges:a-b,b"], "'b'"),
        (2, ["remove-edge", "edges:a-b,b-a"], "second time"),
        (2, ["remove-edge", "cycle:2"], "at least 3"),
        (2, ["rows-columns", "cross:0x3"], "both are at least 1"),
        (1, ["remove-square", &bad_rows], "bad, line 2"),
        (1, ["remove-edge", &bad_edges], "bad2, line 2"),
        (1, ["remove-edge", "/nowhere"], "/nowhere"),
        (1, ["no-factor", "65"], "64"),
    ] {
        let (_, error) = exits_with(status, &[&["board"], &arguments[..]].concat());
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
    let (_, error) = exits_with(1, &["board", "rows-columns", "diamond:4", "--positions", "100"]);
    assert!(error.contains("100 positions") && error.contains("--positions"), "{error}");
}

/// A result is not lost if a later position is refused, and a refusal does not wait for a search.
#[test]
fn results_are_printed_before_a_later_position_is_refused() {
    let five = "5: nim-value 0, player 2 wins\n";
    for (status, arguments, results, words) in [
        (1, &["no-factor", "5", "34"][..], five, ["34: ", "2097152 positions", "--positions"]),
        (1, &["no-factor", "5", "64..70"], five, ["64: ", "2097152 positions", "--positions"]),
        (1, &["no-factor", "5", "65"], five, ["65", "above 64", "too many"]),
        (1, &["no-factor", "5..9", "--positions", "13"], five, ["6: ", "13 positions", "--positions"]),
        (1, &["no-factor", "34"], "", ["34: ", "2097152 positions", "--positions"]),
        (1, &["remove-edge", "path:5", "/nowhere"], "path:5: nim-value 0, player 2 wins\n", ["/nowhere"; 3]),
        (
            1,
            &["rows-columns", "diamond:2", "diamond:1e5"],
            "diamond:2: nim-value 0, player 2 wins\n",
            ["diamond:100000: ", "at most 1048576 cells", "65535"],
        ),
        (1, &["remove-square", "1x0..3", "300x300"], ONE_BY_N, ["300x300: ", "4294967296", "--positions"]),
        // An invalid position is refused before any search.
        (2, &["rows-columns", "diamond:2", "cross:0x3"], "", ["0 and 3", "both are at least 1", "no cell"]),
        (2, &["rows-columns", "diamond:2", "cross:3x0..2"], "", ["3 and 0", "both are at least 1", "no cell"]),
        (2, &["remove-edge", "path:5", "cycle:2"], "", ["a cycle of 2", "at least 3", "no simple graph"]),
        (2, &["remove-edge", "path:5", "cycle:2..9"], "", ["a cycle of 2", "at least 3", "no simple graph"]),
        (2, &["remove-edge", "path:5", "path:x"], "", ["number"; 3]),
        (2, &["no-factor", "5", "x"], "", ["number"; 3]),
    ] {
        let output = grundy(["board"].iter().chain(arguments)).output().unwrap();
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!((output.status.code(), &*out), (Some(status), results), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    }
}

/// These boards have no square but single cells, so the parity of the cells decides.
const ONE_BY_N: &str =
    "1x0: nim-value 0, player 2 wins\n1x1: nim-value 1, player 1 wins\n1x2: nim-value 0, player 2 wins\n";

#[test]
fn each_result_is_printed_before_the_next_search_ends() {
    let mut searching = start(&mut grundy(["board", "no-factor", "5", "31"]));
    let mut line = String::new();
    BufReader::new(searching.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "5: nim-value 0, player 2 wins\n");
    assert!(searching.try_wait().unwrap().is_none(), "1.7 million positions are not searched so soon");
    searching.kill().unwrap();
    searching.wait().unwrap();
}

/// Boards whose number of positions is far below what their size suggests.
#[test]
fn large_boards_with_few_positions_are_searched_within_the_limits() {
    let rectangle = |m, n| Shape::rectangle(m, n).unwrap();
    assert_eq!(GameSolver::limited(&RemoveSquare).value(rectangle(1, 2001)).unwrap(), 1, "an odd number of cells");
    // Taking the row wins. Taking columns one by one, the parity decides: 1xn has the values 1, 2, 1, 2, ... from n =
    // 1 on. For n = 1 both moves are the same: mex {0}, mex {0, 1}, mex {0, 2}, ...
    for (n, expected) in [(1, 1), (2, 2), (3, 1), (600, 2), (601, 1)] {
        assert_eq!(GameSolver::limited(&RowsColumns).value(rectangle(1, n)).unwrap(), expected, "1x{n}");
    }
    let mut solver = GameSolver::limited(&RemoveEdge);
    assert_eq!(solver.value(path(300)).unwrap(), defined("dawson-kayles", 301)[300]);
    assert!(solver.known() <= 300, "paths only");
    assert_eq!(solver.value(SimpleGraph::star(10_000).unwrap()).unwrap(), 1, "every move ends it");
}

#[test]
fn hopeless_search_is_refused_before_it_begins() {
    let refused = |n| {
        matches!(GameSolver::limited(&RemoveSquare).value(Shape::rectangle(n, n).unwrap()), Err(Error::Search { .. }))
    };
    assert!(refused(300) && refused(1000));
}

//! Games that a file defines as a directed graph: values, sums and winning moves against M. Dufour (2007), the two
//! notations of the file, and `grundy graph`.

use crate::support::{Random, fails, stdout_of};
use grundy::games::edges::{Direction, Edges};
use grundy::games::graph::Graph;
use grundy::games::sum::lowered;
use grundy::theory::nimber::{mex, nim_sum};
use std::collections::HashMap;
use std::path::Path;

fn graph(lines: &str) -> Graph {
    Graph::new(Edges::read(Path::new("x"), lines, Direction::Directed).unwrap()).unwrap()
}

/// A random acyclic graph with `n` vertices named by numbers; edges lead to smaller numbers.
fn random_game(random: &mut Random, n: u64) -> (String, Graph) {
    let mut lines: String = (0..n).map(|v| format!("{v}\n")).collect();
    for from in 0..n {
        for to in 0..from {
            if random.below(3) == 0 {
                lines += &format!("{from} {to}\n");
            }
        }
    }
    let graph = graph(&lines);
    (lines, graph)
}

#[test]
fn partition_has_properties_p1_and_p2_and_values_are_the_mex() {
    let mut random = Random::new("partition");
    for _ in 0..200 {
        let (lines, game) = random_game(&mut random, 12);
        let values = game.values();
        for vertex in 0..12 {
            let options = game.options(vertex);
            let to_losing = options.iter().any(|&option| values[option] == 0);
            assert_eq!(values[vertex] > 0, to_losing, "vertex {vertex} of\n{lines}");
            assert_eq!(
                u32::from(values[vertex]),
                mex(options.iter().map(|&option| values[option])),
                "{vertex}\n{lines}"
            );
        }
    }
}

/// The main theorem: compares the sum of two games with the graph of all pairs.
#[test]
fn the_value_of_a_sum_is_the_digital_sum() {
    let mut random = Random::new("sum");
    for _ in 0..20 {
        let ((_, one), (_, two)) = (random_game(&mut random, 7), random_game(&mut random, 6));
        let mut lines = String::new();
        for a in 0..7 {
            for b in 0..6 {
                lines += &format!("{a},{b}\n");
                lines.extend(one.options(a).iter().map(|to| format!("{a},{b} {to},{b}\n")));
                lines.extend(two.options(b).iter().map(|to| format!("{a},{b} {a},{to}\n")));
            }
        }
        let both = graph(&lines);
        for a in 0..7 {
            for b in 0..6 {
                let found = both.values()[both.find(&format!("{a},{b}")).unwrap()];
                assert_eq!(found, nim_sum([one.values()[a], two.values()[b]]), "{a},{b}\n{lines}");
            }
        }
    }
}

#[test]
fn a_heap_of_nim_has_its_size_as_value() {
    let lines: String = (0..46).flat_map(|x| (0..x).map(move |y| format!("{x} {y}\n"))).collect();
    let nim = graph(&lines);
    for x in 0..46 {
        assert_eq!(nim.values()[nim.find(&x.to_string()).unwrap()], x);
    }
}

#[test]
fn the_mex_of_the_example_is_4() {
    assert_eq!(mex([0, 1, 2, 3, 5, 7, 8, 9, 10, 13]), 4);
}

#[test]
fn the_digital_sums_and_lowered_values_are_as_printed() {
    assert_eq!((nim_sum([13, 17]), nim_sum([1, 2])), (28, 3));
    assert_eq!(nim_sum([45, 39, 25, 30]), 13);
    // "We have three choices: 45, 25 and 30. Choose 45", which becomes 38.
    assert_eq!(lowered(&[45, 39, 25, 30], 6), [(0, 38), (2, 18), (3, 21)]);
    assert_eq!(nim_sum([38, 39, 25, 30]), 6);
    // Nim with 39, 35, 25, 14: the unique correct move takes 15 chips of the third heap.
    assert_eq!(nim_sum([39, 35, 25, 14]), 19);
    assert_eq!(lowered(&[39, 35, 25, 14], 0), [(2, 10)]);
    assert_eq!(nim_sum([39, 35, 10, 14]), 0);
    assert_eq!(lowered(&[39, 35, 10, 14], 0), []);
}

/// For every d below the sum, some value can be lowered so that the sum is d; compared with all lower values.
#[test]
fn the_theorem_of_lowered_values_finds_all_of_them() {
    let mut random = Random::new("lowered");
    for _ in 0..300 {
        let values: Vec<u16> = (0..1 + random.below(5)).map(|_| random.below(40) as u16).collect();
        let sum = nim_sum(values.iter().copied());
        for target in 0..64 {
            let mut all = Vec::new();
            for (at, &value) in values.iter().enumerate() {
                let fits = |&lower: &u16| sum ^ value ^ lower == target;
                all.extend((0..value).filter(fits).map(|lower| (at, lower)));
            }
            assert_eq!(lowered(&values, target), all, "{values:?} to {target}");
            assert!(target >= sum || all.len() % 2 == 1, "{values:?} to {target}");
        }
    }
}

#[test]
fn a_game_of_200_000_moves_does_not_overflow_the_stack() {
    let lines: String = (1..200_000).map(|v| format!("{v} {}\n", v - 1)).collect();
    let long = graph(&lines);
    let last = long.find("199999").unwrap();
    assert_eq!(long.values()[last], 1, "an odd number of moves is left");
    let refused = Edges::read(Path::new("x"), &(lines + "0 199999\n"), Direction::Directed).map(Graph::new).unwrap();
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("line 200000") && message.len() < 300, "{message}");
}

#[test]
fn dot_and_lines_mean_the_same_game() {
    let lines = "D H\nD M\nD I\nH Q\nI Q # the end\n\nM H\nalone\n";
    let dots = [
        "digraph { D -> {H M I}; {H I} -> Q; M -> H; alone }",
        "strict digraph \"a game\" {\n rankdir = LR; node [shape=circle, color=\"red\"]\n D -> H; D -> M [label=\"x -> y\"]\n \
         /* two\n lines */ D -> I -> Q // there\n# a line\n H -> \"Q\";\n M -> H alone [pos=\"1,2\"; a=b]\n}\n",
    ];
    let by_name = |game: &Graph| -> HashMap<String, u16> {
        game.names().iter().cloned().zip(game.values().iter().copied()).collect()
    };
    let expected = by_name(&graph(lines));
    assert_eq!((expected["Q"], expected["D"], expected["H"], expected["M"]), (0, 2, 1, 0));
    for dot in dots {
        assert_eq!(by_name(&graph(dot)), expected, "{dot}");
    }
    let quoted = graph("digraph { \"a \\\"b\\\" c\" -> \"-> }\" -> -1.5 }");
    assert_eq!(quoted.names(), ["a \"b\" c", "-> }", "-1.5"]);
}

#[test]
fn arrows_between_vertices_are_read_without_braces() {
    let text = "a -> b -> c # a chain\nb->d\nc d\ne\n";
    let lines = Edges::read(Path::new("x"), text, Direction::Directed).unwrap();
    let dot = "digraph { a -> b; b -> c;\nb -> d;\nc -> d;\ne }";
    let dot = Edges::read(Path::new("x"), dot, Direction::Directed).unwrap();
    assert_eq!((&lines.names, &lines.edges), (&dot.names, &dot.edges));
    let undirected = Edges::read(Path::new("x"), "a -- b--c\n", Direction::Undirected).unwrap();
    assert_eq!((undirected.names.len(), undirected.edges.len()), (3, 2));
}

#[test]
fn malformed_game_is_refused_with_its_line() {
    for (bad, line, words) in [
        ("a b\nb c d\n", 2, "3 words"),
        ("a b\nb c\nc d\nc a\n", 4, "c -> a -> b -> c"),
        ("x y\n\n# x\nz z\n", 4, "z -> z"),
        ("a b\nb -> c d\n", 2, "not one vertex"),
        ("a ->\n", 1, "not one vertex"),
        ("a -> -> b\n", 1, "not one vertex"),
        ("a->b\nb->a\n", 2, "a -> b"),
        ("a--b\n", 1, "an arrow in 'a--b'"),
        ("a -- b\n", 1, "an arrow in '--'"),
        ("\u{feff}a b\nb a\n", 2, "a -> b"),
        ("\u{feff}digraph {\n a -> a }", 2, "a -> a"),
        ("digraph {\n a -> b\n b -> a }", 3, "->"),
        ("digraph {\n a -- b }", 2, "'->'"),
        ("graph {\n a -- b }", 1, "digraph"),
        ("digraph {\n a -> \n}", 3, "'}'"),
        ("digraph {\n a -> b\n", 2, "end"),
        ("digraph {\n a -> b\n} x", 3, "nothing after"),
        ("digraph {\n subgraph x { a } }", 2, "subgraph"),
        ("digraph {\n a:n -> b }", 2, "':'"),
        ("digraph {\n a -> <b> }", 2, "'<'"),
        ("digraph {\n\n a [x }", 3, "'}'"),
        ("digraph {\n \"a", 2, "quotes"),
        ("digraph {\n /* a", 2, "comment"),
        ("digraph {\n a -> 3b }", 2, "digit"),
        ("digraph {\n\"a\nb\" -> \n c d -> d }", 4, "d -> d"),
    ] {
        let error = Edges::read(Path::new("bad.txt"), bad, Direction::Directed).and_then(Graph::new).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with(&format!("bad.txt, line {line}: ")) && message.contains(words), "{bad}: {message}");
    }
}

#[test]
fn negative_vertex_names_are_not_parsed_as_options() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("game").to_str().unwrap().to_owned();
    std::fs::write(&file, "-1 0\n-1 5\n5 0\n").unwrap();
    let out = stdout_of(&["graph", &file, &file, "--sum", "-1", "5", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["sum"]["position"], serde_json::json!(["-1", "5"]));
    assert_eq!(object["sum"]["value"], 3, "2, since both 0 and 1 can be moved to, and 1");
}

#[test]
fn graph_command_prints_partition_values_sums_and_winning_moves() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        std::fs::write(dir.path().join(name), content).unwrap();
        dir.path().join(name).to_str().unwrap().to_owned()
    };
    let game = file("game.dot", "digraph { D -> {H M}; H -> Q; \"M x\" -> H }");
    assert_eq!(stdout_of(&["graph", &game]), "D N 2\nH N 1\nM P 0\nQ P 0\n\"M x\" P 0\n");
    let lines: String = (0..40).flat_map(|x| (0..x).map(move |y| format!("{x} {y}\n"))).collect();
    let nim = file("nim.txt", &lines);
    // The example of Nim with 39, 35, 25 and 14.
    let heaps = [&nim[..]; 4];
    let out = stdout_of(&[&["graph"], &heaps[..], &["--sum", "39", "35", "25", "14"]].concat());
    assert!(out.ends_with("\nsum N 19\nmove 3: 25 -> 10\n"), "{out}");
    let out = stdout_of(&["graph", &nim, &game, "--json", "--sum", "2", "D"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["graphs"][1]["vertices"][0], serde_json::json!({"vertex": "D", "outcome": "N", "value": 2}));
    assert_eq!(object["graphs"][0]["file"], nim);
    let lost = serde_json::json!({"position": ["2", "D"], "outcome": "P", "value": 0, "moves": []});
    assert_eq!(object["sum"], lost);
    let circle = file("circle", "a b\nb a\n");
    fails(1, &["graph", &circle], &["circle, line 2: a cycle"]);
    fails(1, &["graph", "/nowhere"], &["/nowhere"]);
    fails(2, &["graph", &nim, "--sum", "99"], &["no vertex '99'"]);
    fails(2, &["graph", &nim, "--sum", "1", "2"], &["1 in all"]);
}

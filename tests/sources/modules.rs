//! The order of modules that src/README.md states holds in the code, docs/ARCHITECTURE.md lists the dependencies, and
//! the package of the fuzzers declares the crates that it uses.
//!
//! The tests parse the sources from `src/lib.rs` on and resolve every path that begins with `crate`, `super` or `self`:
//! in `use` declarations, groups included, and everywhere else. They skip what is compiled for tests only
//! (`#[cfg(test)]`), which may use every module, and documentation, which may link to every module.

use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::buffer::{Cursor, TokenBuffer};

/// The path of a module or an item below the crate.
type Names = Vec<String>;

/// Items of `src/lib.rs` itself that every module may use, because they depend on no module.
const ROOT_ITEMS: [&str; 2] = ["PROGRAM", "Value"];

/// Modules that `docs/ARCHITECTURE.md` does not list: test builds only have something in them.
const UNLISTED: [&str; 1] = ["fault"];

/// A token of a source file.
enum Token {
    Word(String),
    Sign(char),
    /// What stands between braces.
    Braces(Vec<Token>),
    /// What stands between parentheses or brackets.
    Group(Vec<Token>),
    /// A literal or a lifetime.
    Other,
}
use Token::{Braces, Group, Sign, Word};

fn tokens(mut cursor: Cursor<'_>) -> Vec<Token> {
    let mut list = Vec::new();
    while !cursor.eof() {
        if let Some((inner, delimiter, _, rest)) = cursor.any_group() {
            // The type of `delimiter` belongs to a crate that is no direct dependency.
            let is_brace = format!("{delimiter:?}") == "Brace";
            let inner = tokens(inner);
            list.push(if is_brace { Braces(inner) } else { Group(inner) });
            cursor = rest;
        } else if let Some((word, rest)) = cursor.ident() {
            list.push(Word(word.to_string()));
            cursor = rest;
        } else if let Some((sign, rest)) = cursor.punct() {
            list.push(Sign(sign.as_char()));
            cursor = rest;
        } else {
            let (_, rest) = cursor.token_tree().expect("a token");
            list.push(Token::Other);
            cursor = rest;
        }
    }
    list
}

fn tokens_of(path: &Path) -> Vec<Token> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    tokens(TokenBuffer::new2(file.to_token_stream()).begin())
}

/// The paths of one use of a module by another.
#[derive(Debug)]
struct Use {
    /// The module that contains the path.
    from: Names,
    /// What the path names, below the crate. A name that `src/lib.rs` re-exports stands for its definition.
    to: Names,
}

/// The modules of the library and their dependencies.
#[derive(Default)]
struct Library {
    /// The modules that `src/lib.rs` declares, in its order.
    modules: Vec<String>,
    uses: Vec<Use>,
}

impl Library {
    fn read() -> Library {
        let mut library = Library::default();
        let root = tokens_of(Path::new("src/lib.rs"));
        library.scan(&root, &[], Path::new("src"));
        let exports: BTreeMap<String, Names> = exports(&root);
        for found in &mut library.uses {
            let name = &found.to[0];
            if let Some(definition) = exports.get(name) {
                found.to.splice(..1, definition.iter().cloned());
            } else if !ROOT_ITEMS.contains(&name.as_str()) {
                assert!(library.modules.contains(name), "{found:?} names neither a module nor a re-export");
            }
        }
        library
    }

    /// Reads the tokens of `module`, whose inner modules have their files in `folder`.
    fn scan(&mut self, mut list: &[Token], module: &[String], folder: &Path) {
        loop {
            list = match list {
                [] => return,
                [Sign('#'), Group(attribute), rest @ ..] if is_test(attribute) => after_item(rest),
                [Word(word), Word(name), Sign(';'), rest @ ..] if word == "mod" => {
                    self.scan(&module_file(folder, name), &joined(module, name), &folder.join(name));
                    self.declare(module, name);
                    rest
                }
                [Word(word), Word(name), Braces(inner), rest @ ..] if word == "mod" => {
                    self.scan(inner, &joined(module, name), &folder.join(name));
                    self.declare(module, name);
                    rest
                }
                [Word(word), Word(start), Word(r#as), ..] if word == "use" && r#as == "as" => {
                    panic!("{module:?} renames `{start}`, which hides what it uses")
                }
                [Word(start), Sign(':'), Sign(':'), rest @ ..]
                    if matches!(start.as_str(), "crate" | "self" | "super") =>
                {
                    let base = match start.as_str() {
                        "crate" => &[],
                        "self" => module,
                        _ => &module[..module.len() - 1],
                    };
                    let mut found = Vec::new();
                    leaves(rest, base.to_vec(), &mut found);
                    self.uses.extend(found.into_iter().map(|to| Use { from: module.to_vec(), to }));
                    rest
                }
                [Braces(inner) | Group(inner), rest @ ..] => {
                    self.scan(inner, module, folder);
                    rest
                }
                [_, rest @ ..] => rest,
            }
        }
    }

    fn declare(&mut self, parent: &[String], name: &str) {
        if parent.is_empty() {
            self.modules.push(name.to_owned());
        }
    }

    /// The modules of `src/lib.rs` that each of them uses, itself excepted.
    fn dependencies(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut dependencies: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for name in &self.modules {
            dependencies.insert(name, BTreeSet::new());
        }
        for Use { from, to } in &self.uses {
            let (Some(own), other) = (from.first(), &to[0]) else { continue };
            if own != other && !ROOT_ITEMS.contains(&other.as_str()) {
                dependencies.get_mut(own.as_str()).expect("a module").insert(other);
            }
        }
        dependencies
    }
}

/// Whether the content of an attribute is `cfg(test)`.
fn is_test(attribute: &[Token]) -> bool {
    match attribute {
        [Word(cfg), Group(condition)] => cfg == "cfg" && matches!(condition.as_slice(), [Word(test)] if test == "test"),
        _ => false,
    }
}

/// What follows the item, field or statement at the beginning of `list`.
fn after_item(list: &[Token]) -> &[Token] {
    let end = list.iter().position(|token| matches!(token, Sign(';' | ',') | Braces(_)));
    end.map_or(&[], |end| &list[end + 1..])
}

fn module_file(folder: &Path, name: &str) -> Vec<Token> {
    let file = folder.join(format!("{name}.rs"));
    tokens_of(&if file.exists() { file } else { folder.join(name).join("mod.rs") })
}

fn joined(path: &[String], name: &str) -> Names {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// Adds the paths that the path at the beginning of `list` names below `base`: one, or those of a group.
fn leaves(list: &[Token], mut base: Names, into: &mut Vec<Names>) {
    match list {
        [Braces(inner), ..] => {
            for tree in inner.split(|token| matches!(token, Sign(','))) {
                leaves(tree, base.clone(), into);
            }
        }
        [Word(name), rest @ ..] => {
            match name.as_str() {
                "self" => {}
                "super" => drop(base.pop().expect("a path inside the crate")),
                _ => base.push(name.clone()),
            }
            match rest {
                [Sign(':'), Sign(':'), tail @ ..] if matches!(tail, [Word(_) | Braces(_) | Sign('*'), ..]) => {
                    leaves(tail, base, into);
                }
                _ => into.push(base),
            }
        }
        [Sign('*'), ..] => {
            assert!(!base.is_empty(), "a `use` of all names of the crate hides what it uses");
            into.push(base);
        }
        _ => {}
    }
}

/// The names that `src/lib.rs` re-exports, with the paths of their definitions.
fn exports(root: &[Token]) -> BTreeMap<String, Names> {
    let mut found = Vec::new();
    for (at, token) in root.iter().enumerate() {
        if matches!(token, Word(word) if word == "use") {
            leaves(&root[at + 1..], Vec::new(), &mut found);
        }
    }
    found.into_iter().map(|path| (path.last().expect("a name").clone(), path)).collect()
}

/// The names in backticks of a cell of a table.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn no_module_uses_a_module_further_down() {
    let library = Library::read();
    let place = |name: &str| library.modules.iter().position(|module| module == name);
    for (own, others) in library.dependencies() {
        for other in others {
            assert!(place(other) <= place(own), "{own} uses {other}, which stands further down");
        }
    }
    assert!(library.uses.len() > 500, "{} uses were read", library.uses.len());
}

/// Finite games see the nim-values alone, as the map of src/README.md states.
#[test]
fn games_use_nothing_but_errors_and_nim_values() {
    /// The games that also see heap games, hence all of `theory`.
    const WITH_HEAPS: [&str; 2] = ["rectangle", "play"];
    let mut seen = 0;
    for Use { from, to } in Library::read().uses.iter().filter(|found| found.from.first().is_some_and(|m| m == "games"))
    {
        let sees_theory = from.get(1).is_some_and(|game| WITH_HEAPS.contains(&game.as_str()));
        let is_allowed = match to[0].as_str() {
            "games" | "error" => true,
            "theory" => sees_theory || to.get(1).is_some_and(|module| module == "nimber"),
            _ => false,
        };
        assert!(is_allowed, "{} uses {}", from.join("::"), to.join("::"));
        seen += 1;
    }
    assert!(seen > 20, "{seen} uses were read");
}

#[test]
fn the_table_of_layers_lists_the_dependencies() {
    let text = std::fs::read_to_string("docs/ARCHITECTURE.md").unwrap();
    let (_, layers) = text.split_once("\n## Layers").unwrap();
    let (layers, _) = layers.split_once("\n## ").unwrap();
    let mut listed = BTreeMap::new();
    for row in layers.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        let uses: BTreeSet<&str> = quoted(cells[2]).into_iter().collect();
        for layer in quoted(cells[1]) {
            listed.insert(layer.to_owned(), uses.clone());
        }
    }
    let library = Library::read();
    for (module, others) in library.dependencies().into_iter().filter(|(module, _)| !UNLISTED.contains(module)) {
        let others: BTreeSet<&str> = others.into_iter().filter(|other| !UNLISTED.contains(other)).collect();
        assert_eq!(listed.remove(module), Some(others), "the row of {module}");
    }
    assert!(listed.is_empty(), "{listed:?} are no modules");
}

#[test]
fn the_map_of_the_library_lists_its_modules_in_order() {
    let readme = std::fs::read_to_string("src/README.md").unwrap();
    let (_, map) = readme.split_once("## The map").unwrap();
    let (map, _) = map.split_once("\n## ").unwrap();
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut listed: Vec<&str> = rows.map(|(name, _)| name.split("::").next().unwrap()).collect();
    listed.dedup();
    let mut modules = Library::read().modules;
    modules.retain(|module| module != "fault");
    assert_eq!(listed, modules);
}

/// Names of the crates in the sections of a manifest that list dependencies, as Rust spells them.
fn dependencies_of(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_list = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            is_list = section.contains("dependencies");
        } else if let (true, Some((name, _))) = (is_list, line.split_once(" = ")) {
            names.insert(name.replace('-', "_"));
        }
    }
    names
}

/// Adds all words in front of `::` to `into`, at every depth.
fn heads(list: &[Token], into: &mut BTreeSet<String>) {
    for (at, token) in list.iter().enumerate() {
        match (token, &list[at + 1..]) {
            (Word(word), [Sign(':'), Sign(':'), ..]) => _ = into.insert(word.clone()),
            (Braces(inner) | Group(inner), _) => heads(inner, into),
            _ => (),
        }
    }
}

/// Nothing in the usual tests compiles the package of the fuzzers, which needs the nightly toolchain.
#[test]
fn fuzzers_use_only_crates_of_their_package() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(manifest) = std::fs::read_to_string(root.join("fuzz/Cargo.toml")) else {
        return; // the published package contains no fuzzers
    };
    let here = dependencies_of(&std::fs::read_to_string(root.join("Cargo.toml")).unwrap());
    let there = dependencies_of(&manifest);
    assert!(here.contains("humantime") && there.contains("blake3"), "{here:?} {there:?}");
    let mut named = BTreeSet::new();
    for file in ["fuzz/properties.rs", "src/cli/number.rs"] {
        heads(&tokens_of(&root.join(file)), &mut named);
    }
    let missing: Vec<_> = named.iter().filter(|name| here.contains(*name) && !there.contains(*name)).collect();
    assert!(missing.is_empty(), "fuzz/Cargo.toml lacks {missing:?}");
}

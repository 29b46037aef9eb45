//! The order of modules that src/README.md states holds in the code.

use std::path::{Path, PathBuf};

/// The modules of the library in the order of `src/lib.rs`.
fn modules() -> Vec<String> {
    let lib = std::fs::read_to_string("src/lib.rs").unwrap();
    let lines = lib.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    lines.filter(|name| *name != "support").map(str::to_owned).collect()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn no_module_uses_a_module_further_down() {
    let modules = modules();
    let place = |name: &str| modules.iter().position(|module| module == name);
    let mut seen = 0;
    for path in sources(Path::new("src")) {
        let inner = path.strip_prefix("src").unwrap();
        let own = inner.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        let Some(own_place) = place(own) else { continue }; // the program, and the crate itself
        let text = std::fs::read_to_string(&path).unwrap();
        // Tests may use every module.
        let text = text.split("#[cfg(test)]").next().unwrap();
        let uses = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for name in uses.flat_map(|line| line.split("crate::").skip(1)) {
            let name: String = name.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            let Some(other) = place(&name) else { continue };
            assert!(other <= own_place, "{}: {own} sees {name}, which stands further down", path.display());
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} uses were read");
}

#[test]
fn the_map_of_the_library_lists_its_modules_in_order() {
    let readme = std::fs::read_to_string("src/README.md").unwrap();
    let (_, map) = readme.split_once("## The map").unwrap();
    let (map, _) = map.split_once("\n## ").unwrap();
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut listed: Vec<&str> = rows.map(|(name, _)| name.split("::").next().unwrap()).collect();
    listed.dedup();
    let modules: Vec<String> = modules().into_iter().filter(|name| name != "fault").collect();
    assert_eq!(listed, modules);
}

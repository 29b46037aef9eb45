//! The prose of the repository, its test names and its commits keep the rules of CONTRIBUTING.md that a program can
//! check.

use std::path::{Path, PathBuf};

/// Phrases that hide who does what, or that replace a standard term by a private word.
const PHRASES: &[&str] = &[
    "so many",
    "anew",
    "is told",
    "are told",
    "was told",
    "were told",
    "is asked",
    "are asked",
    "is looked at",
    "are looked at",
    "looked back at",
    "who reads",
    "who writes",
    "who computes",
    "who asks",
    "whoever",
    "another one",
    "as a rule",
    "on another way",
    "stands nowhere",
    "stand nowhere",
    "and some)",
    "look-up",
    "look-ups",
    "second look",
];

/// Files that name the phrases, or whose text is a record of the past.
const EXCEPTIONS: &[&str] = &["tests/style.rs", "CONTRIBUTING.md", "benches/record"];

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "runs", "corpus", "__pycache__"].contains(&&*name) {
                files(&path, found);
            }
        } else if ["rs", "md", "py"].iter().any(|kind| path.extension().is_some_and(|extension| extension == *kind)) {
            found.push(path);
        }
    }
}

/// Whether the phrase stands in the line as whole words.
fn contains(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
        !is_word(before) && (!is_word(after) || phrase.ends_with(')'))
    })
}

#[test]
fn prose_has_no_forbidden_phrase() {
    let mut found = Vec::new();
    for dir in ["src", "tests", "benches", "fuzz", "scripts", "docs", "data"] {
        if Path::new(dir).exists() {
            files(Path::new(dir), &mut found);
        }
    }
    found.extend(["README.md", "CHANGELOG.md"].map(PathBuf::from));
    let mut wrong = Vec::new();
    for path in &found {
        let name = path.to_string_lossy();
        if EXCEPTIONS.iter().any(|exception| name.starts_with(exception)) {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            let phrases = PHRASES.iter().filter(|phrase| contains(&line, phrase));
            wrong.extend(phrases.map(|phrase| format!("{name}:{}: '{phrase}'", number + 1)));
        }
    }
    assert!(found.len() > 100, "{} files were read", found.len());
    assert!(wrong.is_empty(), "say who does what:\n{}", wrong.join("\n"));
}

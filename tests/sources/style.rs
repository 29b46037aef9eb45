//! The prose of the repository, its test names and its commits keep the rules of CONTRIBUTING.md that a program can
//! check.

use std::path::{Path, PathBuf};
use std::process::Command;
use syn::buffer::{Cursor, TokenBuffer};

/// Phrases that hide the actor, or that replace a standard term by a private word. See docs/GLOSSARY.md for the terms.
const PHRASES: &[&str] = &[
    // Passive without an actor, or a relative clause without a subject.
    "told",
    "is asked",
    "are asked",
    "was asked",
    "is said",
    "are said",
    "was said",
    "is looked at",
    "are looked at",
    "looked at",
    "looked for",
    "looks back",
    "looked back",
    "who reads",
    "who writes",
    "who computes",
    "who asks",
    "who waits",
    "whoever",
    "somebody",
    "anybody",
    // Translated idioms.
    "so many",
    "anew",
    "another one",
    "other ones",
    "as a rule",
    "on another way",
    "on the way",
    "in one go",
    "stands nowhere",
    "stand nowhere",
    "and some)",
    "had it not",
    "wanted to become",
    "a second thought",
    "is no accident",
    "by accident",
    "to be had",
    "finds out",
    "comes out",
    "came out",
    "bear out",
    "bears out",
    "speak of",
    "speaks of",
    "gives up what",
    "thrown away",
    "throws away",
    "turns the planes round",
    "vouch",
    "vouches",
    "mend",
    "mends",
    "mended",
    // Private words for terms of the glossary.
    "look-up",
    "look-ups",
    "second look",
    "in doubt",
    "heap in doubt",
    "lost heap",
    "way back",
    "take leave",
    "takes leave",
    "again and again",
];

/// Frequent misspellings. `scripts/test spelling` checks more, where `typos` is installed.
const MISSPELLINGS: &[&str] = &[
    "accross",
    "acheive",
    "adress",
    "agressive",
    "allready",
    "alot",
    "aquire",
    "arbitary",
    "begining",
    "calender",
    "commited",
    "comparision",
    "concious",
    "consistant",
    "correspondance",
    "definately",
    "dependant on",
    "desireable",
    "existance",
    "explicitely",
    "guarentee",
    "gaurantee",
    "immediatly",
    "independant",
    "intialize",
    "neccessary",
    "occured",
    "occurence",
    "occuring",
    "overriden",
    "paramter",
    "persistant",
    "posession",
    "preceeding",
    "priviledge",
    "probaly",
    "propogate",
    "recieve",
    "reccomend",
    "refered",
    "resistent",
    "retreive",
    "seperate",
    "succesful",
    "successfull",
    "suprise",
    "threshhold",
    "transfered",
    "truely",
    "untill",
    "wierd",
    "writen",
];

/// Words that no test name may contain, because they say nothing to a new reader.
const PRIVATE_WORDS: &[&str] = &[
    "anew",
    "asked",
    "born",
    "doubt",
    "hunt",
    "lag",
    "committer",
    "likeness",
    "mended",
    "nobody",
    "relay",
    "settle",
    "settled",
    "settles",
    "somebody",
    "speaks",
    "stands",
    "tells",
    "thrown",
    "told",
    "view",
    "vouches",
    "walk",
    "whatever",
];

/// Maximum number of characters of a test name.
const LONGEST_NAME: usize = 70;

/// Maximum number of characters of a commit subject.
const LONGEST_SUBJECT: usize = 72;

/// The last commit before the rule for commit subjects.
const FIRST_CHECKED_AFTER: &str = "304fc2d";

/// Files that name the phrases, or that record the past.
const EXCEPTIONS: &[&str] = &["tests/sources/style.rs", "CONTRIBUTING.md", "benches/record"];

/// Folders whose prose is checked, besides the files of the root.
const FOLDERS: &[&str] = &["src", "tests", "benches", "examples", "fuzz", "scripts", "docs", "data", "python"];

/// Adds the files of a folder and its subfolders, without build outputs and data.
fn add_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        let is_skipped = name.starts_with('.') || ["target", "corpus", "__pycache__"].contains(&&*name);
        if is_skipped {
            continue;
        }
        if path.is_dir() {
            add_files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Whether a file holds prose: sources, documents, scripts (with or without suffix) and manifests.
fn has_prose(path: &Path) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => ["rs", "md", "py", "sh", "toml"].contains(&extension),
        None => path.starts_with("scripts"),
    }
}

/// All files with prose, without the [`EXCEPTIONS`].
fn prose() -> Vec<(String, String)> {
    let mut found: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "Cargo.toml", "clippy.toml", "pyproject.toml"].map(PathBuf::from).into();
    for folder in FOLDERS.iter().map(Path::new).filter(|folder| folder.exists()) {
        add_files(folder, &mut found);
    }
    found.retain(|path| has_prose(path));
    let named = found.iter().map(|path| (path.to_string_lossy().into_owned(), path));
    let checked = named.filter(|(name, _)| !EXCEPTIONS.iter().any(|exception| name.starts_with(exception)));
    checked.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap())).collect()
}

/// Whether the line contains the phrase as whole words.
fn contains(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
        !is_word(before) && (!is_word(after) || phrase.ends_with(')'))
    })
}

/// Each occurrence of a phrase as "file:line: 'phrase'".
fn occurrences(phrases: &[&str]) -> Vec<String> {
    let files = prose();
    assert!(files.len() > 100, "{} files were read", files.len());
    assert!(files.iter().any(|(name, _)| name == "tests/runs/damage.rs"));
    let mut found = Vec::new();
    for (name, text) in &files {
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            let here = phrases.iter().filter(|phrase| contains(&line, phrase));
            found.extend(here.map(|phrase| format!("{name}:{}: '{phrase}'", number + 1)));
        }
    }
    found
}

#[test]
fn prose_has_no_forbidden_phrase() {
    let found = occurrences(PHRASES);
    assert!(found.is_empty(), "name the actor and use the words of the glossary:\n{}", found.join("\n"));
}

#[test]
fn prose_has_no_frequent_misspelling() {
    let found = occurrences(MISSPELLINGS);
    assert!(found.is_empty(), "misspelled:\n{}", found.join("\n"));
}

/// A comment line that is longer, which `rustfmt` does not break.
#[test]
fn comments_have_at_most_120_columns() {
    let sources = prose().into_iter().filter(|(name, _)| name.ends_with(".rs"));
    let too_long = |(name, text): (String, String)| {
        let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
        let long = lines.filter(|(_, line)| line.chars().count() > 120);
        long.map(|(number, _)| format!("{name}:{}", number + 1)).collect::<Vec<String>>()
    };
    let found: Vec<String> = sources.flat_map(too_long).collect();
    assert!(found.is_empty(), "break these lines:\n{}", found.join("\n"));
}

/// A table whose rows were filled into a paragraph.
#[test]
fn tables_in_comments_have_one_row_per_line() {
    let sources = prose().into_iter().filter(|(name, _)| name.ends_with(".rs"));
    let is_filled = |line: &str| line.trim_start().starts_with("//") && line.contains("| |---");
    let broken: Vec<String> = sources.filter(|(_, text)| text.lines().any(is_filled)).map(|(name, _)| name).collect();
    assert!(broken.is_empty(), "write one row per line in {}", broken.join(", "));
}

/// Names of the functions with the attribute `#[test]`.
fn test_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ")
            && is_test
        {
            names.push(rest.split('(').next().unwrap());
            is_test = false;
        }
    }
    names
}

#[test]
fn test_names_are_short_and_without_private_words() {
    let files = prose();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, text) in files.iter().filter(|(file, _)| file.ends_with(".rs")) {
        for name in test_names(text) {
            count += 1;
            if name.len() > LONGEST_NAME {
                wrong.push(format!("{file}: {name} has {} characters", name.len()));
            }
            if let Some(word) = name.split('_').find(|word| PRIVATE_WORDS.contains(word)) {
                wrong.push(format!("{file}: {name} contains '{word}'"));
            }
        }
    }
    assert!(count > 300, "{count} tests were found");
    assert!(wrong.is_empty(), "name a test by condition and result:\n{}", wrong.join("\n"));
}

/// Stdout of git; `None` if git fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a subject starts with a module or folder and a colon: `period: ...`, `storage, table: ...`.
fn names_a_module(subject: &str) -> bool {
    let is_name = |name: &str| {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./:".contains(c);
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_allowed)
    };
    let Some((modules, rest)) = subject.split_once(": ") else { return false };
    modules.split(", ").all(is_name) && !rest.is_empty()
}

#[test]
fn commit_subjects_are_short_and_name_a_module() {
    let range = format!("{FIRST_CHECKED_AFTER}..HEAD");
    // Without this commit (an archive, a shallow clone, another repository) there is nothing to compare.
    let is_whole = git(&["merge-base", "--is-ancestor", FIRST_CHECKED_AFTER, "HEAD"]).is_some();
    let Some(log) = git(&["log", "--no-merges", "--format=%h %s", &range]).filter(|_| is_whole) else {
        return println!("skipped: no git history with commit {FIRST_CHECKED_AFTER}");
    };
    let mut wrong = Vec::new();
    for (commit, subject) in log.lines().filter_map(|line| line.split_once(' ')) {
        let length = subject.chars().count();
        if length > LONGEST_SUBJECT {
            wrong.push(format!("{commit} has {length} characters: {subject}"));
        }
        if !names_a_module(subject) {
            wrong.push(format!("{commit} does not start with 'module: ': {subject}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "subjects of at most {LONGEST_SUBJECT} characters, as 'module: verb object':\n{}",
        wrong.join("\n")
    );
}

/// Whether a part of a path stands for a name that the reader chooses: `src/cli/NAME.rs`.
fn is_pattern(path: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase());
    !path.starts_with("docs/") && path.split(['/', '.']).any(is_name)
}

/// Whether a word is the path of a file or folder of this repository.
fn is_path(word: &str) -> bool {
    let has_path_characters = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let is_ours = word.split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder));
    has_path_characters && is_ours && !is_pattern(word)
}

/// The paths that a document names in backticks, with their lines.
fn named_paths(text: &str) -> Vec<(usize, &str)> {
    let mut paths = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let quoted = line.split('`').skip(1).step_by(2);
        paths.extend(quoted.filter(|word| is_path(word)).map(|word| (number + 1, word)));
    }
    paths
}

/// The paths, and the names of Rust files, in the comments of a Rust source, with their lines.
fn paths_in_comments(text: &str) -> Vec<(usize, &str)> {
    let mut paths = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((_, comment)) = line.split_once("//") else { continue };
        let words = comment.split(|c: char| !c.is_ascii_alphanumeric() && !"/._-".contains(c));
        let words = words.map(|word| word.trim_end_matches(['.', '/', '-']));
        let is_source = |word: &str| word.ends_with(".rs") && !word.starts_with('.') && !is_pattern(word);
        paths.extend(words.filter(|word| is_path(word) || is_source(word)).map(|word| (number + 1, word)));
    }
    paths
}

/// A comment may leave out the folders at the start of a path: `cost.rs`, `solver/cost.rs`.
#[test]
fn comments_name_only_files_that_exist() {
    let mut files = Vec::new();
    for folder in FOLDERS {
        add_files(Path::new(folder), &mut files);
    }
    let exists = |path: &str| Path::new(path).exists() || files.iter().any(|file| file.ends_with(path));
    let mut seen = 0;
    let mut wrong = Vec::new();
    let is_source = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    for source in files.iter().filter(is_source).filter(|path| !path.ends_with("tests/sources/style.rs")) {
        let text = std::fs::read_to_string(source).unwrap();
        for (line, path) in paths_in_comments(&text) {
            seen += 1;
            if !exists(path) {
                wrong.push(format!("{}:{line}: {path}", source.display()));
            }
        }
    }
    assert!(seen > 50, "{seen} paths were read");
    assert!(wrong.is_empty(), "these files do not exist:\n{}", wrong.join("\n"));
}

#[test]
fn paths_are_found_in_comments() {
    let source =
        "let a = 1; // see src/a.rs.\n/// `solver/cost.rs`, docs/FORMAT.md (`b.rs`): data/x/, NAME.rs or a/b\n";
    let found: Vec<&str> = paths_in_comments(source).into_iter().map(|(_, path)| path).collect();
    assert_eq!(found, ["src/a.rs", "solver/cost.rs", "docs/FORMAT.md", "b.rs", "data/x"]);
}

#[test]
fn documents_name_only_files_that_exist() {
    let mut documents: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "src/README.md"].map(PathBuf::from).into();
    for dir in ["docs", "data", "scripts"] {
        add_files(Path::new(dir), &mut documents);
    }
    let mut seen = 0;
    let mut wrong = Vec::new();
    for document in documents.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(document).unwrap();
        for (line, path) in named_paths(&text) {
            seen += 1;
            // `fuzz/artifacts` exists once a fuzzer has found something.
            if !Path::new(path).exists() && path != "fuzz/artifacts" {
                wrong.push(format!("{}:{line}: {path}", document.display()));
            }
        }
    }
    assert!(seen > 50, "{seen} paths were read");
    assert!(wrong.is_empty(), "these files do not exist:\n{}", wrong.join("\n"));
}

/// Appends the string literals of Rust tokens: those of attributes as well, but neither documentation nor test modules.
fn literals(mut cursor: Cursor, found: &mut Vec<String>) {
    let mut is_test = false;
    while !cursor.eof() {
        if let Some(after) = cursor.punct().filter(|(punct, _)| punct.as_char() == '#').map(|(_, after)| after) {
            let inner = after.punct().filter(|(punct, _)| punct.as_char() == '!').map_or(after, |(_, after)| after);
            if let Some((attribute, _, _, after)) = inner.any_group() {
                let is = |name: &str| attribute.ident().is_some_and(|(ident, _)| ident == name);
                let text = attribute.token_stream().to_string().replace(' ', "");
                if text == "cfg(test)" {
                    is_test = true;
                } else if !is("doc") {
                    literals(attribute, found);
                }
                cursor = after;
                continue;
            }
        }
        if let Some((inside, delimiter, _, after)) = cursor.any_group() {
            if !is_test {
                literals(inside, found);
            }
            // The body of a test module or function ends it.
            is_test = is_test && format!("{delimiter:?}") != "Brace";
            cursor = after;
        } else if let Some((literal, after)) = cursor.literal() {
            if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                found.push(text.value());
            }
            cursor = after;
        } else {
            is_test = is_test && cursor.punct().is_none_or(|(punct, _)| punct.as_char() != ';');
            let Some((_, after)) = cursor.token_tree() else { return };
            cursor = after;
        }
    }
}

/// Returns the string literals of a Rust source, without documentation and tests.
fn texts(source: &str) -> Vec<String> {
    let buffer = TokenBuffer::new2(source.parse().unwrap());
    let mut found = Vec::new();
    literals(buffer.begin(), &mut found);
    found
}

/// Whether a text names a command or an option of the command line.
fn names_the_command_line(text: &str) -> bool {
    let is_option = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
    text.contains("'grundy ") || text.split("--").skip(1).any(is_option)
}

#[test]
fn texts_of_the_library_name_no_command_or_option() {
    let mut files = Vec::new();
    add_files(Path::new("src"), &mut files);
    let is_of_the_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_test = name == "tests.rs" || name.ends_with("_tests.rs");
        name.ends_with(".rs") && !is_test && !path.starts_with("src/cli") && path != Path::new("src/main.rs")
    };
    files.retain(is_of_the_library);
    assert!(files.len() > 50, "{} files", files.len());
    let mut faults = Vec::new();
    for path in files {
        let found = texts(&std::fs::read_to_string(&path).unwrap());
        let named = found.into_iter().filter(|text| names_the_command_line(text));
        faults.extend(named.map(|text| format!("{}: {text}", path.display())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn literals_are_found_outside_of_documentation_and_tests() {
    let source = r#"
        //! "--a"
        /// "--b"
        #[error("use --c")]
        fn f() { g!("'grundy run'", x); }
        #[cfg(test)]
        mod tests { const D: &str = "--d"; }
        #[cfg(test)]
        mod more;
        const E: &str = "a -- b";
    "#;
    let found = texts(source);
    assert_eq!(found, ["use --c", "'grundy run'", "a -- b"]);
    assert_eq!(found.iter().filter(|text| names_the_command_line(text)).count(), 2);
}

//! Sets `GRUNDY_PROGRAM` (name, version, commit and target) for `grundy::PROGRAM`, and `GRUNDY_COMPILER` (name and
//! version of the compiler) for the command line, and `has_corpora` where the corpora of the fuzzers are.
//!
//! The commit is that of the packaged crate (`.cargo_vcs_info.json`), else that of the git work tree that tracks
//! Cargo.toml; if there is neither, it is omitted. No error in this script fails the build.

use std::env;
use std::path::Path;
use std::process::Command;

/// The files and directories that the program is built from.
const INPUTS: [&str; 4] = ["build.rs", "Cargo.toml", "Cargo.lock", "src"];

/// Number of hexadecimal digits of the commit in the text.
const DIGITS: usize = 12;

/// Maximum number of characters of the target in the text. A journal record has 4096 bytes, of which the name of a game
/// may take 2048.
const LONGEST_TARGET: usize = 64;

fn main() {
    // Cargo reads these paths relative to the package; `work_tree_commit` adds the git files. A path that does not
    // exist would make Cargo run this script in every build.
    let inputs = INPUTS.into_iter().chain([PACKAGED]);
    inputs.filter(|path| Path::new(path).exists()).for_each(|path| println!("cargo::rerun-if-changed={path}"));
    let commit = packaged_commit().or_else(work_tree_commit);
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let target = env::var("TARGET").unwrap_or_default().chars().take(LONGEST_TARGET).collect();
    let details: Vec<String> = commit.into_iter().chain([target]).collect();
    println!("cargo::rustc-env=GRUNDY_COMPILER={}", compiler().unwrap_or_else(|| "unknown".to_owned()));
    println!("cargo::rustc-env=GRUNDY_PROGRAM=grundy {version} ({})", details.join(", "));
    println!("cargo::rustc-check-cfg=cfg(has_corpora)");
    if Path::new(CORPORA).exists() {
        println!("cargo::rustc-cfg=has_corpora");
    }
}

/// The corpora of the fuzzers. They are a package of their own, so a packaged crate does not contain them.
const CORPORA: &str = "fuzz/corpus";

/// Returns name and version of the compiler, in one line.
fn compiler() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().map(str::to_owned))?
}

/// The file in which `cargo package` records the commit.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// Returns the commit of a packaged crate.
fn packaged_commit() -> Option<String> {
    let text = std::fs::read_to_string(PACKAGED).ok()?;
    let value = text.split_once("\"sha1\"")?.1.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    // The file contains "dirty" only if files differed from the commit.
    let changes = if text.contains("\"dirty\": true") { "+changes" } else { "" };
    Some(short(value.split('"').next()?)? + changes)
}

/// Returns the commit of the git work tree, with `+changes` if an input differs from it.
fn work_tree_commit() -> Option<String> {
    // A package unpacked inside another project does not belong to that project's work tree.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // A commit, checkout or reset changes HEAD, the branch or the reflog. In a linked work tree .git is a file, and
    // these files are elsewhere.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = short(&git(&["rev-parse", "--verify", "HEAD"])?)?;
    let changed = git(&[&["status", "--porcelain", "--untracked-files=all", "--"], INPUTS.as_slice()].concat());
    let changes = if changed.is_none_or(|changed| !changed.is_empty()) { "+changes" } else { "" };
    Some(commit + changes)
}

/// Returns the first digits of a commit.
fn short(commit: &str) -> Option<String> {
    let commit = commit.get(..DIGITS)?;
    commit.bytes().all(|c| c.is_ascii_hexdigit()).then(|| commit.to_owned())
}

/// Returns the output of git in the directory of the package; `None` if git fails or is not installed.
fn git(arguments: &[&str]) -> Option<String> {
    // Without optional locks, `git status` does not write the index, so it cannot interfere with another git process.
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

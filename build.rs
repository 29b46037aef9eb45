//! Records the commit and the target in `GRUNDY_PROGRAM`, which `grundy::PROGRAM` hands on.
//!
//! The commit is that of the packaged crate (`.cargo_vcs_info.json`), else that of the git work tree in which Cargo.toml is
//! tracked, else left out. Nothing here fails the build.

use std::env;
use std::path::Path;
use std::process::Command;

/// What the program is built from.
const INPUTS: [&str; 4] = ["build.rs", "Cargo.toml", "Cargo.lock", "src"];

/// Number of hexadecimal digits of the commit that are shown.
const DIGITS: usize = 12;

/// Maximum number of characters of the target that are shown. A journal record has room for 4096 bytes, and a game's name may
/// take 2048 of them.
const LONGEST_TARGET: usize = 64;

fn main() {
    // Cargo reads these paths relative to the package; the git files are added below. A path that does not exist would run
    // this script at every build.
    let inputs = INPUTS.into_iter().chain([PACKAGED]);
    inputs.filter(|path| Path::new(path).exists()).for_each(|path| println!("cargo::rerun-if-changed={path}"));
    let commit = packaged_commit().or_else(work_tree_commit);
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let target = env::var("TARGET").unwrap_or_default().chars().take(LONGEST_TARGET).collect();
    let details: Vec<String> = commit.into_iter().chain([target]).collect();
    println!("cargo::rustc-env=GRUNDY_PROGRAM=grundy {version} ({})", details.join(", "));
}

/// The file in which `cargo package` states the commit.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// The commit of a packaged crate.
fn packaged_commit() -> Option<String> {
    let text = std::fs::read_to_string(PACKAGED).ok()?;
    let value = text.split_once("\"sha1\"")?.1.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    // "dirty" is there only when files differed from the commit.
    let changes = if text.contains("\"dirty\": true") { "+changes" } else { "" };
    Some(short(value.split('"').next()?)? + changes)
}

/// The commit of the git work tree, with `+changes` when an input differs from it.
fn work_tree_commit() -> Option<String> {
    // A package that somebody unpacked inside another project is not part of that project's work tree.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // A commit, checkout or reset changes HEAD, the branch or the reflog. In a linked work tree these are outside .git, which
    // is a file there.
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

/// The first digits of a commit.
fn short(commit: &str) -> Option<String> {
    let commit = commit.get(..DIGITS)?;
    commit.bytes().all(|c| c.is_ascii_hexdigit()).then(|| commit.to_owned())
}

/// What git prints, in the directory of the package; `None` when it fails or is not there.
fn git(arguments: &[&str]) -> Option<String> {
    // Without optional locks, `status` does not write the index beside another git process.
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

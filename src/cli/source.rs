//! GAME or DIR: what parses as a game is a game; what does not is a directory.

use super::Usage;
use anyhow::{Result, anyhow};
use grundy::rule::Rule;
use std::path::{Path, PathBuf};

/// Where values come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Computed on the spot.
    Game(Rule),
    /// Read from a run directory.
    Directory(PathBuf),
}

impl Source {
    /// Decides what `text` means.
    pub(crate) fn find(text: &str) -> Result<Source> {
        let error = match text.parse() {
            Ok(rule) => return Ok(Source::Game(rule)),
            Err(error) => error,
        };
        let path = Path::new(text);
        if path.is_dir() {
            return Ok(Source::Directory(path.into()));
        }
        // What has nothing but a code's characters was meant as one; anything else may be a mistyped directory.
        if !text.contains('/') && text.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
            return Err(error.into());
        }
        let name = text.escape_default();
        if text.contains('/') {
            return Err(anyhow!("{name}: no such directory"));
        }
        Err(Usage(format!("'{name}' is neither a game nor a directory: {error}")).into())
    }
}

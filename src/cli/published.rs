//! Reads published directories and their manifests, for `grundy publish` and `grundy compare`.

use super::{input, source};
use anyhow::{Context, Result};
use grundy::Error;
use grundy::error::Damage;
use grundy::publish::{FileEntry, Manifest, sha256};
use grundy::run::RunReader;
use std::fs::File;
use std::path::Path;

/// File name of a manifest.
pub(super) const MANIFEST: &str = "manifest.json";

/// Maximum length of a manifest or a verdict, in bytes.
pub(super) const MAX_BYTES: u64 = 256 << 20;

/// Reads the manifest of a published directory or a file, or makes that of a run.
pub(super) fn manifest_of(path: &Path) -> Result<Manifest> {
    if path.is_dir() && !path.join(MANIFEST).exists() {
        return Ok(Manifest::of(&RunReader::open(source::run_directory(path)?)?));
    }
    let file = if path.is_dir() { path.join(MANIFEST) } else { path.to_owned() };
    let text = input::read_text(&file, MAX_BYTES)?;
    let manifest = Manifest::parse(text.as_bytes()).map_err(|why| damage(&file, &format!("not a manifest: {why}")))?;
    if path.is_dir() {
        for entry in &manifest.files {
            if Path::new(&entry.name).file_name() != Some(entry.name.as_ref()) {
                return Err(damage(&path.join(MANIFEST), "it describes a file outside the directory"));
            }
            let file = path.join(&entry.name);
            let Ok(there) = file.metadata() else {
                return Err(damage(&file, "the manifest describes this file, which is missing"));
            };
            // Reading a pipe or a device could never end.
            if !there.is_file() || there.len() != entry.bytes || entry_of(path, &entry.name)? != *entry {
                return Err(damage(&file, "not the file that the manifest describes"));
            }
        }
    }
    Ok(manifest)
}

/// The error of a file that does not hold what it should.
pub(super) fn damage(path: &Path, why: &str) -> anyhow::Error {
    let damage = Damage::NotPublished { why: why.into() };
    Error::Damage { path: path.into(), offset: 0, damage }.into()
}

/// Returns the entry of a file in a manifest: its name, its length and its SHA-256.
pub(super) fn entry_of(dir: &Path, name: &str) -> Result<FileEntry> {
    let path = dir.join(name);
    let reading = || format!("reading {}", path.display());
    let (bytes, sha256) = File::open(&path).and_then(sha256).with_context(reading)?;
    Ok(FileEntry { name: name.into(), bytes, sha256 })
}

//! `grundy export`: the values of a run in formats of others.

use super::number;
use anyhow::{Context, Result};
use clap::ValueEnum;
use grundy::definition::{Sequence, for_each_piece};
use grundy::engine::View;
use grundy::table::npy_header;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Arguments of `grundy export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy export runs/grundy --format bfile --range 0..200001 -o b002188.txt")]
pub(crate) struct Args {
    /// The run directory.
    dir: PathBuf,
    /// The format.
    #[arg(long, value_enum)]
    format: Format,
    /// Which values; left out: all that are committed.
    #[arg(long, value_name = "A..B", value_parser = number::range)]
    range: Option<Range<u64>>,
    /// Where to; left out: stdout.
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The b-file of OEIS: "n a(n)", one space, LF.
    Bfile,
    /// Comma-separated, with a header line "n,value".
    Csv,
    /// One NumPy array of u16.
    Npy,
    /// JSON Lines: {"n":0,"value":0}
    Jsonl,
}

pub(crate) fn export(args: &Args) -> Result<()> {
    let view = View::open(super::source::run_directory(&args.dir)?)?;
    let range = args.range.clone().unwrap_or(0..view.len());
    view.require(range.start, range.end)?;
    let Some(path) = &args.output else { return print(|out| write(&view, args.format, range, out)) };
    whole_file(path, |out| write(&view, args.format, range, out))
}

/// Writes a file under another name until it is whole, so that a file that is there is a whole one. What is there and is
/// no file (a pipe, a device) is written to; a link is followed.
pub(super) fn whole_file(path: &Path, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let written = match std::fs::metadata(&real) {
        Ok(there) if !there.is_file() => {
            let file = std::fs::OpenOptions::new().write(true).open(&real);
            file.map_err(anyhow::Error::from).and_then(|file| {
                let mut out = BufWriter::with_capacity(1 << 20, file);
                body(&mut out)?;
                Ok(out.flush()?)
            })
        }
        _ => by_another_name(&real, body),
    };
    written.with_context(|| format!("writing {}", path.display()))
}

fn by_another_name(path: &Path, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let part = path.with_added_extension("part");
    let file = std::fs::File::create(&part).with_context(|| format!("making {}", part.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = body(&mut out).and_then(|()| {
        out.flush()?;
        out.get_ref().sync_all()?;
        std::fs::rename(&part, path)?;
        Ok(())
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// Whether [`whole_file`] could write there: asked before hours of work.
pub(super) fn can_write(path: &Path) -> Result<()> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let part = match std::fs::metadata(&real) {
        Ok(there) if there.is_dir() => anyhow::bail!("{} is a directory", path.display()),
        Ok(there) if !there.is_file() => return Ok(()),
        _ => real.with_added_extension("part"),
    };
    std::fs::File::create(&part).with_context(|| format!("making {}", part.display()))?;
    Ok(std::fs::remove_file(&part)?)
}

fn write(view: &View, format: Format, range: Range<u64>, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Csv => out.write_all(b"n,value\n")?,
        Format::Npy => out.write_all(&npy_header("'<u2'", range.end - range.start, 128))?,
        Format::Bfile | Format::Jsonl => {}
    }
    let mut result = Ok(());
    for_each_piece(view, range.start, range.end, |from, piece| {
        if result.is_ok() {
            result = (from..).zip(piece).try_for_each(|(n, v)| match format {
                Format::Bfile => writeln!(out, "{n} {v}"),
                Format::Csv => writeln!(out, "{n},{v}"),
                Format::Npy => out.write_all(&v.to_le_bytes()),
                Format::Jsonl => writeln!(out, "{{\"n\":{n},\"value\":{v}}}"),
            });
        }
        Ok(())
    })?;
    Ok(result?)
}

/// Writes a result to stdout, buffered.
pub(crate) fn print(body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    body(&mut out)?;
    out.flush()?;
    Ok(())
}

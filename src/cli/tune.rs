//! `grundy tune`: write a sequence as a tune, as Guy suggested, to a MIDI file.

use super::advice;
use super::output::Output;
use super::{Usage, number};
use anyhow::Result;
use grundy::theory::rule::Rule;
use grundy::tune::{self, HIGHEST, Playing};
use std::ops::Range;
use std::path::PathBuf;

/// Arguments of `grundy tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy tune grundy --range 0..301 -o grundy.mid\n         \
                        grundy tune .6 -o waltz.mid\n\n\
                        The values are white keys: 0 is middle C, 1 is D, 2 is E. Values above 39, the highest white \
                        key of MIDI, are folded by octaves into the seven highest white keys.\n\n\
                        --json: {\"game\",\"from\",\"to\",\"notes\",\"folded\",\"tempo\",\"bar\",\"file\"}; from..to \
                        is half open, folded is the number of folded notes.")]
pub(crate) struct Args {
    /// Game whose values are played.
    #[arg(value_parser = advice::rule, value_name = "GAME", default_value = "grundy")]
    game: Rule,
    /// Range of n to play [default: 0..301 as by Guy; 1..301 for .6].
    #[arg(long, value_name = "A..B", value_parser = number::range, allow_negative_numbers = true)]
    range: Option<Range<u64>>,
    /// MIDI file to write; '-' writes the file to stdout and the summary to stderr.
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// Beats (notes) per minute, 4 to 6000.
    #[arg(long, value_name = "BEATS", default_value = "180", value_parser = number::within::<u32>(4..=6000))]
    tempo: u32,
    /// Beats per bar, 1 to 16 [default: 3 for .6, a waltz; 4 for other games].
    #[arg(long, value_name = "BEATS", value_parser = number::within::<u8>(1..=16))]
    bar: Option<u8>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn tune(args: &Args, quiet: bool) -> Result<()> {
    let waltz = args.game.name() == "0.6";
    let range = args.range.clone().unwrap_or(if waltz { 1..301 } else { 0..301 });
    let playing = Playing { tempo: args.tempo, bar: args.bar.unwrap_or(if waltz { 3 } else { 4 }) };
    let notes = range.end - range.start;
    if notes > tune::MAX_NOTES as u64 {
        return Err(Usage(format!("{notes} notes are too many; a tune has at most {}", tune::MAX_NOTES)).into());
    }
    let output = Output::to(&args.output)?;
    let values = super::values::computed(&args.game, range.end, quiet)?;
    let played = &values[usize::try_from(range.start)?..];
    let folded = played.iter().filter(|&&value| value > HIGHEST).count();
    let (Range { start: from, end: to }, Playing { tempo, bar }) = (range, playing);
    let bytes = tune::file(&format!("{}, heaps {from} to {}", args.game, to - 1), played, playing)?;
    output.write(|out| Ok(out.write_all(&bytes)?))?;
    let file = output.name();
    let summary = if args.json {
        let game = args.game.name();
        let object = serde_json::json!({
            "game": game, "from": from, "to": to, "notes": notes, "folded": folded, "tempo": tempo, "bar": bar,
            "file": file
        });
        object.to_string()
    } else {
        let noun = if notes == 1 { "note" } else { "notes" };
        let folded = if folded == 0 { String::new() } else { format!("; {folded} of them folded") };
        format!("{file}: {notes} {noun} of {}, {bar} beats per bar, {tempo} per minute{folded}", args.game)
    };
    if output.is_stdout() {
        super::complain!("{summary}");
        return Ok(());
    }
    super::output::print(|out| Ok(writeln!(out, "{summary}")?))
}

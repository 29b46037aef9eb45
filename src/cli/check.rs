//! `grundy check`: compare values that others have published with those of a game or a run.

use super::input::called;
use super::layout::{counted, fitted, printable};
use super::number;
use super::source::Source;
use super::terms::{self, Term};
use super::values::{COMPUTED, of_game, open};
use super::{Usage, advice, output};
use anyhow::Result;
use grundy::Error;
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::collections::HashSet;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum difference between the offset of the user and an offset that is tried when values differ.
const TRIED: i64 = 9;

/// Minimum number of heaps whose terms must agree at another offset before it is named.
const ENOUGH: usize = 10;

/// Maximum number of values of a game for which [`TRIED`] more are computed, to try other offsets.
const SHORT: u64 = 1 << 16;

/// Maximum number of values that are read at once.
const PIECE: usize = 1 << 16;

/// Arguments of `grundy check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy check grundy b002188.txt\n         \
                        grundy check runs/grundy b002188.txt\n         \
                        grundy check .07 b002187.txt --offset -1\n         \
                        echo '0, 1, 2, 3, 1, 4' | grundy check kayles - --from 0\n\n\
                        FILE is an OEIS b-file ('n value'), a CSV file ('n,value'), or with --from a list of values. \
                        Lines that begin with '#' are comments. If a value differs, the exit status is 3, and the \
                        command tries the offsets from K - 9 to K + 9, because many sequences in the OEIS number the \
                        heaps differently.\n\n\
                        JSON keys: game count agree first last differs offset gap; 'count' is the number of terms in the \
                        file, 'agree' the number of terms that are equal to the computed values, 'first' and 'last' \
                        are the least and the greatest heap; 'differs' is null, or the first difference in the file, \
                        with the keys line n stated computed; 'offset' is null, or another offset at which the terms \
                        of at least 10 heaps can be compared, and all of these agree; 'gap' is null, or the first line \
                        whose n does not follow that of the line before, with the keys line index after, where \
                        'after' is the n before.")]
pub(crate) struct Args {
    /// Game, or run directory (./x is always a directory).
    #[arg(value_name = "GAME|DIR")]
    source: OsString,
    /// File of published values; '-' is stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file contains n + K instead of n, as 'grundy export --offset' writes it; K may be negative.
    #[arg(long, value_name = "K", default_value = "0", allow_negative_numbers = true, value_parser = number::offset)]
    offset: i64,
    /// The file contains values without n; the first is G(N). With --offset K, the first is G(N - K).
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::offset)]
    from: Option<i64>,
    /// Verify the run's table against the digests in the journal first; exit with status 3 if a byte was altered. Only
    /// with DIR.
    #[arg(long)]
    verify: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What a check found.
#[derive(Debug, serde::Serialize)]
struct Found<'a> {
    game: &'a str,
    /// Number of terms in the file.
    count: u64,
    /// Number of terms that are equal to the computed values.
    agree: u64,
    /// The least heap of a term.
    first: u64,
    /// The greatest heap of a term.
    last: u64,
    differs: Option<Difference>,
    /// Another offset at which all terms agree, as far as they can be compared.
    offset: Option<i64>,
    gap: Option<Gap>,
    /// The index of the first term and the offset, as the user gave them.
    #[serde(skip)]
    given: (Option<i64>, i64),
}

/// The first term that is not about the heap after that of the term before it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Gap {
    line: usize,
    /// The index of the term in the file.
    index: i64,
    /// The index of the term before it.
    after: i64,
}

/// A term that is not the value.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Difference {
    line: usize,
    n: u64,
    stated: u64,
    computed: u64,
}

pub(crate) fn check(args: &Args, quiet: bool) -> Result<ExitCode> {
    refuse_swapped(args)?;
    let source = Source::find(&args.source)?;
    if args.verify && matches!(source, Source::Game(_)) {
        return Err(Usage(COMPUTED.into()).into());
    }
    let terms = terms::read(&args.file, args.from)?;
    let heaps = heaps(args, &terms)?;
    let (rule, tally, offset) = match source {
        Source::Directory(dir) => {
            let view = open(&dir, args.verify, quiet)?;
            let tally = Tally::of(&terms, args.offset, &view).map_err(|error| advice::of_run(error, &dir))?;
            (view.rule.clone(), tally, tally.differs.and_then(|_| other_offset(&terms, args.offset, &view)))
        }
        Source::Game(rule) if rule.is_nim() => {
            let tally = Tally::of_nim(&terms, args.offset);
            (rule, tally, tally.differs.and_then(|_| other_offset_of_nim(&terms, args.offset)))
        }
        Source::Game(rule) => {
            let values = of_game(&rule, heaps.end, quiet)?;
            let tally = Tally::of(&terms, args.offset, &*values)?;
            // A short file has few terms left at an offset at which its last heaps are larger.
            let more = tally.differs.filter(|_| heaps.end < SHORT);
            let more = more.and_then(|_| of_game(&rule, heaps.end + TRIED.unsigned_abs(), true).ok());
            let values = more.unwrap_or(values);
            (rule, tally, tally.differs.and_then(|_| other_offset(&terms, args.offset, &*values)))
        }
    };
    let found = Found {
        game: rule.name(),
        count: terms.len() as u64,
        agree: tally.agree,
        first: heaps.start,
        last: heaps.end - 1,
        differs: tally.differs,
        offset,
        gap: gap(&terms),
        given: (args.from, args.offset),
    };
    output::print(|out| {
        if args.json {
            return output::object(out, &found);
        }
        Ok(out.write_all(fitted(&found.in_words(&args.file)).as_bytes())?)
    })?;
    Ok(ExitCode::from(if tally.differs.is_some() { 3 } else { 0 }))
}

/// Refuses a file of values in the place of the game, with the game after it.
fn refuse_swapped(args: &Args) -> Result<()> {
    let game = args.file.to_str().filter(|text| text.parse::<Rule>().is_ok() || Path::new(text).is_dir());
    let Some(game) = game.filter(|_| Path::new(&args.source).is_file() && !args.file.is_file()) else { return Ok(()) };
    let command = format!("grundy check {} {}", advice::quoted(game), advice::quoted_path(Path::new(&args.source)));
    let file = printable(Path::new(&args.source));
    Err(Usage(format!("'{file}' is a file; the game or the run directory comes first: '{command}'")).into())
}

/// The heap that a term is about, at an offset; negative where the offset is not that of the file.
fn heap(term: &Term, offset: i64) -> i128 {
    i128::from(term.index) - i128::from(offset)
}

/// The first gap between terms.
fn gap(terms: &[Term]) -> Option<Gap> {
    let mut pairs = terms.windows(2).map(|pair| [pair[0], pair[1]]);
    let [one, next] = pairs.find(|[one, next]| one.index.checked_add(1) != Some(next.index))?;
    Some(Gap { line: next.line, index: next.index, after: one.index })
}

/// The range from the least heap of all terms to the greatest.
///
/// # Errors
/// [`Error::Line`] at a term whose heap is negative or above 2^63 - 1.
fn heaps(args: &Args, terms: &[Term]) -> Result<Range<u64>> {
    let (mut least, mut end) = (u64::MAX, 0);
    let option = if args.from.is_some() { "--from" } else { "--offset" };
    for term in terms {
        let n = heap(term, args.offset);
        let n = u64::try_from(n).ok().filter(|&n| n <= i64::MAX as u64).ok_or_else(|| {
            let what = format!("n = {n}; heaps have 0 to 2^63 - 1 tokens; change {option}");
            Error::Line { path: called(&args.file).into(), line: term.line, what }
        })?;
        (least, end) = (least.min(n), end.max(n + 1));
    }
    Ok(least..end)
}

/// A comparison of terms with values.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Number of terms that are equal to the computed values.
    agree: u64,
    /// The first other term in the file.
    differs: Option<Difference>,
}

impl Tally {
    /// Compares all terms.
    ///
    /// # Errors
    /// The errors of reading the values.
    fn of(terms: &[Term], offset: i64, values: &dyn Sequence) -> grundy::Result<Tally> {
        let mut tally = Tally::default();
        let mut computed = Vec::new();
        for piece in pieces(terms) {
            let from = u64::try_from(heap(&piece[0], offset)).unwrap_or(u64::MAX);
            computed.resize(piece.len(), 0);
            values.read(from, &mut computed)?;
            for ((n, term), &value) in (from..).zip(piece).zip(&computed) {
                tally.add(term, n, value.into());
            }
        }
        Ok(tally)
    }

    /// Compares all terms with the values of nim, G(n) = n.
    fn of_nim(terms: &[Term], offset: i64) -> Tally {
        let mut tally = Tally::default();
        for term in terms {
            let n = u64::try_from(heap(term, offset)).unwrap_or(u64::MAX);
            tally.add(term, n, n);
        }
        tally
    }

    fn add(&mut self, term: &Term, n: u64, computed: u64) {
        let Term { line, value: stated, .. } = *term;
        if stated == computed {
            self.agree += 1;
        } else {
            self.differs.get_or_insert(Difference { line, n, stated, computed });
        }
    }
}

/// The terms in pieces of successive indices.
fn pieces(terms: &[Term]) -> impl Iterator<Item = &[Term]> {
    let successive = terms.chunk_by(|one, next| one.index.checked_add(1) == Some(next.index));
    successive.flat_map(|terms| terms.chunks(PIECE))
}

/// The offset nearest to the given one at which the terms agree with the values, among those at most [`TRIED`] away.
fn other_offset(terms: &[Term], offset: i64, values: &dyn Sequence) -> Option<i64> {
    let mut near = (1..=TRIED).flat_map(|size| [size, -size]).filter_map(|shift| offset.checked_add(shift));
    near.find(|&other| agrees(terms, other, values))
}

/// [`other_offset`] for nim, G(n) = n.
fn other_offset_of_nim(terms: &[Term], offset: i64) -> Option<i64> {
    let shift = |term: &Term| i128::from(term.index) - i128::from(term.value);
    let other = i64::try_from(shift(&terms[0])).ok().filter(|other| other.abs_diff(offset) <= TRIED.unsigned_abs())?;
    let heaps: HashSet<u64> = terms.iter().map(|term| term.value).collect();
    let is_offset = heaps.len() >= ENOUGH && terms.iter().all(|term| shift(term) == i128::from(other));
    is_offset.then_some(other)
}

/// Whether no heap is negative at an offset, at least [`ENOUGH`] heaps have a term that can be compared, and all these
/// terms agree. Ignores terms beyond the values. Returns false if some of the others cannot be read.
fn agrees(terms: &[Term], offset: i64, values: &dyn Sequence) -> bool {
    let mut compared = HashSet::new();
    let mut computed = Vec::new();
    for piece in pieces(terms) {
        let Ok(from) = u64::try_from(heap(&piece[0], offset)) else { return false };
        let there = usize::try_from(values.len().saturating_sub(from)).unwrap_or(usize::MAX);
        let piece = &piece[..piece.len().min(there)];
        if piece.is_empty() {
            continue;
        }
        computed.resize(piece.len(), 0);
        let is_read = values.read(from, &mut computed).is_ok();
        if !is_read || piece.iter().zip(&computed).any(|(term, &value)| term.value != u64::from(value)) {
            return false;
        }
        if compared.len() < ENOUGH {
            compared.extend(piece.iter().take(ENOUGH).map(|term| term.index));
        }
    }
    compared.len() >= ENOUGH
}

impl Found<'_> {
    fn in_words(&self, path: &Path) -> String {
        let (file, game, count) = (printable(called(path)), self.game, HumanCount(self.count));
        let [first, last] = [self.first, self.last].map(HumanCount);
        let Some(Difference { line, n, stated, computed }) = self.differs else {
            let gap = self.gap.map_or_else(String::new, |Gap { line, index, after }| {
                format!("; its n are not consecutive: in line {line}, {index} follows {after}")
            });
            let values = counted(self.count, "values");
            return format!("{file} agrees with {game}: {values}, from n = {first} to {last}{gap}\n");
        };
        let [differ, n] = [self.count - self.agree, n].map(HumanCount);
        let mut text = format!(
            "{file} differs from {game} in {differ} of {count} values; the first is in line {line}: n = {n} has the value \
             {computed}, not {stated}"
        );
        if let Some(option) = self.other_option() {
            text += &format!("; with {option}, all values that can be compared agree");
        }
        text + "\n"
    }

    /// The option with which all terms agree: the one that the user gave, with another number.
    fn other_option(&self) -> Option<String> {
        let (other, (from, offset)) = (self.offset?, self.given);
        let other_from = from.and_then(|from| from.checked_add(offset.checked_sub(other)?));
        Some(other_from.map_or_else(|| format!("--offset {other}"), |from| format!("--from {from}")))
    }
}

//! `grundy check`: compare values that others have published with those of a game or a run.

use super::input::called;
use super::layout::{counted, fitted, printable};
use super::number;
use super::source::Source;
use super::terms::{self, Stated, Term};
use super::values::{COMPUTED, of_game, open};
use super::{Usage, advice, output};
use anyhow::Result;
use grundy::Error;
use grundy::find::{Question, Row, rows};
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
                        grundy check .07 zeros.txt --zeros --offset -1\n         \
                        echo '0, 1, 2, 3, 1, 4' | grundy check kayles - --from 0\n\n\
                        FILE is an OEIS b-file ('n value'), a CSV file ('n,value'), or with --from a list of values. \
                        Lines that begin with '#' are comments. If a value differs, the exit status is 3, and the \
                        command tries the offsets from K - 9 to K + 9, because many sequences in the OEIS number the \
                        heaps differently.\n\n\
                        With --zeros or --value, FILE contains positions, as 'grundy find --format bfile' writes them: \
                        each line is 'k n', where n is the k-th position, and --offset applies to n. The command \
                        checks that each n has the value, and that no position between the first and the last one is \
                        missing.\n\n\
                        JSON keys: game count agree first last missing differs offset gap; 'count' is the number of \
                        terms in the file, 'agree' the number of terms that are equal to the computed values, 'first' \
                        and 'last' are the least and the greatest heap, 'missing' is the number of missing positions; \
                        'differs' is null, or the first difference in the file, with the keys line n stated computed, \
                        where 'stated' is null if the position n is missing before that line; 'offset' is null, or \
                        another offset at which the terms of at least 10 heaps can be compared, and all of these \
                        agree; 'gap' is null, or the first line whose n or k does not follow that of the line before, \
                        with the keys line index after, where 'after' is the n or k before.")]
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
    /// The file contains values without n; the first is G(N). With --offset K, the first is G(N - K). With --zeros or
    /// --value: the file contains positions without k; the first is the N-th.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::offset)]
    from: Option<i64>,
    /// The file contains the positions with value 0.
    #[arg(long, conflicts_with = "value")]
    zeros: bool,
    /// The file contains the positions of the value V.
    #[arg(long, value_name = "V")]
    value: Option<u16>,
    /// Verify the run's table against the digests in the journal first; exit with status 3 if a byte was altered. Only
    /// with DIR.
    #[arg(long)]
    verify: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The value whose positions the file contains.
    fn value(&self) -> Option<u16> {
        self.value.or(self.zeros.then_some(0))
    }
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
    /// Number of positions between the first and the last one that the file should contain, and does not.
    missing: u64,
    differs: Option<Difference>,
    /// Another offset at which all terms agree, as far as they can be compared.
    offset: Option<i64>,
    gap: Option<Gap>,
    /// The value whose positions the file contains.
    #[serde(skip)]
    value: Option<u16>,
    /// The index of the first term and the offset, as the user gave them.
    #[serde(skip)]
    given: (Option<i64>, i64),
}

/// The first term whose index does not follow that of the term before it.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Gap {
    line: usize,
    /// The index of the term in the file.
    index: i128,
    /// The index of the term before it.
    after: i128,
}

/// A heap whose value is not that of the file.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Difference {
    line: usize,
    n: u64,
    /// `None` if `n` is a position that the file should contain before the line.
    stated: Option<i128>,
    computed: u64,
}

/// What a file states.
#[derive(Debug)]
struct Published {
    /// The heaps and their values; ascending heaps if the file contains positions.
    terms: Vec<Term>,
    /// The value whose positions the file contains.
    value: Option<u16>,
    gap: Option<Gap>,
}

pub(crate) fn check(args: &Args, quiet: bool) -> Result<ExitCode> {
    refuse_swapped(args)?;
    let source = Source::find(&args.source)?;
    if args.verify && matches!(source, Source::Game(_)) {
        return Err(Usage(COMPUTED.into()).into());
    }
    let published = Published::read(args)?;
    let heaps = heaps(args, &published.terms)?;
    let (rule, tally, offset) = match source {
        Source::Directory(dir) => {
            let view = open(&dir, args.verify, quiet)?;
            let tally = published.tally(args.offset, &view).map_err(|error| advice::of_run(error, &dir))?;
            (view.rule.clone(), tally, tally.differs.and_then(|_| published.other_offset(args.offset, &view)))
        }
        Source::Game(rule) if rule.is_nim() => {
            let tally = published.tally_of_nim(args.offset);
            (rule, tally, tally.differs.and_then(|_| other_offset_of_nim(&published.terms, args.offset)))
        }
        Source::Game(rule) => {
            let values = of_game(&rule, heaps.end, quiet)?;
            let tally = published.tally(args.offset, &*values)?;
            // A short file has few terms left at an offset at which its last heaps are larger.
            let more = tally.differs.filter(|_| heaps.end < SHORT);
            let more = more.and_then(|_| of_game(&rule, heaps.end + TRIED.unsigned_abs(), true).ok());
            let values = more.unwrap_or(values);
            (rule, tally, tally.differs.and_then(|_| published.other_offset(args.offset, &*values)))
        }
    };
    let found = Found {
        game: rule.name(),
        count: published.terms.len() as u64,
        agree: tally.agree,
        first: heaps.start,
        last: heaps.end - 1,
        missing: tally.missing,
        differs: tally.differs,
        offset,
        gap: published.gap,
        value: published.value,
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

impl Published {
    /// Reads the file of the arguments.
    ///
    /// # Errors
    /// The errors of [`terms::read`]; [`Error::Line`] at a position that is not greater than the one before it.
    fn read(args: &Args) -> Result<Published> {
        let value = args.value();
        let stated = if value.is_some() { Stated::Positions } else { Stated::Values };
        let terms = terms::read(&args.file, args.from, stated)?;
        let gap = gap(&terms);
        let terms = match value {
            None => terms,
            Some(value) => positions(&terms, value).map_err(|(line, what)| Error::Line {
                path: called(&args.file).into(),
                line,
                what,
            })?,
        };
        Ok(Published { terms, value, gap })
    }

    /// Compares the file, which contains n + `offset` instead of n, with the values.
    ///
    /// # Errors
    /// The errors of reading the values.
    fn tally(&self, offset: i64, values: &dyn Sequence) -> grundy::Result<Tally> {
        let mut tally = Tally::of(&self.terms, offset, values)?;
        if let Some(value) = self.value {
            tally.add_missing(&self.terms, value, offset, values)?;
        }
        Ok(tally)
    }

    /// [`Published::tally`] with the values of nim, G(n) = n: a value has one position.
    fn tally_of_nim(&self, offset: i64) -> Tally {
        let mut tally = Tally::of_nim(&self.terms, offset);
        let Some(value) = self.value else { return tally };
        let position = i128::from(value);
        let next = self.terms.iter().find(|term| heap(term, offset) >= position);
        let begins_before = self.terms.first().is_some_and(|first| heap(first, offset) < position);
        if let Some(next) = next.filter(|next| begins_before && heap(next, offset) > position) {
            tally.miss(Difference { line: next.line, n: value.into(), stated: None, computed: value.into() });
        }
        tally
    }

    /// The offset nearest to the given one at which the file agrees with the values, among those at most [`TRIED`]
    /// away.
    fn other_offset(&self, offset: i64, values: &dyn Sequence) -> Option<i64> {
        let mut near = (1..=TRIED).flat_map(|size| [size, -size]).filter_map(|shift| offset.checked_add(shift));
        near.find(|&other| {
            let is_complete = |value| {
                let mut tally = Tally::default();
                tally.add_missing(&self.terms, value, other, values).is_ok() && tally.missing == 0
            };
            agrees(&self.terms, other, values) && self.value.is_none_or(is_complete)
        })
    }
}

/// The terms of a list of the positions of a value: the index is the position.
///
/// # Errors
/// The line of the first position that does not ascend, and what is wrong.
fn positions(terms: &[Term], value: u16) -> Result<Vec<Term>, (usize, String)> {
    let mut positions: Vec<Term> = Vec::with_capacity(terms.len());
    for term in terms {
        let n = term.value;
        if let Some(before) = positions.last().filter(|before| before.index >= n) {
            let what = format!("the positions must ascend, but {n} follows {}", before.index);
            return Err((term.line, what));
        }
        positions.push(Term { index: n, value: value.into(), ..*term });
    }
    Ok(positions)
}

/// The heap that a term is about, at an offset; negative where the offset is not that of the file.
fn heap(term: &Term, offset: i64) -> i128 {
    term.index - i128::from(offset)
}

/// The first gap between terms.
fn gap(terms: &[Term]) -> Option<Gap> {
    let mut pairs = terms.windows(2).map(|pair| [pair[0], pair[1]]);
    let [one, next] = pairs.find(|[one, next]| one.index + 1 != next.index)?;
    Some(Gap { line: next.line, index: next.index, after: one.index })
}

/// The range from the least heap of all terms to the greatest.
///
/// # Errors
/// [`Error::Line`] at a term whose heap is negative or above 2^63 - 1.
fn heaps(args: &Args, terms: &[Term]) -> Result<Range<u64>> {
    let (mut least, mut end) = (u64::MAX, 0);
    let option = if args.from.is_some() && args.value().is_none() { "--from" } else { "--offset" };
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
    /// Number of positions that are missing in a file of positions.
    missing: u64,
    /// The first difference in the file.
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
        if stated == i128::from(computed) {
            self.agree += 1;
        } else {
            self.differs.get_or_insert(Difference { line, n, stated: Some(stated), computed });
        }
    }

    /// Adds the positions of `value` between the first and the last term, as far as there are values, that are not
    /// among the terms, which ascend.
    ///
    /// # Errors
    /// The errors of reading the values.
    fn add_missing(&mut self, terms: &[Term], value: u16, offset: i64, values: &dyn Sequence) -> grundy::Result<()> {
        let at = |term: &Term| u64::try_from(heap(term, offset)).unwrap_or(0);
        let mut listed = terms.iter().map(|term| (at(term), term.line)).peekable();
        let end = terms.last().map_or(0, |last| at(last) + 1).min(values.len());
        let start = terms.first().map_or(0, at).min(end);
        let add = |row| {
            let Row::At { n, .. } = row else { return Ok(()) };
            while listed.next_if(|&(position, _)| position < n).is_some() {}
            if listed.next_if(|&(position, _)| position == n).is_none() {
                let line = listed.peek().map_or(0, |&(_, line)| line);
                self.miss(Difference { line, n, stated: None, computed: value.into() });
            }
            Ok(())
        };
        rows::<Error>(values, start..end, &Question::Values(value..=value), |_| Ok(()), add)
    }

    /// Adds a missing position.
    fn miss(&mut self, missing: Difference) {
        self.missing += 1;
        if self.differs.is_none_or(|differs| missing.n < differs.n) {
            self.differs = Some(missing);
        }
    }
}

/// The terms in pieces of successive indices.
fn pieces(terms: &[Term]) -> impl Iterator<Item = &[Term]> {
    let successive = terms.chunk_by(|one, next| one.index + 1 == next.index);
    successive.flat_map(|terms| terms.chunks(PIECE))
}

/// [`Published::other_offset`] for nim, G(n) = n.
fn other_offset_of_nim(terms: &[Term], offset: i64) -> Option<i64> {
    let shift = |term: &Term| term.index - term.value;
    let other = i64::try_from(shift(&terms[0])).ok().filter(|other| other.abs_diff(offset) <= TRIED.unsigned_abs())?;
    let heaps: HashSet<i128> = terms.iter().map(|term| term.value).collect();
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
        if !is_read || piece.iter().zip(&computed).any(|(term, &value)| term.value != i128::from(value)) {
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
        let (file, game) = (printable(called(path)), self.game);
        let Some(Difference { line, n, stated, computed }) = self.differs else {
            let [first, last] = [self.first, self.last].map(HumanCount);
            let terms = match self.value {
                None => counted(self.count, "values"),
                Some(value) => format!("{} of the value {value}", counted(self.count, "positions")),
            };
            return format!("{file} agrees with {game}: {terms}, from n = {first} to {last}{}\n", self.gap_in_words());
        };
        let n = HumanCount(n);
        let first = match stated {
            Some(stated) => format!("in line {line}: n = {n} has the value {computed}, not {stated}"),
            None => format!("n = {n}, which has the value {computed} and is missing before line {line}"),
        };
        let mut text = format!("{file} differs from {game} {}; the first is {first}", self.differences());
        if let Some(option) = self.other_option() {
            let terms = if self.value.is_some() { "positions" } else { "values" };
            text += &format!("; with {option}, all {terms} that can be compared agree");
        }
        text + "\n"
    }

    fn gap_in_words(&self) -> String {
        let numbers = if self.value.is_some() { "indices k" } else { "n" };
        self.gap.map_or_else(String::new, |Gap { line, index, after }| {
            format!("; its {numbers} are not consecutive: in line {line}, {index} follows {after}")
        })
    }

    /// How many terms differ, and how many positions are missing.
    fn differences(&self) -> String {
        let [differ, count] = [self.count - self.agree, self.count].map(HumanCount);
        if self.value.is_none() {
            return format!("in {differ} of {count} values");
        }
        match (self.count - self.agree, self.missing) {
            (_, 0) => format!("in {differ} of {count} positions"),
            (0, missing) => format!("and lacks {}", counted(missing, "positions")),
            (_, missing) => format!("in {differ} of {count} positions and lacks {}", HumanCount(missing)),
        }
    }

    /// The option with which all terms agree: the one that the user gave, with another number.
    fn other_option(&self) -> Option<String> {
        let (other, (from, offset)) = (self.offset?, self.given);
        let other_from =
            from.filter(|_| self.value.is_none()).and_then(|from| from.checked_add(offset.checked_sub(other)?));
        Some(other_from.map_or_else(|| format!("--offset {other}"), |from| format!("--from {from}")))
    }
}

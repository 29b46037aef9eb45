//! Terms of a sequence as others publish them: an OEIS b-file, a CSV file, or a list of values.

use super::input::{called, read_text};
use anyhow::{Result, anyhow};
use grundy::Error;
use std::path::Path;

/// Maximum length of a file of terms, in bytes.
const MAX_BYTES: u64 = 1 << 28;

/// Maximum length of a word that an error message repeats, in characters.
const SHOWN: usize = 40;

/// A term of a published sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// Line of the file, counted from 1.
    pub(super) line: usize,
    /// The index in the file. The author may number the heaps from another number than 0.
    pub(super) index: i128,
    /// The value, which may exceed those that this program stores; or the position, which is negative if the author
    /// numbers the heaps from a negative number on.
    pub(super) value: i128,
}

/// What a file states for each index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stated {
    /// The nim-value of a heap.
    Values,
    /// The k-th position of a value.
    Positions,
}

/// Reads the terms of a file. Without `from`, each line is `index value` or `index,value`, as in a b-file, or in a CSV
/// file with the header `n,value`. With `from`, the file contains values alone, separated by blanks, commas or line
/// ends, and `from` is the index of the first. Lines that begin with '#' are comments. A value is from 0 to 2^64 - 1, a
/// position from -2^63 to 2^63 - 1.
///
/// # Errors
/// The errors of reading; [`Error::Line`] at the first line that has another form; an error if there is no term.
pub(super) fn read(path: &Path, from: Option<i64>, stated: Stated) -> Result<Vec<Term>> {
    let text = read_text(path, MAX_BYTES)?;
    let terms = match from {
        None => pairs(&text, stated),
        Some(from) => list(&text, from, stated),
    };
    let terms = terms.map_err(|(line, what)| Error::Line { path: called(path).into(), line, what })?;
    if terms.is_empty() {
        let what = if stated == Stated::Values { "values" } else { "positions" };
        return Err(anyhow!("{}: the file contains no {what}", called(path).display()));
    }
    Ok(terms)
}

/// The number of a line, and what is wrong there.
type Refusal = (usize, String);

/// The lines that are no comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(|line| line.trim_start_matches('\u{feff}')));
    lines.filter(|(_, line)| !line.trim_start().starts_with('#'))
}

/// The words of a line.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty())
}

/// Whether nothing stands between two commas of a line. `is_open`: whether the line before ends with a comma.
fn has_gap(line: &str, is_open: bool) -> bool {
    let Some((first, rest)) = line.split_once(',') else { return false };
    let inner = rest.rsplit_once(',').map(|(inner, _)| inner);
    let is_blank = |entry: &str| entry.trim().is_empty();
    is_open && is_blank(first) || inner.is_some_and(|inner| inner.split(',').any(is_blank))
}

fn pairs(text: &str, stated: Stated) -> Result<Vec<Term>, Refusal> {
    let mut terms = Vec::new();
    for (line, text) in lines(text) {
        if has_gap(text, text.trim_start().starts_with(',')) || text.trim_end().ends_with(',') {
            return Err((line, "a number is missing before or after a comma".to_owned()));
        }
        match words(text).collect::<Vec<_>>()[..] {
            [] => {}
            ["n", "value"] if terms.is_empty() && stated == Stated::Values => {}
            ["k", "n"] if terms.is_empty() && stated == Stated::Positions => {}
            ["n", "value"] if terms.is_empty() => {
                return Err((line, "the lines state n and its value; expected 'k n', the k-th position".into()));
            }
            [index, value] => {
                let index = index.parse::<i64>().map_err(|_| {
                    (line, format!("'{}' is no index, a whole number from -2^63 to 2^63 - 1", cut(index)))
                })?;
                terms.push(Term { line, index: index.into(), value: stated.parse(line, value)? });
            }
            _ => return Err((line, "expected 'n value'; for a file of values alone, give --from N".into())),
        }
    }
    Ok(terms)
}

fn list(text: &str, from: i64, stated: Stated) -> Result<Vec<Term>, Refusal> {
    let mut terms = Vec::new();
    let mut indices = from..=i64::MAX;
    let mut is_open = false;
    for (line, text) in lines(text) {
        if has_gap(text, is_open) {
            return Err((line, "a value is missing between two commas".to_owned()));
        }
        if !text.trim().is_empty() {
            is_open = text.trim_end().ends_with(',');
        }
        for word in words(text) {
            let index = indices.next().ok_or_else(|| (line, "the index exceeds 2^63 - 1".to_owned()))?;
            terms.push(Term { line, index: index.into(), value: stated.parse(line, word)? });
        }
    }
    Ok(terms)
}

impl Stated {
    fn parse(self, line: usize, word: &str) -> Result<i128, Refusal> {
        let (number, what) = match self {
            Stated::Values => (word.parse::<u64>().map(i128::from), "value, a whole number from 0 to 2^64 - 1"),
            Stated::Positions => {
                (word.parse::<i64>().map(i128::from), "position, a whole number from -2^63 to 2^63 - 1")
            }
        };
        number.map_err(|_| (line, format!("'{}' is not a {what}", cut(word))))
    }
}

/// The start of a word, for an error message.
fn cut(word: &str) -> String {
    let start: String = word.chars().take(SHOWN).collect();
    if start.len() < word.len() { start + "…" } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(text: &str) -> Result<Vec<Term>, Refusal> {
        pairs(text, Stated::Values)
    }

    fn list(text: &str, from: i64) -> Result<Vec<Term>, Refusal> {
        super::list(text, from, Stated::Values)
    }

    fn plain(terms: Result<Vec<Term>, Refusal>) -> Vec<(usize, i128, i128)> {
        terms.unwrap().iter().map(|term| (term.line, term.index, term.value)).collect()
    }

    #[test]
    fn files_that_people_publish_are_read() {
        assert_eq!(plain(values_of("# A002188\n\n0 0\r\n1\t7 \n")), [(3, 0, 0), (4, 1, 7)]);
        assert_eq!(plain(values_of("\u{feff}n,value\n-1,0\n5,65536\n")), [(2, -1, 0), (3, 5, 65536)]);
        assert_eq!(plain(list(",0, 0, 1,\n# ,,9\n 2", -1)), [(1, -1, 0), (1, 0, 0), (1, 1, 1), (3, 2, 2)]);
        assert_eq!(plain(values_of("")), []);
    }

    #[test]
    fn positions_may_be_negative() {
        assert_eq!(plain(pairs("1 -1\n2 5\n", Stated::Positions)), [(1, 1, -1), (2, 2, 5)]);
        assert_eq!(plain(super::list("-1, 5", 1, Stated::Positions)), [(1, 1, -1), (1, 2, 5)]);
        assert_eq!(plain(pairs("k,n\n1,5\n", Stated::Positions)), [(2, 1, 5)]);
        assert!(pairs("n,value\n9,0\n", Stated::Positions).unwrap_err().1.contains("expected 'k n'"));
        assert!(pairs("1 9223372036854775808", Stated::Positions).unwrap_err().1.contains("is not a position"));
    }

    #[test]
    fn lines_of_another_form_are_refused_with_their_number() {
        for (text, line, what) in [
            (",1,,1\n", 1, "before or after a comma"),
            ("0 0\n,1 1\n", 2, "before or after a comma"),
            ("1,1,\n", 1, "before or after a comma"),
            ("0 0\n0, 1, 2\n", 2, "--from"),
            ("7\n", 1, "--from"),
            ("0 0\nn value\n", 2, "'n' is no index"),
            ("1.5 0\n", 1, "'1.5' is no index"),
            ("1 -1\n", 1, "'-1' is not a value"),
            ("9223372036854775808 0\n", 1, "no index"),
        ] {
            let (found, why) = values_of(text).unwrap_err();
            assert!(found == line && why.contains(what), "{text}: {found}: {why}");
        }
        assert_eq!(list("0 x", 0).unwrap_err().0, 1);
        for text in ["0\n0, 1, , 2", "0\n,,1", "0\n1,,", "0,\n,1", "0, \n , 1"] {
            let (line, why) = list(text, 0).unwrap_err();
            assert!(line == 2 && why.contains("between two commas"), "{text}: {why}");
        }
        let long = "1".repeat(1000);
        assert!(
            list(&long, 0).unwrap_err().1.len() < 150 && values_of(&format!("{long} 0")).unwrap_err().1.len() < 150
        );
        assert_eq!(plain(list("0", i64::MAX)), [(1, i64::MAX.into(), 0)]);
        assert!(list("0 0", i64::MAX).unwrap_err().1.contains("2^63 - 1"));
    }
}

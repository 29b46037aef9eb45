//! Layout of texts for people: labelled paragraphs, tables and times within 80 columns.
//!
//! Lines are broken between words only, so a word or number that is longer than a line extends beyond it.

use super::colour::{LABEL, painted};
use std::time::Duration;
use textwrap::{Options, WordSeparator, WordSplitter};

/// Maximum number of columns of a line.
const WIDTH: usize = 80;

/// Number of columns of the labels before paragraphs.
const LABELS: usize = 16;

/// A paragraph after its label, whose lines all begin in the same column.
pub(super) fn paragraph(label: &str, text: &str) -> String {
    let label =
        format!("{}{:>width$}", painted(LABEL, label), "", width = LABELS.saturating_sub(label.chars().count()));
    filled(text, &label, LABELS)
}

/// A text whose first line begins with `first`, and whose other lines begin after `indent` columns.
pub(super) fn filled(text: &str, first: &str, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let options = Options::new(WIDTH).initial_indent(first).subsequent_indent(&indent).break_words(false);
    let options = options.word_separator(WordSeparator::AsciiSpace).word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

/// A duration in its two largest units: `40 s`, `2 h 4 min`, `3 d 4 h`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {smaller}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => two(minutes, "min", seconds % 60, "s"),
        3600..86400 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let text = |seconds| duration(Duration::from_secs(seconds));
        let expected =
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (7479, "2 h 4 min"), (273_600, "3 d 4 h")];
        for (seconds, words) in expected {
            assert_eq!(text(seconds), words);
        }
        assert_eq!((text(7200).as_str(), text(86400).as_str()), ("2 h", "1 d"));
    }

    #[test]
    fn paragraphs_break_between_words_and_keep_their_column() {
        let digest = "0123456789abcdef".repeat(4);
        let text = format!("dawson-kayles {digest} {}", "1,000,000 values ".repeat(9));
        let lines = anstream::adapter::strip_str(&paragraph("rare positions", &text)).to_string();
        assert!(lines.lines().all(|line| line.len() <= WIDTH), "{lines}");
        assert!(lines.lines().skip(1).all(|line| line.starts_with(&" ".repeat(LABELS))), "{lines}");
        assert!(lines.starts_with("rare positions  dawson-kayles\n"), "{lines}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines)[2..], words(&text)[..]);
    }
}

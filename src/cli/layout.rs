//! Layout of texts for people: labelled paragraphs, tables, times, sizes and names of machines.
//!
//! Lines are broken between words only, so a word or number that is longer than a line extends beyond it.

use super::colour::{LABEL, painted};
use indicatif::HumanCount;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use textwrap::{Options, WordSeparator, WordSplitter};

/// Number of columns of a line, unless stdout is a terminal.
const WIDTH: usize = 80;

/// Minimum and maximum number of columns of a line on a terminal.
const TERMINAL: (usize, usize) = (40, 100);

/// Number of columns of the labels before paragraphs.
const LABELS: usize = 16;

/// A path in a form that is safe to print in a message.
pub(super) fn printable(path: &Path) -> String {
    grundy::error::printable(&path.display().to_string())
}

/// A paragraph after its label, whose lines all begin in the same column.
pub(super) fn paragraph(label: &str, text: &str) -> String {
    filled(text, &column(label), LABELS)
}

/// A command to be copied, after its label, or in the next line if it does not fit beside it; never broken.
pub(super) fn unbroken(label: &str, command: &str) -> String {
    if LABELS + command.chars().count() <= WIDTH {
        return column(label) + command + "\n";
    }
    format!("{}\n  {command}\n", painted(LABEL, label))
}

/// A label, padded to the width of its column.
fn column(label: &str) -> String {
    format!("{}{:>width$}", painted(LABEL, label), "", width = LABELS.saturating_sub(label.chars().count()))
}

/// A text whose first line begins with `first`, and whose other lines begin after `indent` columns.
pub(super) fn filled(text: &str, first: &str, indent: usize) -> String {
    lines(text, first, indent, width_of(std::io::stdout())) + "\n"
}

/// Lines for stdout: on a terminal, those that are too long are broken between words, and go on after two columns.
pub(super) fn fitted(text: &str) -> String {
    let stdout = std::io::stdout();
    if stdout.is_terminal() { broken(text, width_of(stdout)) + "\n" } else { text.to_owned() }
}

/// One line for stdout, which begins with `first`: on a terminal, the lines that it is broken into go on after `first`.
pub(super) fn fitted_after(first: &str, text: &str) -> String {
    let stdout = std::io::stdout();
    if stdout.is_terminal() { lines(text, first, first.len(), width_of(stdout)) } else { format!("{first}{text}") }
}

/// [`fitted`] for stderr. The commands in the text stay whole, so that they can be copied: one that is longer than a
/// line begins on a line of its own.
pub(super) fn message(text: &str) -> String {
    let stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return text.to_owned();
    }
    broken(&with_whole_commands(text), width_of(stderr)).replace(GLUE, " ")
}

/// Escapes the control characters of a text, except for line ends: names of files and directories may contain some that
/// a terminal would obey.
pub(super) fn harmless(text: &str) -> String {
    let escaped = |c: char| if c.is_control() && c != '\n' { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// Breaks the lines of a text that are longer than `width` columns between words.
fn broken(text: &str, width: usize) -> String {
    let line = |line: &str| lines(line.trim_start(), indent_of(line), indent_of(line).len() + 2, width);
    text.lines().map(line).collect::<Vec<String>>().join("\n")
}

/// Stands for a blank at which no line is broken: a character for private use.
const GLUE: &str = "\u{e000}";

/// Replaces the blanks of commands by [`GLUE`]. A command begins with 'grundy ' after a quote or after `: `, and ends
/// before the quote or at the end of the line.
fn with_whole_commands(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    let begins =
        |rest: &str| [("'grundy ", '\''), (": grundy ", '\n')].map(|(begin, end)| Some((rest.find(begin)?, end)));
    while let Some((at, end)) = begins(rest).into_iter().flatten().min() {
        let from = at + rest[at..].find('g').unwrap_or(0);
        let to = rest[from..].find(end).map_or(rest.len(), |length| from + length);
        whole += &rest[..from];
        whole += &rest[from..to].replace(' ', GLUE);
        rest = &rest[to..];
    }
    whole + rest
}

/// The blanks at the beginning of a line.
fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// A text in lines of at most `width` columns, whose first line begins with `first`, and whose other lines begin after
/// `indent` columns.
pub(super) fn lines(text: &str, first: &str, indent: usize, width: usize) -> String {
    let indent = " ".repeat(indent);
    let options = Options::new(width).initial_indent(first).subsequent_indent(&indent).break_words(false);
    let options = options.word_separator(WordSeparator::AsciiSpace).word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

/// Number of columns for texts on `stream`.
fn width_of(stream: impl AsFd) -> usize {
    terminal_size::terminal_size_of(stream)
        .map_or(WIDTH, |(width, _)| usize::from(width.0).clamp(TERMINAL.0, TERMINAL.1))
}

/// A duration in its two largest units: `40s`, `2h 4m`, `3d 4h`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit} {small}{smaller}"),
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => two(minutes, "m", seconds % 60, "s"),
        3600..86400 => two(hours, "h", minutes % 60, "m"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// A number of bytes, of three significant digits: `200 B`, `1.25 GB`.
pub(super) fn size(bytes: u64) -> String {
    let number = scaled(bytes as f64, " ");
    if number.contains(' ') { number + "B" } else { number + " B" }
}

/// Three significant digits and an SI prefix: `62.3M`, or `971 M` with a blank as `gap`.
pub(super) fn scaled(number: f64, gap: &str) -> String {
    if number < 999.5 {
        return format!("{number:.0}{}", gap.trim_end());
    }
    let (mut scaled, mut prefixes) = (number / 1000.0, ["k", "M", "G", "T", "P", "E"].into_iter());
    let mut prefix = prefixes.next();
    while scaled >= 999.5 {
        (scaled, prefix) = (scaled / 1000.0, prefixes.next());
    }
    let decimals = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    let digits = format!("{scaled:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits}{gap}{}", prefix.unwrap_or("×10^21"))
}

/// `1 thread`, `2 threads`, `1,000 values`: a number and what it counts, named in the plural.
pub(super) fn counted(number: u64, plural: &str) -> String {
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    format!("{} {}", HumanCount(number), if number == 1 { singular } else { plural })
}

/// Names machines in words.
pub(super) fn machine_names(machines: &[Option<String>]) -> String {
    let name = |machine: &Option<String>| machine.clone().unwrap_or_else(|| "a machine that is not recorded".into());
    machines.iter().map(name).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_a_text_are_not_broken() {
        let text = "error: no room; 'grundy run .77 --dir a b' goes on, 'grundy run' too\nto resume: grundy run --to 5";
        let glued = with_whole_commands(text);
        assert_eq!(glued.replace(GLUE, " "), text);
        let broken = broken(&glued, 20).replace(GLUE, " ");
        let lines: Vec<&str> = broken.lines().map(str::trim).collect();
        let expected = ["error: no room;", "'grundy run .77 --dir a b'", "goes on,", "'grundy run' too", "to resume:"];
        assert_eq!(lines, [&expected[..], &["grundy run --to 5"]].concat());
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let text = |seconds| duration(Duration::from_secs(seconds));
        let expected = [(0, "0s"), (59, "59s"), (60, "1m"), (61, "1m 1s"), (7479, "2h 4m"), (273_600, "3d 4h")];
        for (seconds, words) in expected {
            assert_eq!(text(seconds), words);
        }
        assert_eq!((text(7200).as_str(), text(86400).as_str()), ("2h", "1d"));
    }

    #[test]
    fn sizes_have_three_significant_digits() {
        assert_eq!([0, 200, 1000, 101_048_576].map(size), ["0 B", "200 B", "1 kB", "101 MB"]);
    }

    #[test]
    fn scaled_numbers_have_three_significant_digits() {
        let all = [0.0, 999.0, 999.6, 1000.0, 9994.0, 9996.0, 62_259_200.0, 999_600.0, 971e6, 1.8e19];
        let texts = ["0", "999", "1k", "1k", "9.99k", "10k", "62.3M", "1M", "971M", "18E"];
        assert_eq!(all.map(|number| scaled(number, "")), texts);
    }

    #[test]
    fn one_is_counted_in_the_singular() {
        assert_eq!([0, 1, 1000].map(|n| counted(n, "values")), ["0 values", "1 value", "1,000 values"]);
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

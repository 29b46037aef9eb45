//! Colour: the few styles of texts for people, and when they are written.
//!
//! Texts contain the escape sequences of their styles. The streams that write them remove the sequences where no colour
//! is wanted: by default outside a terminal, with `TERM=dumb`, and with `NO_COLOR` or `CLICOLOR=0` in the environment.
//! JSON and files are written to other streams, by functions that never use a style.

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use std::ffi::OsString;

/// Style of headings and labels.
pub(super) const LABEL: Style = Style::new().bold();

/// Style of what is in progress.
pub(super) const ACTIVE: Style = AnsiColor::Green.on_default().bold();

/// Style of errors and damage.
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Returns a text in a style.
pub(super) fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Decides for this process when texts have colour.
pub(super) fn choose(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Applies the option `--color` before the arguments are parsed, because help and usage errors have colour too. The
/// parser reports a choice that does not exist.
pub(super) fn choose_early(arguments: impl Iterator<Item = OsString>) {
    let mut arguments = arguments.take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let argument = argument.to_string_lossy().into_owned();
        let choice = match argument.strip_prefix("--color") {
            Some("") => arguments.next().map(|choice| choice.to_string_lossy().into_owned()),
            Some(choice) => choice.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        if let Some(Ok(choice)) = choice.map(|choice| choice.parse()) {
            choose(choice);
        }
    }
}

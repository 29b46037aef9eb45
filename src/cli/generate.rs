//! `grundy generate`: write man pages, shell completions, or a page with the help texts of all commands.

use super::Cli;
use super::output::{print, refuse_unsuitable_directory, whole_file};
use anyhow::{Context, Result};
use clap::{CommandFactory, Subcommand};
use clap_complete::Shell;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Number of columns of the help texts in Markdown.
const COLUMNS: usize = 100;

/// The beginning of the page in Markdown.
const INTRODUCTION: &str = "# Commands

The help texts of all commands, as `grundy COMMAND --help` prints them. `grundy generate markdown` writes this page, and
`grundy generate man` writes man pages. [BEHAVIOUR.md](BEHAVIOUR.md) describes what all commands have in common:
progress, output files, signals and exit statuses. [GAMES.md](GAMES.md) describes how to write games, numbers and
ranges.
";

/// Arguments of `grundy generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy generate completions bash > grundy.bash\n         \
                  grundy generate man > grundy.1")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write the man page to stdout, or one page per command to a directory.
    #[command(after_help = "Example: grundy generate man -o ~/.local/share/man/man1")]
    Man {
        /// Directory for one page per command [default: write only the page of grundy, to stdout].
        #[arg(short, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Write the help texts of all commands to stdout, as a page of Markdown.
    #[command(after_help = "Example: grundy generate markdown > docs/COMMANDS.md")]
    Markdown,
    /// Write completions for a shell to stdout.
    #[command(after_help = "Example: grundy generate completions fish > ~/.config/fish/completions/grundy.fish")]
    Completions {
        /// Shell to complete for.
        shell: Shell,
    },
}

pub(crate) fn generate(args: &Args) -> Result<()> {
    let mut command = Cli::command();
    match &args.what {
        What::Man { output: None } => print(|mut out| Ok(clap_mangen::Man::new(command).render(&mut out)?)),
        What::Man { output: Some(dir) } => {
            refuse_unsuitable_directory(dir)?;
            std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
            pages(&built(command), dir)
        }
        What::Markdown => print(|mut out| {
            out.write_all(INTRODUCTION.as_bytes())?;
            sections(&built(command.term_width(COLUMNS)), &mut out)
        }),
        What::Completions { shell } => {
            // It panics if it cannot write.
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, "grundy", &mut text);
            print(|out| Ok(out.write_all(&text)?))
        }
    }
}

/// Returns a command whose subcommands know their full names and the global options.
fn built(command: clap::Command) -> clap::Command {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    command
}

/// Writes the section of a command and the sections of its subcommands.
fn sections(command: &clap::Command, out: &mut dyn Write) -> Result<()> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    writeln!(out, "\n## `{name}`\n\n```text")?;
    for line in command.clone().render_long_help().to_string().trim_end().lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "```")?;
    command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
        .try_for_each(|subcommand| sections(subcommand, out))
}

/// Writes the page of a command and the pages of its subcommands.
fn pages(command: &clap::Command, dir: &Path) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        pages(subcommand, dir)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    whole_file(&dir.join(page.get_filename()), |mut out| Ok(page.render(&mut out)?))
}

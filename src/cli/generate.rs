//! `grundy generate`: write man pages or shell completions.

use super::Cli;
use super::output::{print, refuse_run_directory, whole_file};
use anyhow::{Context, Result};
use clap::{CommandFactory, Subcommand};
use clap_complete::Shell;
use std::path::{Path, PathBuf};

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
            refuse_run_directory(dir)?;
            std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
            let mut command = command.disable_help_subcommand(true);
            command.build();
            pages(&command, dir)
        }
        What::Completions { shell } => print(|mut out| {
            clap_complete::generate(*shell, &mut command, "grundy", &mut out);
            Ok(())
        }),
    }
}

/// Writes the page of a command and the pages of its subcommands.
fn pages(command: &clap::Command, dir: &Path) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        pages(subcommand, dir)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    whole_file(&dir.join(page.get_filename()), |mut out| Ok(page.render(&mut out)?))
}

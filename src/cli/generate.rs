//! `grundy generate`: man pages and shell completions.

use super::Cli;
use anyhow::{Context, Result};
use clap::{CommandFactory, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Arguments of `grundy generate`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: grundy generate completions bash > ~/.local/share/bash-completion/completions/grundy\n         \
                        grundy generate man > grundy.1"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The man page to stdout, or one page a command into a directory.
    Man {
        /// Write one page a command here.
        #[arg(short, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Completions for a shell, to stdout.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

pub(crate) fn generate(args: &Args) -> Result<()> {
    let mut command = Cli::command();
    match &args.what {
        What::Man { output: None } => {
            super::export::print(|mut out| Ok(clap_mangen::Man::new(command).render(&mut out)?))
        }
        What::Man { output: Some(dir) } => {
            std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
            clap_mangen::generate_to(command, dir).with_context(|| format!("writing man pages to {}", dir.display()))
        }
        What::Completions { shell } => super::export::print(|mut out| {
            clap_complete::generate(*shell, &mut command, "grundy", &mut out);
            Ok(())
        }),
    }
}

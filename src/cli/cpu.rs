//! `grundy cpu`: list the kernels that this processor can run.

use anyhow::Result;
use grundy::kernel::Kernel;

/// Arguments of `grundy cpu`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy cpu\n\n\
                        JSON keys: kernels (best first) threads")]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn cpu(args: &Args) -> Result<()> {
    let kernels: Vec<&str> = Kernel::available().into_iter().map(Kernel::name).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    super::output::print(|out| {
        if args.json {
            writeln!(out, "{}", serde_json::json!({ "kernels": kernels, "threads": threads }))?;
        } else {
            writeln!(out, "kernels, best first: {}", kernels.join(" "))?;
            writeln!(out, "threads: {threads}")?;
        }
        Ok(())
    })
}

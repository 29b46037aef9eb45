//! The command line of `grundy`; `grundy --help` tells what it does.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

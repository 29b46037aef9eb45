//! The `grundy` program; `grundy --help` lists its commands.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

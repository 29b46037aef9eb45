//! The command line: its grammar, inputs and outputs, and the commands that are not about one run.

mod check;
mod cli;
mod examples;
mod inputs;
mod outputs;
mod publish;
#[path = "../support/mod.rs"]
mod support;
mod survey;
mod tune;
mod units;

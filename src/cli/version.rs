//! `grundy --version`: what this program was built from, and the kernels that it can use.

use grundy::kernel::Kernel;
use std::sync::LazyLock;

/// Version, commit and target: `0.1.0 (commit, target)`. The parser adds the name.
pub(super) fn short() -> &'static str {
    grundy::PROGRAM.trim_start_matches("grundy ")
}

/// The long form: [`short`], and a line each for commit, target, compiler and kernels.
pub(super) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        let usable: Vec<&str> = Kernel::available().into_iter().map(Kernel::name).collect();
        let (commit, target) = commit_and_target(short());
        let lines = [
            ("commit", commit.unwrap_or("unknown").to_owned()),
            ("target", target.to_owned()),
            ("compiler", env!("GRUNDY_COMPILER").to_owned()),
            ("kernels", format!("{} (fastest first)", Kernel::compiled().join(" "))),
            ("usable", format!("{} (by this processor)", usable.join(" "))),
            ("auto", format!("{} (the kernel that --kernel auto chooses)", Kernel::best())),
        ];
        let lines: String = lines.iter().map(|(name, value)| format!("\n{name:<10}{value}")).collect();
        format!("{}{lines}", short())
    });
    &LONG
}

/// The commit, if it is known, and the target in `0.1.0 (commit, target)`.
fn commit_and_target(text: &str) -> (Option<&str>, &str) {
    let details = text.split_once('(').map_or(text, |(_, details)| details.trim_end_matches(')'));
    match details.split_once(", ") {
        Some((commit, target)) => (Some(commit), target),
        None => (None, details),
    }
}

#[cfg(test)]
mod tests {
    use super::commit_and_target;

    #[test]
    fn commit_may_be_missing() {
        assert_eq!(commit_and_target("0.1.0 (0123456789ab+changes, a-b)"), (Some("0123456789ab+changes"), "a-b"));
        assert_eq!(commit_and_target("0.1.0 (a-b)"), (None, "a-b"));
    }
}

//! The class of a machine, as commit records and results of units state it: its architecture and its processor model.

use std::sync::OnceLock;

/// Maximum length of the name of a machine class, in characters. The name that an x86-64 processor states of itself has
/// at most 48.
const LONGEST: usize = 100;

/// Returns the class of this machine: the architecture and the processor model, if the system states it.
pub(crate) fn class() -> &'static str {
    static CLASS: OnceLock<String> = OnceLock::new();
    CLASS.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        named(std::env::consts::ARCH, &info)
    })
}

/// Returns the class of a machine of this architecture with these lines about its processors.
fn named(architecture: &str, info: &str) -> String {
    let field = |key: &str| Some(info.lines().find_map(|line| line.strip_prefix(key)?.split_once(':'))?.1.trim());
    // 64-bit ARM systems state numbers in the place of a model.
    let numbers = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    let model = field("model name").map(Into::into).or_else(numbers).unwrap_or_default();
    let model: String = model.chars().filter(|c| *c == ' ' || c.is_ascii_graphic()).collect();
    format!("{architecture} {model}").trim().chars().take(LONGEST).collect()
}

/// Architectures with which a class can begin, as `std::env::consts::ARCH` names them.
const ARCHITECTURES: [&str; 13] = [
    "x86",
    "x86_64",
    "arm",
    "aarch64",
    "loongarch64",
    "mips",
    "mips64",
    "powerpc",
    "powerpc64",
    "riscv32",
    "riscv64",
    "s390x",
    "sparc64",
];

/// Whether these are the classes of two machines that cannot be the same: of different architectures, or of different
/// models. A class without a model matches every machine of its architecture; one without an architecture, as a user
/// may type it, every machine of its model. A model that begins with the words of the other may be the same one: a
/// hypervisor can hide the last words. Blanks and case are ignored.
pub(crate) fn are_different(one: &str, other: &str) -> bool {
    let [one, other] =
        [one, other].map(|class| class.split_whitespace().map(str::to_ascii_lowercase).collect::<Vec<_>>());
    let ((one, model), (other, other_model)) = (parts(&one), parts(&other));
    let is_of_other_model = model.iter().zip(other_model).any(|(one, other)| one != other);
    is_of_other_model || one.zip(other).is_some_and(|(one, other)| one != other)
}

/// The architecture, if the words of a class begin with one, and the words of the model.
fn parts(class: &[String]) -> (Option<&str>, &[String]) {
    match class.split_first() {
        Some((first, model)) if ARCHITECTURES.contains(&first.as_str()) => (Some(first), model),
        _ => (None, class),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_is_the_architecture_and_the_model_if_stated() {
        let info = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9B45\u{7}\nprocessor\t: 1\n";
        assert_eq!(named("x86_64", info), "x86_64 AMD EPYC 9B45");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(named("aarch64", arm), "aarch64 implementer 0x41 part 0xd0c");
        assert_eq!(named("aarch64", ""), "aarch64");
        assert_eq!(named("x86_64", &format!("model name : {}", "x".repeat(300))).len(), LONGEST);
    }

    #[test]
    fn machine_without_a_model_may_be_any_of_its_architecture() {
        assert!(!are_different("A", "x86_64 A") && !are_different("x86_64 A", "A") && are_different("B", "x86_64 A"));
        // A model of several words, as a user types it, names no architecture.
        assert!(!are_different("x86_64 AMD EPYC", "X86_64  amd epyc ") && !are_different(" ", "x86_64 AMD EPYC"));
        assert!(!are_different("x86_64 AMD EPYC", "x86_64 AMD EPYC 9B45"), "a hypervisor hides the model number");
        assert!(are_different("x86_64 AMD EPYC 9B45", "x86_64 AMD EPYC 9654"));
        assert!(!are_different("AMD EPYC", "x86_64") && !are_different("AMD EPYC", "x86_64 AMD EPYC"));
        assert!(are_different("AMD EPYC", "x86_64 AMD Ryzen") && are_different("AMD EPYC", "AMD Ryzen"));
        let classes = ["x86_64", "x86_64 A", "x86_64 B", "aarch64"];
        let pairs = classes.map(|one| classes.map(|other| are_different(one, other)));
        let expected = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, false, true],
            [true, true, true, false],
        ];
        assert_eq!(pairs, expected);
    }
}

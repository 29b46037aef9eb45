//! The moves of a rule in words.

use super::rule::{LISTED, Leaves, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of ranges of removals in a phrase about a rule whose removals have no bound.
const SHOWN: usize = 6;

/// The moves of a rule in words. Moves that leave the same and add the same constant share a phrase; the phrases are in
/// the order of their least removals.
///
/// ```
/// use grundy::theory::words::moves_in_words;
///
/// let words = |game: &str| moves_in_words(&game.parse().unwrap());
/// assert_eq!(words("kayles"), ["remove 1 or 2 tokens and leave no heap, one heap or two heaps"]);
/// assert_eq!(words("grundy"), ["split a heap into two unequal heaps"]);
/// assert_eq!(words("4.03"), ["split a heap into two heaps", "remove 2 tokens and leave no heap or one heap"]);
/// ```
#[must_use]
pub fn moves_in_words(rule: &Rule) -> Vec<String> {
    let mut kinds: BTreeMap<(u64, u16), BTreeSet<Leaves>> = BTreeMap::new();
    for m in rule.moves() {
        kinds.entry((m.remove, m.constant)).or_default().insert(m.leaves);
    }
    let mut groups: BTreeMap<(u16, BTreeSet<Leaves>, bool), Vec<u64>> = BTreeMap::new();
    for ((remove, constant), leaves) in kinds {
        groups.entry((constant, leaves, remove == 0)).or_default().push(remove);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((constant, ..), removals)| (removals[0], *constant));
    let phrases = groups.iter().map(|((constant, leaves, _), removals)| {
        let numbers = match repeating(rule) {
            Some((before, group)) if removals[removals.len() - 1] > before => endless(removals, group),
            _ => numbers(removals),
        };
        phrase(removals, &numbers, *constant, leaves)
    });
    phrases.collect()
}

/// One phrase: the moves that remove these numbers of tokens.
fn phrase(removals: &[u64], numbers: &str, constant: u16, leaves: &BTreeSet<Leaves>) -> String {
    let left = one_of(&leaves.iter().map(heaps).collect::<Vec<String>>());
    let what = match removals {
        [0] => format!("split a heap into {left}"),
        [1] => format!("remove 1 token and leave {left}"),
        _ => format!("remove {numbers} tokens and leave {left}"),
    };
    match constant {
        0 => what,
        constant => format!("{what}, and add a position of nim-value {constant}"),
    }
}

/// What a move leaves.
fn heaps(leaves: &Leaves) -> String {
    match leaves {
        Leaves::Nothing => "no heap".to_owned(),
        Leaves::One => "one heap".to_owned(),
        Leaves::Two { min_difference: 0 } => "two heaps".to_owned(),
        Leaves::Two { min_difference: 1 } => "two unequal heaps".to_owned(),
        Leaves::Two { min_difference } => format!("two heaps that differ by at least {min_difference}"),
        Leaves::Three => "three heaps".to_owned(),
    }
}

/// Ascending numbers as a choice, with runs of three and more as ranges: `1, 3 or 5 to 9`.
fn numbers(ascending: &[u64]) -> String {
    one_of(&ranges(ascending).collect::<Vec<String>>())
}

/// Of a code that repeats, `4.12(37)`: the number of digits after the point that do not repeat, and of those that do.
fn repeating(rule: &Rule) -> Option<(u64, usize)> {
    rule.largest_heap()?;
    if rule.is_nim() {
        return Some((0, 1)); // .(3)
    }
    let (before, group) = rule.name().split_once('.')?.1.split_once('(')?;
    Some((before.len() as u64, group.trim_end_matches(')').len()))
}

/// The first of the ascending removals of a code whose last `group` digits repeat: `2, 3 or at least 5`, or
/// `1, 3, 5, 7, 9, 11, …`.
fn endless(ascending: &[u64], group: usize) -> String {
    let runs: Vec<&[u64]> = ascending.chunk_by(|a, b| a + 1 == *b).collect();
    match runs.split_last() {
        // A run that covers the digits that repeat and ends with the last listed removal.
        Some((last, first)) if last.len() >= group && last.last() == Some(&LISTED) => {
            let last = if first.is_empty() { format!("{} or more", last[0]) } else { format!("at least {}", last[0]) };
            one_of(&first.iter().flat_map(|run| ranges(run)).chain([last]).collect::<Vec<String>>())
        }
        // The last run may go on beyond the last listed removal.
        Some((last, first)) if !first.is_empty() && last.last() == Some(&LISTED) => {
            some(&ascending[..ascending.len() - last.len()])
        }
        _ => some(ascending),
    }
}

/// The first runs of ascending numbers that go on.
fn some(ascending: &[u64]) -> String {
    format!("{}, …", ranges(ascending).take(SHOWN).collect::<Vec<String>>().join(", "))
}

/// The runs of ascending numbers; a run of two is two numbers.
fn ranges(ascending: &[u64]) -> impl Iterator<Item = String> {
    ascending.chunk_by(|a, b| a + 1 == *b).flat_map(|run| match run {
        [first, _, .., last] if run.len() > 2 => vec![format!("{first} to {last}")],
        few => few.iter().map(u64::to_string).collect(),
    })
}

/// A choice: `a, b or c`.
fn one_of(choices: &[String]) -> String {
    match choices {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::random::split_mix;
    use crate::theory::rule::Move;

    /// The moves that a phrase states, read word by word.
    fn moves_of(phrase: &str) -> Vec<Move> {
        let (phrase, constant) = phrase.split_once(", and add a position of nim-value ").unwrap_or((phrase, "0"));
        let (removals, left) = match phrase.strip_prefix("split a heap into ") {
            Some(left) => (vec![0], left),
            None => {
                let phrase = phrase.strip_prefix("remove ").unwrap();
                let (removals, left) = phrase.split_once(" and leave ").unwrap();
                let removals = removals.strip_suffix(" tokens").or(removals.strip_suffix(" token")).unwrap();
                (removals.replace(" or ", ", ").split(", ").flat_map(range_of).collect(), left)
            }
        };
        let left = left.replace(" or ", ", ");
        let leaves: Vec<Leaves> = left.split(", ").map(leaves_of).collect();
        let constant = constant.parse().unwrap();
        let each = |remove| leaves.iter().map(move |&leaves| Move { remove, constant, leaves });
        removals.into_iter().flat_map(each).collect()
    }

    fn range_of(text: &str) -> std::ops::RangeInclusive<u64> {
        let (first, last) = text.split_once(" to ").unwrap_or((text, text));
        first.parse().unwrap()..=last.parse().unwrap()
    }

    fn leaves_of(text: &str) -> Leaves {
        match text {
            "no heap" => Leaves::Nothing,
            "one heap" => Leaves::One,
            "two heaps" => Leaves::Two { min_difference: 0 },
            "two unequal heaps" => Leaves::Two { min_difference: 1 },
            "three heaps" => Leaves::Three,
            other => {
                let (_, difference) = other.split_once("two heaps that differ by at least ").unwrap();
                Leaves::Two { min_difference: difference.parse().unwrap() }
            }
        }
    }

    #[test]
    fn words_state_exactly_the_moves_of_the_rule() {
        let named = ["grundy", "grundy:d=0", "grundy:d=7", "remove-a-square", "4.0", "0.0"].map(str::to_owned);
        let random = (0..300).map(|i| {
            let random = split_mix(2026, i);
            format!("{:X}.{:07X}", random >> 60 & 12, random % 16u64.pow(7))
        });
        for code in named.into_iter().chain(random) {
            let rule: Rule = code.parse().unwrap();
            let moves = moves_in_words(&rule).iter().flat_map(|phrase| moves_of(phrase)).collect();
            assert_eq!(Rule::from_moves(rule.name(), moves).unwrap(), rule, "{code}: {:?}", moves_in_words(&rule));
        }
    }

    #[test]
    fn removals_without_end_are_stated() {
        assert_eq!(moves_in_words(&Rule::nim()), ["remove 1 or more tokens and leave no heap or one heap"]);
        for (code, words) in [
            ("allbut:1,4", "remove 2, 3 or at least 5 tokens and leave no heap or one heap"),
            (".(12)", "remove 1, 3, 5, 7, 9, 11, … tokens and leave no heap"),
            (".3(01)", "remove 1 token and leave no heap or one heap"),
        ] {
            assert_eq!(moves_in_words(&code.parse().unwrap())[0], words, "{code}");
        }
        assert_eq!(
            moves_in_words(&".3033303".parse().unwrap())[0].split(" and").next(),
            Some("remove 1, 3 to 5 or 7 tokens")
        );
    }

    #[test]
    fn removals_of_long_codes_are_endless_only_where_their_digits_repeat() {
        let (ones, zeros) = ("1".repeat(40_000), "0".repeat(40_000));
        for (code, expected) in [
            (
                format!(".{ones}(2)"),
                vec!["remove 1 to 40000 tokens and leave no heap", "remove 40001 or more tokens and leave one heap"],
            ),
            (format!(".({zeros}{})", "1".repeat(20_000)), vec!["remove 40001 to 60000, … tokens and leave no heap"]),
            (
                format!(".({}0)", "1".repeat(30_000)),
                vec!["remove 1 to 30000, 30002 to 60001, … tokens and leave no heap"],
            ),
        ] {
            assert_eq!(moves_in_words(&code.parse().unwrap()), expected);
        }
    }
}

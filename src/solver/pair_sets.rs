//! Values of rules with moves that leave three heaps, and of codes with splits that repeat, from sets of the values of
//! pairs.
//!
//! For each m the solver holds the set P(m) of all G(a) ^ G(b) with a + b = m and a, b >= 1. The options of n that a
//! split without a least difference leaves are c ^ P(n - s). A move that leaves three heaps has the option v exactly if
//! v ^ c ^ G(a) is in P(n - s - a) for some a >= 1, and then for some a <= (n - s)/3, because the smallest of three
//! heaps is at most a third. So whether 64 consecutive values are options takes at most (n - s)/3 words of these sets,
//! each with its bits permuted, instead of (n - s)²/12 comparisons; the mex takes one such search for every 64 values
//! up to it.
//!
//! P(m) takes about as many bits as the largest value below m.
//!
//! A code whose repeated digits all allow a split, such as `.(7)`, has a split for every number of removed tokens from
//! some number f on. These splits leave the options P(0) ∪ … ∪ P(n - f): one set joins for each n.
//!
//! Invariant: P(m) is there for all m up to the number of values, and does not change.

use super::checksums::Checked;
use super::removals::OptionCounts;
use super::window::Window;
use crate::error::{Error, Result};
use crate::theory::definition::Sequence;
use crate::theory::nimber::{NimSet, index};
use crate::theory::rule::{Rule, Split, Triple};

/// The splits that remove `first` tokens or more, whatever the number.
struct EndlessSplits {
    /// The least number of tokens that they remove.
    first: u64,
    /// The values of the options that they leave of the next heap.
    options: Checked<NimSet>,
}

impl EndlessSplits {
    /// The splits of a rule, if it has one for every number of removed tokens from some number on. `None` if any split
    /// has a constant or a least difference.
    fn of(rule: &Rule) -> Option<EndlessSplits> {
        let largest = rule.largest_heap()?;
        if rule.splits().any(|split| split.constant != 0 || split.min_difference != 0) {
            return None;
        }
        let removals: Vec<u64> = rule.splits().map(|split| split.remove).collect();
        let run = removals.iter().rev().zip((0..=largest).rev()).take_while(|(removal, expected)| *removal == expected);
        run.last().map(|(&first, _)| EndlessSplits { first, options: Checked::new(NimSet::new()) })
    }

    /// Goes on to the next heap, of `n` tokens, where `pairs` holds P(0), P(1), …
    fn advance(&mut self, n: u64, pairs: &[Checked<NimSet>]) {
        let Some(m) = n.checked_sub(self.first) else { return };
        let joining = &pairs[index(m)];
        if joining.first_outside(&self.options).is_some() {
            let mut options = NimSet::clone(&self.options);
            options.union(joining);
            self.options.replace(options);
        }
    }
}

/// All values of a sequence, and the sets of the values of pairs.
pub(super) struct PairSets {
    values: Window<u16>,
    /// P(0), P(1), …
    pairs: Vec<Checked<NimSet>>,
    /// The options of the next heap by moves with k = 0 or 1, where counting them pays.
    counts: Option<OptionCounts>,
    /// The splits that remove any number of tokens from some number on, if the rule has them.
    endless: Option<EndlessSplits>,
}

impl PairSets {
    /// Continues `past`, which must be complete.
    pub(super) fn new(rule: &Rule, past: &dyn Sequence) -> Result<PairSets> {
        let mut values = vec![0; index(past.len())];
        past.read(0, &mut values)?;
        let counts = OptionCounts::pay(rule).then(|| OptionCounts::of(rule, 0, |m| values[index(m)]));
        let endless = EndlessSplits::of(rule);
        let mut sets = PairSets { values: Window::new(0, Vec::new()), pairs: Vec::new(), counts, endless };
        sets.push_pairs();
        for value in values {
            sets.push(rule, value);
        }
        Ok(sets)
    }

    /// Compares the data in memory with the values of `past` and with the checksums.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory(&self, rule: &Rule, past: &dyn Sequence) -> Result<()> {
        self.values.agrees_with(past)?;
        if let Some(counts) = &self.counts {
            counts.check_memory(rule, |m| self.values.get(m))?;
        }
        if self.endless.as_ref().is_some_and(|endless| !endless.options.is_intact()) {
            let n = self.values.end();
            return Err(Error::Flipped { what: "the options of all splits", from: n, to: n + 1 });
        }
        match self.pairs.iter().position(|set| !set.is_intact()) {
            None => Ok(()),
            Some(m) => Err(Error::Flipped { what: "the values of all pairs", from: m as u64, to: m as u64 + 1 }),
        }
    }

    /// Appends the next values, none from position `limit` on: one batch, short enough that the caller can stop in
    /// time.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`] when a value is above 65535, and [`Error::Unlisted`] when not all moves of a heap are
    /// listed.
    pub(super) fn advance(&mut self, rule: &Rule, limit: u64, out: &mut Vec<u16>) -> Result<()> {
        /// Maximum number of lookups, pairs and words of sets per batch: a fraction of a second.
        const BATCH: u64 = 1 << 26;
        let mut work = 0;
        while self.values.end() < limit && work < BATCH {
            let n = self.values.end();
            rule.check_heap(n)?;
            let value = self.mex(rule, n, &mut work).ok_or(Error::ValueTooLarge { n })?;
            out.push(value);
            self.push(rule, value);
            work += n;
        }
        Ok(())
    }

    /// G(n) for the next n; `None` if it is above 65535.
    fn mex(&self, rule: &Rule, n: u64, work: &mut u64) -> Option<u16> {
        let mut options = NimSet::new();
        match &self.counts {
            Some(counts) => options.union(counts.set()),
            None => options.extend(rule.single_options(n, |m| self.values.get(m))),
        }
        let mut end = n;
        if let Some(endless) = &self.endless {
            options.union(&endless.options);
            end = end.min(endless.first);
        }
        for split in rule.splits().take_while(|split| split.remove < end) {
            self.add_split(n, split, &mut options);
            *work += 16 + options.words();
        }
        // 64 values at a time.
        for at in 0..1 << 10 {
            let mut seen = options.word(at);
            for triple in rule.triples().take_while(|triple| triple.remove < n) {
                seen = self.with_triples(n, triple, at, seen);
                *work += n / 3;
            }
            if seen != u64::MAX {
                return u16::try_from(64 * at + index(seen.trailing_ones().into())).ok();
            }
        }
        None
    }

    /// Adds the values of the options of a split.
    fn add_split(&self, n: u64, split: Split, options: &mut NimSet) {
        let Split { remove, constant, min_difference } = split;
        if constant == 0 && min_difference == 0 {
            return options.union(&self.pairs[index(n - remove)]);
        }
        let parts = 1..=split.largest_small_part(n);
        options.extend(parts.map(|a| constant ^ self.values.get(a) ^ self.values.get(n - remove - a)));
    }

    /// Adds the options of a move that leaves three heaps to `seen`, a set of the values from 64 `at` on, until it has
    /// all 64.
    fn with_triples(&self, n: u64, triple: Triple, at: usize, mut seen: u64) -> u64 {
        let left = n - triple.remove;
        for a in 1..=left / 3 {
            if seen == u64::MAX {
                break;
            }
            let sum = triple.constant ^ self.values.get(a);
            let pairs = self.pairs[index(left - a)].word(at ^ usize::from(sum >> 6));
            seen |= with_nim_sums(pairs, sum % 64);
        }
        seen
    }

    fn push(&mut self, rule: &Rule, value: u16) {
        self.values.push(value);
        if let Some(counts) = &mut self.counts {
            counts.advance(rule, |m| self.values.get(m));
        }
        self.push_pairs();
    }

    /// Adds the set of the pairs whose sum is the number of values.
    fn push_pairs(&mut self) {
        let values = self.values.items();
        let m = values.len();
        let mut set = NimSet::new();
        set.extend((1..=m / 2).map(|a| values[a] ^ values[m - a]));
        self.pairs.push(Checked::new(set));
        if let Some(endless) = &mut self.endless {
            endless.advance(m as u64, &self.pairs);
        }
    }
}

/// The set of the nim-sums v ^ `sum` of the values v of a set, all below 64.
pub(super) fn with_nim_sums(set: u64, sum: u16) -> u64 {
    /// For each bit of a value, the set of the values below 64 that do not have it.
    const WITHOUT: [u64; 6] = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f,
        0x00ff_00ff_00ff_00ff,
        0x0000_ffff_0000_ffff,
        0x0000_0000_ffff_ffff,
    ];
    let bits = WITHOUT.iter().enumerate().filter(|(bit, _)| sum >> bit & 1 == 1);
    bits.fold(set, |set, (bit, without)| (set & without) << (1 << bit) | (set >> (1 << bit)) & without)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{self, Method, values};
    use crate::theory::definition;
    use crate::theory::random::split_mix;
    use crate::theory::rule::{Leaves, Move};

    /// The mex over all options, from the digits of the code alone: three nested loops over the heaps that are left.
    fn brute_force(digits: impl Fn(usize) -> u32, count: usize) -> Vec<u16> {
        let mut values: Vec<u16> = Vec::new();
        for n in 0..count {
            let mut options = vec![false; 1 << 12];
            for s in 0..=n {
                let (digit, left) = (digits(s), n - s);
                if digit & 1 > 0 && left == 0 {
                    options[0] = true;
                }
                if digit & 2 > 0 && left > 0 && s > 0 {
                    options[usize::from(values[left])] = true;
                }
                for a in 1..left {
                    if digit & 4 > 0 {
                        options[usize::from(values[a] ^ values[left - a])] = true;
                    }
                    for b in (1..left - a).filter(|_| digit & 8 > 0) {
                        options[usize::from(values[a] ^ values[b] ^ values[left - a - b])] = true;
                    }
                }
            }
            values.push(u16::try_from(options.iter().position(|&seen| !seen).unwrap()).unwrap());
        }
        values
    }

    #[test]
    fn hexadecimal_codes_agree_with_a_brute_force_over_three_heaps() {
        for i in 0..50 {
            let random = split_mix(2027, i);
            let whole = [0u32, 4, 8, 12][(random >> 60) as usize % 4];
            let after: Vec<u32> = (0..1 + (random >> 56) % 4).map(|s| (random >> (4 * s)) as u32 % 16).collect();
            let written: String = after.iter().map(|digit| format!("{digit:X}")).collect();
            let rule: Rule = format!("{whole:X}.{written}").parse().unwrap();
            let digits = |s: usize| if s == 0 { whole } else { after.get(s - 1).copied().unwrap_or(0) };
            let count = 300;
            let expected = brute_force(digits, count);
            assert_eq!(definition::values(&rule, count).unwrap(), expected, "{rule}");
            assert_eq!(values(&rule, Method::default(), count).unwrap(), expected, "{rule}");
            assert_eq!(
                definition::value_at(&rule, &&expected[..count - 1], count as u64 - 1).unwrap(),
                expected[count - 1]
            );
        }
    }

    #[test]
    fn codes_that_repeat_agree_with_a_brute_force() {
        for (code, before, group) in [
            ("4.(3)", &[4][..], &[3u32][..]),
            (".(7)", &[0], &[7]),
            (".1(25)", &[0, 1], &[2, 5]),
            (".(0F)", &[0], &[0, 15]),
            ("4.3(7)", &[4, 3], &[7]),
            (".04(F7)", &[0, 0, 4], &[15, 7]),
            ("8.0330(3)", &[8, 0, 3, 3, 0], &[3]),
        ] {
            let digits = |s: usize| before.get(s).copied().unwrap_or_else(|| group[(s - before.len()) % group.len()]);
            let rule: Rule = code.parse().unwrap();
            let expected = brute_force(digits, 100);
            assert_eq!(definition::values(&rule, 100).unwrap(), expected, "{code}");
            assert_eq!(values(&rule, Method::default(), 100).unwrap(), expected, "{code}");
            for known in [1, 2, 3, 50, 99] {
                let begun = expected[..known].to_vec();
                let resumed = solver::extend(&rule, Method::default(), begun, 100, |_| true).unwrap();
                assert_eq!(resumed, expected, "{code} from {known} on");
            }
        }
    }

    #[test]
    fn lasker_values_are_those_of_winning_ways() {
        // Chapter 4: G(4k + 1) = 4k + 1, G(4k + 2) = 4k + 2, G(4k + 3) = 4k + 4, G(4k + 4) = 4k + 3.
        let lasker = values(&"lasker".parse().unwrap(), Method::default(), 1001).unwrap();
        for n in 1u16..=1000 {
            let expected = match n % 4 {
                3 => n + 1,
                0 => n - 1,
                _ => n,
            };
            assert_eq!(lasker[usize::from(n)], expected, "{n}");
        }
    }

    #[test]
    fn constants_and_differences_beside_three_heaps_agree_with_the_definition() {
        let three = |remove, constant| Move { remove, constant, leaves: Leaves::Three };
        let two = |remove, constant, min_difference| Move { remove, constant, leaves: Leaves::Two { min_difference } };
        let moves = vec![three(0, 5), three(2, 0), two(1, 0, 3), two(2, 9, 0), two(3, 0, 0)];
        let rule = Rule::from_moves("mixed", moves).unwrap();
        assert_eq!(values(&rule, Method::default(), 400).unwrap(), definition::values(&rule, 400).unwrap());
    }

    #[test]
    fn nim_sums_of_a_set_are_those_of_its_values() {
        for sum in 0..64u16 {
            let set = split_mix(5, sum.into());
            let expected = (0..64u16).filter(|v| set >> v & 1 == 1).fold(0, |sums, v| sums | 1u64 << (v ^ sum));
            assert_eq!(with_nim_sums(set, sum), expected, "{sum}");
        }
    }

    #[test]
    fn a_flipped_bit_in_a_set_is_reported() {
        let rule = "4.3(7)".parse().unwrap();
        let past = values(&rule, Method::default(), 100).unwrap();
        let sets = || PairSets::new(&rule, &past).unwrap();
        sets().check_memory(&rule, &past).unwrap();
        let flips: [fn(&mut PairSets); 4] = [
            |sets| sets.pairs[77].value_mut().toggle(60),
            |sets| sets.endless.as_mut().unwrap().options.value_mut().toggle(1),
            |sets| sets.endless.as_mut().unwrap().options.value_mut().toggle(130),
            |sets| *sets.values.items_mut().last_mut().unwrap() ^= 1,
        ];
        for flip in flips {
            for limit in [100, 101, 150] {
                let (mut flipped, mut values) = (sets(), past.clone());
                flip(&mut flipped);
                flipped.advance(&rule, limit, &mut values).unwrap();
                let seen = flipped.check_memory(&rule, &values);
                assert!(matches!(seen, Err(Error::Flipped { .. })), "up to {limit}: {seen:?}");
            }
        }
    }
}

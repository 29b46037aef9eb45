//! The random numbers of sampling: SplitMix64, the same numbers for a seed on every machine.

/// Returns number `i`, counted from 0, of the SplitMix64 generator with this seed (G. L. Steele, D. Lea and C. H.
/// Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014).
///
/// The state of this generator is a counter, so any of its numbers can be computed without those before it.
pub(crate) fn split_mix(seed: u64, i: u64) -> u64 {
    /// The step of the counter.
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    let z = seed.wrapping_add(i.wrapping_add(1).wrapping_mul(GAMMA));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' program (`splitmix64.c` by S. Vigna) for the seed 1234567.
    #[test]
    fn numbers_are_those_of_the_published_generator() {
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (i, number) in (0..).zip(published) {
            assert_eq!(split_mix(1_234_567, i), number);
        }
    }
}

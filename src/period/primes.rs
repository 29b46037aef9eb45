//! Finds the prime factors of a period, and tests whether a list of numbers is the complete list of them.
//!
//! A period found by this program is at most the number of values computed, so trial division finds its factors
//! quickly. A certificate can state any number below 2^64 as period. For such a number the listed factors are tested
//! for primality instead, which is fast for every number.

use crate::theory::nimber::index;

/// Returns the prime factors of `p`, ascending, each once; none for 0 and 1.
pub(super) fn prime_factors(p: u64) -> Vec<u64> {
    let mut rest = p;
    let mut f = 2;
    let mut factors = Vec::new();
    while rest > 1 && f <= rest / f {
        if rest.is_multiple_of(f) {
            factors.push(f);
            rest = without(rest, f);
        }
        f += 1;
    }
    if rest > 1 {
        factors.push(rest);
    }
    factors
}

/// Whether `factors` is what [`prime_factors`] returns for `p`, decided without factoring `p`.
pub(super) fn are_prime_factors(factors: impl IntoIterator<Item = u64>, p: u64) -> bool {
    let mut rest = p;
    let mut last = 1;
    for f in factors {
        if f <= last || !rest.is_multiple_of(f) || !is_prime(f) {
            return false;
        }
        (rest, last) = (without(rest, f), f);
    }
    rest == 1
}

/// Divides `n`, which is not 0, by `f` until it is no longer a multiple of `f`.
fn without(mut n: u64, f: u64) -> u64 {
    while n.is_multiple_of(f) {
        n /= f;
    }
    n
}

/// Whether `n` is prime, by the test of Miller and Rabin with the first twelve primes as bases. It decides every
/// number below 3.1·10^23 (J. Sorenson and J. Webster, *Strong pseudoprimes to twelve prime bases*, Math. Comp. 86,
/// 2017).
fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    if let Some(base) = BASES.into_iter().find(|&base| n.is_multiple_of(base)) {
        return n == base;
    }
    let twos = u64::from((n - 1).trailing_zeros());
    let odd = (n - 1) >> twos;
    BASES.into_iter().all(|base| {
        let first = power(base, odd, n);
        let mut squares = std::iter::successors(Some(first), |&x| Some(product(x, x, n))).take(index(twos));
        first == 1 || squares.any(|x| x == n - 1)
    })
}

/// Returns `a`·`b` modulo `n`.
fn product(a: u64, b: u64, n: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) % u128::from(n)).expect("a remainder is below the divisor")
}

/// Returns `base` to the power `exponent`, modulo `n`.
fn power(base: u64, mut exponent: u64, n: u64) -> u64 {
    let mut base = base % n;
    let mut result = 1;
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = product(result, base, n);
        }
        base = product(base, base, n);
        exponent /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primality_agrees_with_a_sieve_and_with_known_hard_numbers() {
        let mut composite = vec![false; 100_000];
        for i in 2..composite.len() {
            assert_eq!(is_prime(i as u64), !composite[i], "{i}");
            (i * i..composite.len()).step_by(i).for_each(|multiple| composite[multiple] = true);
        }
        assert!(!is_prime(0) && !is_prime(1));
        // OEIS A014233: the least strong pseudoprimes to the first k prime bases.
        for n in [2047, 1_373_653, 25_326_001, 3_215_031_751, 2_152_302_898_747, 341_550_071_728_321] {
            assert!(!is_prime(n), "{n}");
        }
        assert!(!is_prime(3_825_123_056_546_413_051) && !is_prime(u64::MAX));
        // The largest primes below 2^64 and below 2^63, and the Mersenne prime 2^61 - 1.
        for n in [18_446_744_073_709_551_557, 9_223_372_036_854_775_783, (1 << 61) - 1] {
            assert!(is_prime(n), "{n}");
        }
    }

    #[test]
    fn a_list_is_accepted_exactly_when_it_has_all_prime_factors() {
        for p in 1..5000 {
            let factors = prime_factors(p);
            assert!(factors.iter().all(|&f| is_prime(f) && p.is_multiple_of(f)), "{p}");
            assert!(are_prime_factors(factors.iter().copied(), p), "{p}");
            for i in 0..factors.len() {
                let mut other = factors.clone();
                other.remove(i);
                assert!(!are_prime_factors(other.iter().copied(), p), "{p} without {}", factors[i]);
                other.insert(i, factors[i] + 1);
                assert!(!are_prime_factors(other, p), "{p} with {}", factors[i] + 1);
            }
            assert!(!are_prime_factors(factors.iter().copied().chain([1]), p), "{p}");
        }
        assert!(!are_prime_factors([4], 4) && !are_prime_factors([3, 2], 6) && !are_prime_factors([2, 2], 4));
        assert!(!are_prime_factors([0], 4) && !are_prime_factors([], 0) && are_prime_factors([], 1));
    }
}

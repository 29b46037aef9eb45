//! Sums of games: a move in a sum is a move in one of its games, and the nim-value of the sum is the digital sum
//! (XOR, [`nim_sum`]) of the nim-values of the games. (M. Dufour, *The Grundy theorem for combinatorial games*, 2007,
//! sections 3 to 7.)
//!
//! The proof uses a theorem that finds a move: if x1, …, xn have the digital sum c, then for every d < c some xi can
//! be lowered to an xi' so that the sum becomes d. *Proof.* The only xi' that gives the sum d is xi ^ c ^ d. The
//! highest binary digit in which c and d differ is 1 in c, hence 1 in an odd number of the xi, and exactly for these
//! xi' < xi. ∎

use crate::theory::nimber::nim_sum;

/// Returns all ways to lower one of the values so that the digital sum becomes `target`, as pairs of the index of the
/// value and the lower value. There is an odd number of ways when `target` is below the sum, and none when it equals
/// the sum.
///
/// With target 0 these are the winning moves of Nim.
///
/// ```
/// use grundy::games::sum::lowered;
/// assert_eq!(lowered(&[39, 35, 25, 14], 0), [(2, 10)]); // take 15 of the third heap
/// ```
#[must_use]
pub fn lowered(values: &[u16], target: u16) -> Vec<(usize, u16)> {
    let change = nim_sum(values.iter().copied()) ^ target;
    let changed = values.iter().enumerate().map(|(at, &value)| (at, value, value ^ change));
    changed.filter(|&(_, value, lower)| lower < value).map(|(at, _, lower)| (at, lower)).collect()
}

//! Four theorems that prove a period, with their proofs, and the functions that test their premises.
//!
//! A table of N values shows G(n + p) = G(n) only for n < N - p. That it holds for all n >= n0 follows from these
//! theorems. They apply to rules whose moves are all listed, not to codes that repeat.
//!
//! **Notation.** The moves of a rule are (s, c, k, d) as in [`crate::theory::rule`]. t is the greatest s of all moves.
//! Where no move is named, d is the greatest d of all moves. A *part* is a heap that a split leaves; a <= b are the two
//! parts of one split. Each proof shows by induction on N that the options of N and of N + p have the same values; then
//! G(N + p) = G(N), because equal sets have the same mex. Options are compared under the same move, so the constant c
//! is the same on both sides and is not mentioned.
//!
//! **P1** (for k <= 2: Guy and Smith, *The G-values of various games*, 1956). Every split of the rule has d = 0, and no
//! move leaves more than K heaps, K >= 2. If n0 >= 1 and G(n+p) = G(n) for n0 <= n < K n0 + (K - 1) p + t, then
//! G(n+p) = G(n) for all n >= n0.
//!
//! *Proof.* Let N >= K n0 + (K - 1) p + t, and let G(n+p) = G(n) for n0 <= n < N. k = 0: N > t, so neither N nor N + p
//! has such an option. k >= 1: the largest heap b that an option of N leaves has b >= (N - s)/k >= n0, since N - s >= K
//! n0 and k <= K, and b <= N - s. If b < N, then G(b+p) = G(b), and the option of N + p that leaves b + p instead of b
//! has the same value. b = N would be k = 1 with s = 0, which is no move. The largest heap b that an option of N + p
//! leaves has b >= (N + p - s)/k >= n0 + p, since N + p - s >= K (n0 + p). So b - p >= n0 >= 1 is a heap, and b - p <
//! N, because b <= N + p - s, with equality only for k = 1, where s >= 1. So G(b) = G(b-p), and the option of N that
//! leaves b - p instead of b has the same value. ∎ (The proof needs n0 >= 1: with n0 = 0 the heap b - p may be empty,
//! and the rule may not allow leaving one heap less.)
//!
//! **P2**, for Grundy's game: one split, s = 0, c = 0, d = 1. If G(n) != 0 for n0 <= n < n0 + p and G(n+p) = G(n) for
//! n0 <= n <= 2 n0 + p - 2, then G(n+p) = G(n) for all n >= n0.
//!
//! *Proof.* Let N >= 2 n0 + p - 1, and let G(n+p) = G(n) for n0 <= n < N. An option (a, b) of N, a < b, has
//! b >= (N+1)/2 >= n0, so (a, b+p) is an option of N + p with the same value. An option (a, b) of N + p, a < b, has
//! b >= (N+p+1)/2 >= n0 + p. So b - p >= n0 (and n0 is not 0, because G(0) = 0 but G(n0) != 0), G(b-p) = G(b),
//! and (a, b-p) is an option of N with the same value, unless a = b - p. In that case the value of the option is
//! G(b) ^ G(b-p) = 0, and N has an option of value 0, because G(N) = G(N-p) = … is a value of the period, and none of
//! these is 0. ∎
//!
//! **P3**, for any rule whose moves leave at most two heaps. Let M be the greatest s + d (d = 0 for k < 2). If n0 >= 1
//! and G(n+p) = G(n) for n0 <= n <= 2 n0 + 2 p + M - 2, then G(n+p) = G(n) for all n >= n0.
//!
//! *Proof.* Let N >= 2 n0 + 2 p + M - 1, and let G(n+p) = G(n) for n0 <= n < N. k = 0 and k = 1 as in P1, since
//! M >= s. k = 2: an option (a, b) of N, a <= b, has n0 <= b < N, and (a, b+p) is an option of N + p with the same
//! value; its parts differ by more. An option (a, b) of N + p, a <= b, has b >= (N+p-s)/2 >= n0 + p, so
//! G(b-p) = G(b). If |b - p - a| >= d, then (a, b-p) is an option of N with the same value. Otherwise
//! b - a <= p + d - 1, so a = (N + p - s - (b-a))/2 >= (N - s - d + 1)/2 >= n0 + p and G(a-p) = G(a); then (a-p, b),
//! whose parts differ by p more than those of (a, b), is an option of N with the same value. ∎
//!
//! **P4**, the window theorem, needs about n0 + p values instead of 2 (n0 + p). Fix a space (m, e)
//! (`solver::SparseSpace`; statement S of the crate's front page). Let r be the last rare position below n2, D a number
//! (the *witness depth*), and q = max(r, D). Call n *witnessed* when each value below G(n) that is rare at n is the
//! value of an option of n that leaves fewer than two heaps, or of a split whose smaller part is at most q. Let every n
//! with n1 <= n < n2 be common and witnessed. Let W = q + t. If n1 >= 2 q + t + d, n1 > W, n2 - n1 is even when e = 1,
//! and G(n1 - j) = G(n2 - j) for 1 <= j <= W, then G(n1 + k) = G(n2 + k) for all k >= 0.
//!
//! *Proof.* Let p = n2 - n1 and n >= n1. Let G(x) = G(x+p) for n1 - W <= x < n, and let all positions from n1 to
//! n + p - 1 be common and witnessed; n is one of them, because n < n + p. To show: G(n+p) = G(n), and n + p is
//! common and witnessed. The same values are rare at n and at n + p, because p is even when e = 1.
//!
//! A *common* option of n or n + p that comes from a split has exactly one rare part a <= r. For n the other part is
//! b = n - s - a with n - W <= n - t - r <= b < n, so G(b) = G(b+p). It is the larger part, by at least d, because
//! b - a >= n - t - 2r >= d. For n + p the other part is b + p, and the same holds. b is common exactly if b + p is,
//! because they have the same value. So n and n + p have the same common options from splits. Options with k = 1
//! leave n - s, which lies within the window because s <= t <= W. k = 0 needs n = s <= t, but n > W >= t. So the
//! least common value m* that is not an option is the same for n and n + p.
//!
//! Each value below m* that is rare at n is the value of an option of n with smaller part a <= q (or with k = 1, as
//! before). There b = n - s - a >= n - W, and (a, b+p) is an option of n + p with the same value, whose parts differ
//! by at least n - t - 2q >= d. So G(n+p) = m* = G(n), which is common at n + p, and n + p is witnessed with the same
//! q. ∎
//!
//! The D that the solver states covers all witnesses but pairs of two rare parts, whose smaller part is at most r. From
//! n = 2 r + t + 1 on there are no such pairs, so only n1 can have one. The check of a certificate asks for witnesses
//! with a smaller part of at most D, not q (`period::depth`), so a certificate must state a D that covers such a pair
//! too.
//!
//! When e = 1, the period is even: a value that is common at n is rare at n + p for odd p, and all n >= n1 are common.

use crate::solver::SparseSpace;
use crate::theory::rule::{Leaves, Rule};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The theorem that a proof applies; the module head states and proves each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Theorem {
    /// The theorem of Guy and Smith, extended to moves that leave three heaps; for rules whose splits have no least
    /// difference.
    P1,
    /// For Grundy's game, when no value of the period is 0.
    P2,
    /// For any rule whose moves leave at most two heaps.
    P3,
    /// The window theorem, for rules with a sparse space.
    P4,
}

impl fmt::Display for Theorem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Theorem {
    /// Returns the n0 for which P1, P2 or P3 states a period with this preperiod: the preperiod, but at least 1 for P1
    /// and P3.
    pub(crate) fn start(self, preperiod: u64) -> u64 {
        if self == Theorem::P2 { preperiod } else { preperiod.max(1) }
    }

    /// Returns the number N of values that P1, P2 or P3 needs: its premise covers all n from `n0` below N - `p`.
    /// `None` when the theorem does not apply to the rule or to `n0` = 0, when N exceeds 64 bits, and for P4, which
    /// has no such bound.
    ///
    /// ```
    /// use grundy::period::Theorem;
    /// let two_heaps = "0.77".parse()?; // 2 (n0 + p) + t
    /// assert_eq!(Theorem::P1.length(&two_heaps, 71, 12), Some(168));
    /// let three_heaps = "0.8F".parse()?; // 3 (n0 + p) + t
    /// assert_eq!(Theorem::P1.length(&three_heaps, 71, 12), Some(251));
    /// # Ok::<(), grundy::Error>(())
    /// ```
    #[must_use]
    pub fn length(self, rule: &Rule, n0: u64, p: u64) -> Option<u64> {
        if rule.largest_heap().is_some() {
            return None;
        }
        let heaps = rule.max_heaps().max(2);
        let both = n0.checked_add(p)?.checked_mul(heaps)?;
        match self {
            Theorem::P1 if rule.max_difference() == 0 && n0 >= 1 => both.checked_add(rule.max_remove()),
            Theorem::P2 if n0 >= 1 && is_grundys_game(rule) => both.checked_sub(1),
            Theorem::P3 if n0 >= 1 && heaps == 2 => {
                both.checked_add(p)?.checked_add(largest_step(rule))?.checked_sub(1)
            }
            _ => None,
        }
    }
}

/// Returns M of P3, the greatest s + d.
fn largest_step(rule: &Rule) -> u64 {
    let difference = |leaves| if let Leaves::Two { min_difference } = leaves { min_difference } else { 0 };
    rule.moves().iter().map(|m| m.remove + difference(m.leaves)).max().unwrap_or(0)
}

/// Whether the rule is an octal game: no move leaves three heaps, every split allows equal parts, and every constant is
/// 0. Such a rule is given by the digits 0 to 7 of a code, finitely many of them not 0, with 0 or 4 before the point.
///
/// The G-sequence of no such game is arithmetic-periodic with a saltus above 0 (D. G. Horrocks and R. J. Nowakowski,
/// *Regularity in the G-sequences of octal games with a pass*, Integers 3, 2003, G1).
pub(super) fn is_octal(rule: &Rule) -> bool {
    let plain = |leaves| !matches!(leaves, Leaves::Two { min_difference } if min_difference > 0);
    let is_finite = rule.largest_heap().is_none();
    is_finite && rule.max_heaps() <= 2 && rule.moves().iter().all(|m| m.constant == 0 && plain(m.leaves))
}

fn is_grundys_game(rule: &Rule) -> bool {
    Rule::grundy(1).is_ok_and(|grundy| grundy.moves() == rule.moves())
}

/// The numbers to which P4 was applied, in the notation of the module head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeriodWindow {
    /// n1.
    pub from: u64,
    /// n2.
    pub to: u64,
    /// The space (m, e).
    pub space: SparseSpace,
    /// Number of rare positions below n2, n = 0 included.
    pub rare_positions: u64,
    /// r, the last rare position below n2.
    pub last_rare: u64,
    /// D, an upper bound of the smaller parts of witnesses.
    pub depth: u64,
}

impl PeriodWindow {
    /// Returns W, the number of values before n1 and before n2 that must agree.
    #[must_use]
    pub fn width(&self, rule: &Rule) -> u64 {
        self.deepest().saturating_add(rule.max_remove())
    }

    /// Returns q = max(r, D), the largest smaller part that a witness may have.
    fn deepest(&self) -> u64 {
        self.last_rare.max(self.depth)
    }

    /// Whether n1 and n2 meet those conditions of P4 that do not involve values.
    #[must_use]
    pub fn is_placed(&self, rule: &Rule) -> bool {
        let q = self.deepest();
        let t = rule.max_remove();
        let d = rule.max_difference();
        let far = q.checked_mul(2).and_then(|q| q.checked_add(t)).and_then(|q| q.checked_add(d));
        far.is_some_and(|far| self.from >= far)
            && self.from > self.width(rule)
            && self.to.checked_sub(self.from).is_some_and(|p| self.space.position == 0 || p.is_multiple_of(2))
    }
}

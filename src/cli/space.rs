//! Sparse spaces in words.

use grundy::solver::SparseSpace;

/// The mask and the position term, and what the space is for.
pub(super) fn explained(space: SparseSpace) -> String {
    let term = if space.position == 0 { "no position term" } else { "with the position term" };
    let mask = space.mask;
    format!(
        "mask {mask:#x}, {term}; it divides the values into rare and common ones: the fewer positions are rare, the \
         faster a value is computed"
    )
}

/// Which positions are rare.
pub(super) fn which_are_rare(space: SparseSpace) -> String {
    let parity = |n| if space.is_rare(0, n) { "even" } else { "odd" };
    let mask = space.mask;
    let zero = if space.is_rare(0, 2) { "" } else { "; n = 0 counts as rare" };
    match (parity(2), parity(1)) {
        (even, odd) if even == odd => format!("n is rare if G(n) AND {mask:#x} has an {even} number of 1 bits{zero}"),
        (even, odd) => {
            format!(
                "n is rare if G(n) AND {mask:#x} has an {even} number of 1 bits at even n, an {odd} number at odd n{zero}"
            )
        }
    }
}

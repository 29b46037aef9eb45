//! Solvers with chosen settings, and the comparison of what they compute.

use grundy::kernel::Kernel;
use grundy::solver::{Method, Solver, SparseSpace};
use grundy::theory::rule::Rule;

/// Number of first values that the solver computes by the definition.
pub(crate) const BOOTSTRAP: usize = 4096;

/// Settings of a solver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) kernel: Kernel,
    pub(crate) space: Option<SparseSpace>,
    /// Whether the solver keeps the space when a better one exists.
    pub(crate) fixed: bool,
    /// Length of a block in values.
    pub(crate) block: usize,
}

impl Setting {
    /// A solver that continues after `values`.
    pub(crate) fn solver(self, rule: &Rule, values: &[u16]) -> Solver {
        let solver = Solver::new(rule, Method::Sparse(self.kernel), self.space, &values).unwrap();
        let solver = solver.with_block(self.block);
        if self.fixed { solver.with_fixed_space() } else { solver }
    }
}

/// Panics with the first n at which `found` and `expected` differ, and with the setting that repeats it.
pub(crate) fn assert_same_values(rule: &Rule, setting: &str, found: &[u16], expected: &[u16]) {
    if let Some(n) = found.iter().zip(expected).position(|(a, b)| a != b) {
        panic!("{:?}, {setting}: G({n}) = {}, not {}", rule.moves(), expected[n], found[n]);
    }
    assert_eq!(found.len(), expected.len(), "{rule}, {setting}");
}

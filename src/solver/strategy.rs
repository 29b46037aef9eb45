//! How a solver computes the next values, and why: for the log, and for the records of a run.
//!
//! The solver decides by its rule, the values so far and the last review ([`super::review`]). A strategy decides the
//! speed alone.

use super::choice::{BestSpace, WORTH};
use super::engine::Engine;
use super::{Method, Solver, SparseSpace, obstacle};
use std::fmt;

/// How a solver computes the next values, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// What computes the values.
    pub engine: &'static str,
    /// The sparse space in use; [`SparseSpace::NONE`] without one.
    pub space: SparseSpace,
    /// Why, as a clause without a full stop.
    pub reason: String,
}

impl Strategy {
    /// Whether both strategies compute values in the same way; their reasons may differ.
    #[must_use]
    pub fn is_same(&self, other: &Strategy) -> bool {
        (self.engine, self.space) == (other.engine, other.space)
    }
}

impl fmt::Display for Strategy {
    /// For example `byte streams in the sparse space 0x1fe, because …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine)?;
        if self.space != SparseSpace::NONE {
            write!(f, " in the sparse space {}", self.space)?;
        }
        write!(f, ", because {}", self.reason)
    }
}

impl Solver {
    /// How the solver computes the next values, and why.
    ///
    /// ```
    /// use grundy::solver::{Method, Solver};
    ///
    /// let solver = Solver::new(&"kayles".parse()?, Method::default(), None, &[].as_slice())?;
    /// assert_eq!(solver.strategy().engine, "comparison of all pairs of bytes");
    /// # Ok::<(), grundy::Error>(())
    /// ```
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        let (engine, reason) = match &self.engine {
            Engine::Definition(_) => ("definition", self.why_no_space()),
            Engine::Removals(_) => ("counts of the options of each value", self.why_no_space()),
            Engine::Exhaustive(_) => ("comparison of all pairs of bytes", self.why_no_space()),
            Engine::PairSets(_) => ("sets of the values of all pairs", self.why_no_space()),
            Engine::Wide(_) if self.space() == SparseSpace::NONE => {
                ("comparison of all pairs of 16-bit values", self.why_no_space())
            }
            Engine::Sparse(_) => ("byte streams", format!("{}, and all values have byte codes", self.rare_positions())),
            Engine::Wide(_) => ("wide solver", self.why_wide()),
        };
        Strategy { engine, space: self.space(), reason }
    }

    fn why_no_space(&self) -> String {
        if self.method == Method::Definition {
            return "the definition is required".to_owned();
        }
        if let Some(obstacle) = obstacle(&self.rule) {
            return obstacle.to_owned();
        }
        match self.space_review.best {
            None => format!("a sparse space is sought at {} values", self.space_review.due_at),
            Some(BestSpace { space, .. }) if space == SparseSpace::NONE => "no mask gives a sparse space".to_owned(),
            Some(BestSpace { space, expected, count }) => format!(
                "in the best sparse space, {space}, an estimated {expected} of the first {count} positions would be \
                 rare, more than one in {WORTH}"
            ),
        }
    }

    fn why_wide(&self) -> String {
        let rare = self.rare_positions();
        if self.max_value >= self.space.coded() {
            format!("{rare}, and values up to {} have no byte codes", self.max_value)
        } else if self.space.coded() < 512 {
            format!("{rare}, and only values below {} have byte codes", self.space.coded())
        } else {
            format!("{rare}, and new ones are frequent or expected to be")
        }
    }

    fn rare_positions(&self) -> String {
        let (count, last) = self.count_rare_positions(0);
        format!("{count} positions are rare, the last at {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver;

    /// The strategy after `count` values, one of which the solver computed.
    fn strategy(game: &str, method: Method, count: usize) -> String {
        let rule = game.parse().unwrap();
        let mut values = solver::values(&rule, method, count).unwrap();
        let mut solver = Solver::new(&rule, method, None, &values).unwrap();
        solver.extend_to(&mut values, count as u64 + 1, |_| true).unwrap();
        solver.strategy().to_string()
    }

    #[test]
    fn strategy_names_the_engine_and_the_reason() {
        let best = Method::default();
        for (game, method, count, expected) in [
            ("grundy", best, 3000, "comparison of all pairs of bytes, because a sparse space is sought at 4096 values"),
            ("grundy", Method::Definition, 5000, "definition, because the definition is required"),
            ("0.333", best, 5000, "definition, because no move leaves more than one heap"),
            ("0.(3)", best, 5000, "counts of the options of each value, because no move leaves more than one heap"),
            ("0.77", best, 5000, "byte streams in the sparse space 0x"),
            ("0.004", best, 5000, "comparison of all pairs of bytes, because in the best sparse space, 0x"),
        ] {
            let strategy = strategy(game, method, count);
            assert!(strategy.starts_with(expected), "{game}: {strategy}");
        }
    }
}

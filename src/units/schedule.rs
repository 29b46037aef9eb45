//! How well a number of workers would be used, from the recorded times of units.

use super::{Joined, Plan, Unit, Work};
use std::collections::HashMap;

/// The course of a list of units on several workers, each of which takes the next unit of the list when it is free.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// Number of workers.
    pub workers: usize,
    /// Sum of the times of all units, in seconds.
    pub total: f64,
    /// The time of the longest unit, in seconds.
    pub longest: f64,
    /// The time until the last unit ends, in seconds.
    pub makespan: f64,
}

impl Schedule {
    /// Computes the schedule of units with these times, in seconds, on at least one worker.
    ///
    /// ```
    /// let schedule = grundy::units::Schedule::of(&[3.0, 1.0, 1.0, 1.0], 2);
    /// assert_eq!((schedule.makespan, schedule.efficiency()), (3.0, 1.0));
    /// ```
    #[must_use]
    pub fn of(seconds: &[f64], workers: usize) -> Schedule {
        let workers = workers.max(1);
        let mut free_at = vec![0.0_f64; workers.min(seconds.len()).max(1)];
        for time in seconds {
            let next = free_at.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("at least one worker");
            *next += time;
        }
        let most = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        Schedule { workers, total: seconds.iter().sum(), longest: most(seconds), makespan: most(&free_at) }
    }

    /// Returns the part of the time of all workers in which they work, until the last unit ends; 1 without units.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        if self.makespan == 0.0 { 1.0 } else { self.total / (self.makespan * self.workers as f64) }
    }
}

impl Joined {
    /// Returns the units of a plan, those first whose parts computed the longest here: the results of a survey of the
    /// same games in the same parts, to fewer values. Units without a result come before all others. `None` if the
    /// games or the parts are others.
    #[must_use]
    pub fn order(&self, plan: &Plan) -> Option<Vec<Unit>> {
        match (&self.plan.work, &plan.work) {
            (Work::Survey(one), Work::Survey(two)) if one.games == two.games && self.plan.parts == plan.parts => {}
            _ => return None,
        }
        let spent: HashMap<&str, f64> =
            self.results.iter().map(|(_, result)| (result.name.as_str(), result.computing_time())).collect();
        let own = self.plan.units();
        let times: HashMap<usize, f64> =
            own.iter().filter_map(|unit| Some((unit.part, *spent.get(unit.name())?))).collect();
        let mut units = plan.units();
        let time = |unit: &Unit| times.get(&unit.part).copied().unwrap_or(f64::INFINITY);
        units.sort_by(|one, two| time(two).total_cmp(&time(one)));
        Some(units)
    }

    /// Computes the schedule of units in the given order from the computing times of their results; units without a
    /// result are left out.
    #[must_use]
    pub fn schedule(&self, units: &[Unit], workers: usize) -> Schedule {
        let spent: HashMap<&str, f64> =
            self.results.iter().map(|(_, result)| (result.name.as_str(), result.computing_time())).collect();
        let seconds: Vec<f64> = units.iter().filter_map(|unit| spent.get(unit.name()).copied()).collect();
        Schedule::of(&seconds, workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_unit_bounds_the_makespan() {
        // Workers 1 and 2 take 4 and 1; worker 2 then takes 1, 1 and 2.
        let schedule = Schedule::of(&[4.0, 1.0, 1.0, 1.0, 2.0], 2);
        assert_eq!((schedule.total, schedule.longest, schedule.makespan), (9.0, 4.0, 5.0));
        assert!((schedule.efficiency() - 0.9).abs() < 1e-12);
        // Workers without a unit count as well.
        assert!((Schedule::of(&[2.0], 4).efficiency() - 0.25).abs() < 1e-12);
        assert!((Schedule::of(&[], 4).efficiency() - 1.0).abs() < 1e-12);
    }
}

//! The list of the games of each unit, from which a process that does one unit learns its games.
//!
//! The division of a plan needs the standard form of every game of the survey, which takes seconds for a million games.
//! The first line of the list, [`NAME`], names the BLAKE3 hash of the file of the plan. Then there is a line for each
//! unit: its name and its games. The name of a unit contains a hash of its games, so a line that was altered does not
//! fit its name. If a line does not fit, or there is no list of this plan, the process divides the plan.

use super::unit::{SurveyWork, Task, Unit, Work, survey_name};
use crate::storage::Dir;
use crate::survey::{Games, PROOF_FACTOR};
use crate::theory::rule::Rule;

/// The file name of the list.
pub(super) const NAME: &str = "units.games";

/// Maximum length of the list, in bytes.
const MAX_BYTES: u64 = 128 << 20;

/// Returns the first line of the list.
fn head(plan: &[u8]) -> String {
    format!("plan {}\n", blake3::hash(plan))
}

/// Writes the list of the units of a survey, if it is not too long. A list that cannot be written is left out. The
/// caller holds the lock of the plan, and writes `plan` as its file.
pub(super) fn write(dir: &Dir, plan: &str, units: &[Unit]) {
    let mut text = head(plan.as_bytes());
    for unit in units {
        let Task::Survey(games) = &unit.task else { return };
        text += &unit.name;
        for rule in games {
            text.push(' ');
            text += rule.name();
        }
        text.push('\n');
    }
    if text.len() as u64 > MAX_BYTES {
        return;
    }
    let _ = dir.write_whole(NAME, text.as_bytes());
}

/// Returns the unit of this name with what it computes, if the directory has a list of the games, and the list belongs
/// to the plan with these bytes.
pub(super) fn find(dir: &Dir, plan: &[u8], name: &str) -> Option<(Unit, Work)> {
    let bytes = dir.read_at_most(NAME, MAX_BYTES).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?.strip_prefix(&head(plan))?;
    let games = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let games: Vec<Rule> = games.split(' ').map(|game| game.parse().ok()).collect::<Option<_>>()?;
    unit(name, games)
}

/// Returns the unit with this name and these games, if they fit each other.
fn unit(name: &str, games: Vec<Rule>) -> Option<(Unit, Work)> {
    let words: Vec<&str> = name.split('-').collect();
    let ["survey", kind, part, to, ..] = words[..] else { return None };
    let (part, parts) = part.strip_prefix("part")?.split_once("of")?;
    let (part, parts, to) = (part.parse().ok()?, parts.parse().ok()?, to.strip_prefix("to")?.parse().ok()?);
    let list = Games::List(games.iter().map(|rule| rule.name().into()).collect());
    let work = SurveyWork { games: list, to, proof_to: u64::saturating_mul(to, PROOF_FACTOR) };
    let fits = survey_name(kind, (part, parts), &work, &games) == name;
    fits.then(|| (Unit { part, name: name.into(), task: Task::Survey(games) }, Work::Survey(work)))
}

#[cfg(test)]
mod tests {
    use super::super::plan::{NAME as PLAN, Plan};
    use super::*;

    #[test]
    fn list_states_the_games_of_each_unit_and_no_others() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("units");
        let dir = Dir::at(&path);
        let find = |name: &str| find(&dir, &dir.read(PLAN).unwrap(), name);
        let plan = Plan::survey(Games::Digits(2), 4096, 11).unwrap();
        plan.write(&path).unwrap();
        let units = plan.units();
        for expected in &units {
            let (unit, work) = find(expected.name()).unwrap();
            assert_eq!(&unit, expected);
            let Work::Survey(work) = work else { panic!("{unit:?} is no survey") };
            assert_eq!((work.to, work.proof_to), (4096, 4096 * PROOF_FACTOR));
        }
        let name = units[3].name();
        assert!(find(&name[..name.len() - 1]).is_none());
        // Another game, one game fewer, the games of another unit, and other numbers in the name.
        let text = std::fs::read_to_string(path.join(NAME)).unwrap();
        let plan_text = std::fs::read_to_string(path.join(PLAN)).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let other = text.lines().find(|line| line.starts_with(units[4].name())).unwrap();
        let fewer = line.rsplit_once(' ').unwrap().0;
        let longer = name.replace("to4096", "to8192");
        let cases = [
            (name, line.replacen(" 0.", " 4.", 1)),
            (name, fewer.into()),
            (name, other.replacen(units[4].name(), name, 1)),
            (&longer, line.replacen(name, &longer, 1)),
        ];
        for (name, line) in cases {
            std::fs::write(path.join(NAME), format!("{}{line}\n", head(plan_text.as_bytes()))).unwrap();
            assert!(find(name).is_none(), "{line}");
        }
        std::fs::write(path.join(NAME), &text).unwrap();
        assert!(find(name).is_some());
        // The list of another plan.
        std::fs::write(path.join(PLAN), plan_text.replace("4096", "2048")).unwrap();
        assert!(find(name).is_none());
    }
}

//! What is known of a game: the games with the same sequence, its period or how far it was searched for one, how many
//! values are computed, and a sparse space, each with its source; and the sequence of the OEIS with its values.
//!
//! The facts come from [`NAMED_GAMES`] and from these files, which are part of the program:
//!
//! - `data/results/octal3.csv`: every octal code of up to three digits, as a survey of this program found it.
//! - `data/results/periods.csv`: periods that this program proved in longer searches.
//! - `data/results/octal-runs.jsonl`: longer runs of games without a known period.
//! - `data/frontiers.csv`: how far published computations of games without a known period reach. Whether their authors
//!   searched the values for a period is not stated.
//!
//! What is known of a game holds for every game with the same standard form ([`StandardForm`]), whose sequence is H:
//! G(n) = H(n - s), where s is the shift of the game. So the period is that of H. If H has a preperiod n0 > 0, then
//! G(n0 - 1 + s) is the last exception, and the preperiod of G is n0 + s. If H is periodic from n = 0 on, G is periodic
//! from s on, and the first s + p values determine its preperiod.

use super::definition;
use super::names::NAMED_GAMES;
use super::nimber::index;
use super::oeis::{self, OeisSequence};
use super::rule::Rule;
use super::sparse_space::SparseSpace;
use super::standard_form::StandardForm;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::OnceLock;

static OCTAL3: Table = Table::new(include_str!("../../data/results/octal3.csv"), ',');
static PROVED: Table = Table::new(include_str!("../../data/results/periods.csv"), ',');
static FRONTIERS: Table = Table::new(include_str!("../../data/frontiers.csv"), ';');
const RUNS: &str = include_str!("../../data/results/octal-runs.jsonl");

/// A table whose first column names games.
struct Table {
    text: &'static str,
    separator: char,
    /// The rows of each game.
    rows: OnceLock<HashMap<&'static str, Vec<&'static str>>>,
}

impl Table {
    const fn new(text: &'static str, separator: char) -> Table {
        Table { text, separator, rows: OnceLock::new() }
    }

    /// The cells of the rows of a game.
    fn rows_of(&self, rule: &Rule) -> impl Iterator<Item = Vec<&'static str>> {
        let rows = self.rows.get_or_init(|| {
            let mut rows: HashMap<&str, Vec<&str>> = HashMap::new();
            for line in self.text.lines().filter(|line| !line.starts_with('#')) {
                let game = line.split(self.separator).next().unwrap_or_default();
                rows.entry(game).or_default().push(line);
            }
            rows
        });
        let rows = rows.get(rule.name()).into_iter().flatten();
        rows.map(|line| line.split(self.separator).collect())
    }

    /// The cells of the first row of a game.
    fn cells_of(&self, rule: &Rule) -> Option<Vec<&'static str>> {
        self.rows_of(rule).next()
    }
}

/// A game that has the standard form of the game in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// The game.
    pub rule: Rule,
    /// The number s with G(n) = H(n - s), where H is the sequence of the standard form.
    pub shift: u64,
}

/// What is known of the period of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeriodFact {
    /// The period is known.
    Periodic {
        /// The least period.
        period: u64,
        /// The least preperiod.
        preperiod: u64,
    },
    /// This program searched the first values and found no period.
    Searched {
        /// The number of values that were searched.
        values: u64,
    },
}

impl PeriodFact {
    /// Why no proof of this least period and preperiod can be right, in words; `None` if it can. A search that found no
    /// period in N values would have found one with 2 (preperiod + period) <= N.
    #[must_use]
    pub fn contradiction(&self, period: u64, preperiod: u64) -> Option<String> {
        match *self {
            PeriodFact::Periodic { period: known, preperiod: from } => ((known, from) != (period, preperiod))
                .then(|| format!("the period is known to be {known}, from n = {from} on")),
            PeriodFact::Searched { values } => {
                let twice = period.checked_add(preperiod).and_then(|end| end.checked_mul(2));
                twice
                    .is_some_and(|twice| twice <= values)
                    .then(|| format!("no period was found in the first {values} values"))
            }
        }
    }
}

/// A fact, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The fact.
    pub fact: T,
    /// The source, in words.
    pub source: String,
}

/// A sparse space in which the rare positions of a game were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceFact {
    /// The sparse space.
    pub space: SparseSpace,
    /// The last rare position that is known.
    pub last_rare: Option<u64>,
}

/// What is known of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knowledge {
    /// The standard form; `None` if the rule is not that of an octal code.
    pub form: Option<StandardForm>,
    /// The octal games of up to three digits, and the named games, with the same standard form, ascending in shift. The
    /// game itself is one of them if it is such a game.
    pub equivalents: Vec<Equivalent>,
    /// The period, or else how far the game was searched for one.
    pub period: Option<Sourced<PeriodFact>>,
    /// The number of values of the longest published computation, searched for a period or not, if this program did
    /// not search as many.
    pub computed: Option<Sourced<u64>>,
    /// The sparse space.
    pub space: Option<Sourced<SpaceFact>>,
    /// The sequence of the OEIS that has the values of the game, if it is listed ([`oeis`]).
    pub oeis: Option<OeisSequence>,
}

/// Returns what is known of a game.
///
/// ```
/// use grundy::theory::catalogue::{PeriodFact, known};
///
/// let kayles = known(&"kayles".parse()?);
/// assert_eq!(kayles.period.unwrap().fact, PeriodFact::Periodic { period: 12, preperiod: 71 });
/// assert!(kayles.equivalents.iter().any(|other| other.rule.name() == "4.4" && other.shift == 1));
/// # Ok::<(), grundy::Error>(())
/// ```
#[must_use]
pub fn known(rule: &Rule) -> Knowledge {
    let form = StandardForm::of(rule);
    let equivalents = form.as_ref().map(equivalents).unwrap_or_default();
    let shift = form.as_ref().map_or(0, |form| form.shift);
    let itself = Relative { rule, shifts: (shift, shift), is_itself: true };
    let others = equivalents.iter().filter(|other| other.rule != *rule);
    let others = others.map(|other| Relative { rule: &other.rule, shifts: (shift, other.shift), is_itself: false });
    let relatives: Vec<Relative<'_>> = std::iter::once(itself).chain(others).collect();
    let periodic = relatives.iter().find_map(|relative| relative.periodic(rule));
    // Of equally long searches, `max_by_key` takes the last one, which is that of the game itself.
    let searched =
        relatives.iter().rev().filter_map(Relative::searched).max_by_key(|searched| values_searched(&searched.fact));
    let computed = relatives.iter().rev().filter_map(Relative::computed).max_by_key(|computed| computed.fact);
    let searched_values = searched.as_ref().map_or(0, |searched| values_searched(&searched.fact));
    let computed = computed.filter(|computed| computed.fact > searched_values);
    let space = relatives.iter().find_map(|relative| relative.space(rule));
    let oeis = relatives.iter().find_map(Relative::oeis);
    Knowledge { period: periodic.or(searched), computed, space, oeis, equivalents, form }
}

/// The octal games of up to three digits, the named games, and the games of sequences of the OEIS, with this standard
/// form, ascending in shift.
fn equivalents(form: &StandardForm) -> Vec<Equivalent> {
    static ALL: OnceLock<HashMap<String, Vec<Equivalent>>> = OnceLock::new();
    ALL.get_or_init(all_equivalents).get(form.rule.name()).cloned().unwrap_or_default()
}

/// The games of [`equivalents`], by the name of their standard form.
fn all_equivalents() -> HashMap<String, Vec<Equivalent>> {
    let codes = (0..512).flat_map(|digits| [0, 4].map(|whole| format!("{whole}.{digits:03o}")));
    let named = NAMED_GAMES.iter().map(|known| known.game).chain(oeis::games()).map(str::to_owned);
    let mut all: HashMap<String, Vec<Equivalent>> = HashMap::new();
    for rule in codes.chain(named).filter_map(|name| name.parse::<Rule>().ok()) {
        let Some(StandardForm { rule: form, shift }) = StandardForm::of(&rule) else { continue };
        all.entry(form.name().to_owned()).or_default().push(Equivalent { rule, shift });
    }
    for found in all.values_mut() {
        found.sort_by(|a, b| (a.shift, a.rule.name()).cmp(&(b.shift, b.rule.name())));
        found.dedup();
    }
    all
}

/// The number of values that were searched for a period; the largest number if it is known.
fn values_searched(fact: &PeriodFact) -> u64 {
    match fact {
        PeriodFact::Periodic { .. } => u64::MAX,
        PeriodFact::Searched { values } => *values,
    }
}

/// A game with the sequence of the game in question, which may be that game itself.
struct Relative<'a> {
    rule: &'a Rule,
    /// The shift of the game in question, and that of `rule`.
    shifts: (u64, u64),
    is_itself: bool,
}

impl Relative<'_> {
    /// The period of the game in question, if that of this game is known.
    fn periodic(&self, rule: &Rule) -> Option<Sourced<PeriodFact>> {
        let (period, preperiod, source) = known_period(self.rule)?;
        let (shift, other) = self.shifts;
        let preperiod = match preperiod.saturating_sub(other) {
            _ if self.is_itself => preperiod,
            0 => preperiod_of_shifted(rule, period, shift)?,
            of_standard_form => of_standard_form + shift,
        };
        Some(Sourced { fact: PeriodFact::Periodic { period, preperiod }, source: self.of(source) })
    }

    /// How far this program searched this game.
    fn searched(&self) -> Option<Sourced<PeriodFact>> {
        let surveyed = OCTAL3.cells_of(self.rule);
        let surveyed = surveyed.and_then(|cells| Some((cells.get(12)?.parse().ok()?, SURVEY.to_owned())));
        let computed = run_of(self.rule).map(|run| (run.count, LONG_RUN.to_owned()));
        let (values, source) = surveyed.max(computed)?;
        Some(Sourced { fact: PeriodFact::Searched { values }, source: self.of(source) })
    }

    /// How many values of this game are computed.
    fn computed(&self) -> Option<Sourced<u64>> {
        let of = |cells: &[&str]| Some((cells.get(1)?.parse::<u64>().ok()?, cells.get(2)?.to_string()));
        let (values, source) = FRONTIERS.rows_of(self.rule).filter_map(|cells| of(&cells)).max()?;
        Some(Sourced { fact: values, source: self.of(source) })
    }

    /// The sparse space of the game in question, if that of this game is known.
    fn space(&self, rule: &Rule) -> Option<Sourced<SpaceFact>> {
        let known = self.rule.known();
        let named = known.and_then(|known| known.space.zip(Some(known.last_rare)));
        let ((mask, position), last_rare, source) = match named {
            Some((space, last_rare)) => (space, last_rare, "built into this program".to_owned()),
            None => match run_of(self.rule).filter(|run| run.mask != 0) {
                Some(run) => ((run.mask, run.position), Some(run.last_rare), LONG_RUN.to_owned()),
                None => {
                    let cells = OCTAL3.cells_of(self.rule)?;
                    let mask = u16::from_str_radix(cells.get(8)?.strip_prefix("0x")?, 16).ok()?;
                    ((mask, cells.get(9)?.parse().ok()?), cells.get(7)?.parse().ok(), SURVEY.to_owned())
                }
            },
        };
        let space = SparseSpace::new(rule, mask, position)?;
        let last_rare = last_rare.map(|last| self.moved(last));
        Some(Sourced { fact: SpaceFact { space, last_rare }, source: self.of(source) })
    }

    /// The sequence of the OEIS for the game in question, if one is listed for this game.
    fn oeis(&self) -> Option<OeisSequence> {
        let sequence = oeis::of(self.rule.name())?;
        let shift = sequence.shift.checked_add_unsigned(self.shifts.0)?.checked_sub_unsigned(self.shifts.1)?;
        Some(OeisSequence { shift, ..sequence })
    }

    /// The position of the game in question that corresponds to a position of this game.
    fn moved(&self, n: u64) -> u64 {
        (n + self.shifts.0).saturating_sub(self.shifts.1)
    }

    /// The source of a fact about this game.
    fn of(&self, source: String) -> String {
        if self.is_itself { source } else { format!("{source}, for {}", self.rule) }
    }
}

/// The source of the facts in `octal3.csv`.
const SURVEY: &str = "survey with this program, data/results/octal3.csv";

/// The source of the facts in `octal-runs.jsonl`.
const LONG_RUN: &str = "run of this program, data/results/octal-runs.jsonl";

/// What a line of `octal-runs.jsonl` states, among other facts.
#[derive(Deserialize)]
struct LongRun {
    game: String,
    count: u64,
    mask: u16,
    position: u8,
    last_rare: u64,
}

/// The long run of a game.
fn run_of(rule: &Rule) -> Option<&'static LongRun> {
    static ALL: OnceLock<HashMap<String, LongRun>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let runs = RUNS.lines().filter_map(|line| serde_json::from_str::<LongRun>(line).ok());
        runs.map(|run| (run.game.clone(), run)).collect()
    });
    all.get(rule.name())
}

/// Period, preperiod and source, as stated for this very game.
fn known_period(rule: &Rule) -> Option<(u64, u64, String)> {
    let row = |table: &Table, columns: [usize; 3]| {
        let cells = table.cells_of(rule)?;
        let [period, preperiod, theorem] = columns.map(|column| cells.get(column).copied().unwrap_or_default());
        Some((period.parse().ok()?, preperiod.parse().ok()?, theorem))
    };
    let by_survey =
        || row(&OCTAL3, [2, 3, 10]).map(|(p, n, theorem)| (p, n, format!("proved by theorem {theorem}, {SURVEY}")));
    let by_search = || {
        let file = "data/results/periods.csv";
        row(&PROVED, [1, 2, 4])
            .map(|(p, n, theorem)| (p, n, format!("proved by theorem {theorem}, search with this program, {file}")))
    };
    let by_name = || {
        let known = rule.known()?;
        known.period.map(|(period, preperiod)| (period, preperiod, "built into this program".to_owned()))
    };
    by_survey().or_else(by_search).or_else(by_name)
}

/// The preperiod of a game with shift s whose standard form has preperiod 0 and this period; at most s. `None` if it
/// would take too long to find.
fn preperiod_of_shifted(rule: &Rule, period: u64, shift: u64) -> Option<u64> {
    /// Maximum number of values that are computed.
    const MOST: u64 = 4096;
    let count = shift.checked_add(period).filter(|&count| count <= MOST)?;
    let values = definition::values(rule, index(count)).ok()?;
    let differs = |&n: &u64| values[index(n)] != values[index(n + period)];
    Some((0..shift).rev().find(differs).map_or(0, |last| last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(code: &str) -> Rule {
        code.parse().unwrap()
    }

    /// The least preperiod of these values with this period, if they repeat it at all.
    fn preperiod_in(values: &[u16], period: usize) -> usize {
        (0..values.len() - period).rev().find(|&n| values[n] != values[n + period]).map_or(0, |last| last + 1)
    }

    #[test]
    fn equivalents_have_the_values_of_the_game_by_the_definition() {
        for code in ["0.07", "0.77", "0.4", "0.156", "0.007", "0.3", "4.3"] {
            let form = StandardForm::of(&rule(code)).unwrap();
            let expected = definition::values(&form.rule, 80).unwrap();
            let found = known(&rule(code)).equivalents;
            assert!(found.iter().any(|other| other.rule == rule(code)), "{code}: {found:?}");
            for Equivalent { rule, shift } in found {
                let (zeros, values) = (index(shift), definition::values(&rule, 80).unwrap());
                assert!(values[..zeros].iter().all(|&value| value == 0), "{code}: {rule}");
                assert_eq!(values[zeros..], expected[..80 - zeros], "{code}: {rule}");
            }
        }
    }

    /// Codes of one to five digits: some are in the survey, others only have the standard form of such a code.
    #[test]
    fn stated_periods_and_preperiods_are_those_of_the_values() {
        let digits = ["0", "1", "3", "7"];
        let longer =
            digits.iter().flat_map(|a| digits.iter().flat_map(move |b| digits.map(|c| format!("0.0{a}{b}{c}"))));
        let few = ["0.77", "0.07", "0.137", "0.4", "0.156", "0.055", "4.3", "0.1377", "0.11377", "0.0177"];
        let mut checked = (0, 0);
        for code in few.map(str::to_owned).into_iter().chain(longer) {
            let rule = rule(&code);
            let Some(Sourced { fact: PeriodFact::Periodic { period, preperiod }, source }) = known(&rule).period else {
                assert!(!few.contains(&code.as_str()), "{code} has no period");
                continue;
            };
            assert!(source.contains("proved by theorem"), "{code}: {source}");
            let values = definition::values(&rule, index(2 * preperiod + 3 * period + 50)).unwrap();
            assert_eq!(preperiod_in(&values, index(period)), index(preperiod), "{code}: period {period}");
            let is_surveyed = OCTAL3.cells_of(&rule).is_some();
            checked = if is_surveyed { (checked.0 + 1, checked.1) } else { (checked.0, checked.1 + 1) };
        }
        assert!(checked.0 > 10 && checked.1 > 10, "surveyed and other codes: {checked:?}");
    }

    #[test]
    fn facts_of_equivalent_games_agree() {
        let of = |code: &str| known(&rule(code)).period.unwrap();
        assert_eq!(of("0.054").fact, PeriodFact::Periodic { period: 10_015_179, preperiod: 193_235_616 });
        let PeriodFact::Periodic { period, .. } = of("0.056").fact else { panic!("0.056 has the sequence of 0.054") };
        assert_eq!(period, 10_015_179);
        let computed = |code: &str| known(&rule(code)).computed.map(|computed| computed.fact);
        // data/results/grundy.md
        assert_eq!((known(&rule("grundy")).period, computed("grundy")), (None, Some(1 << 36)));
        assert!(matches!(of("0.04").fact, PeriodFact::Searched { values } if values > 131_072));
        assert_eq!((computed("0.04"), computed("0.77")), (None, None));
        assert_eq!((computed("0.6"), computed("0.606")), (Some(1 << 47), Some(1 << 29)));
        assert_eq!(known(&rule("grundy:d=2")).period, None);
    }

    /// a(k) = G(k + shift): A002187 is the sequence of Dawson's Chess, .137, which is that of .07 one position earlier.
    #[test]
    fn sequences_of_the_oeis_are_those_of_equivalent_games() {
        let of = |code: &str| known(&rule(code)).oeis.map(|sequence| (sequence.number, sequence.shift));
        let expected =
            [("grundy", Some(("A002188", 0))), ("0.137", Some(("A002187", 0))), ("0.07", Some(("A002187", 1)))];
        for (code, expected) in expected.into_iter().chain([("0.6", Some(("A071433", 1))), ("grundy:d=2", None)]) {
            assert_eq!(of(code), expected, "{code}");
        }
        for code in ["0.07", "0.4", "0.045", "0.46", "0.004", "4.004", "0.04", "0.771"] {
            let (number, shift) = of(code).unwrap();
            let listed = rule(oeis::find(number).unwrap().0);
            let (values, others) =
                (definition::values(&rule(code), 60).unwrap(), definition::values(&listed, 60).unwrap());
            let listed_shift = oeis::of(listed.name()).unwrap().shift;
            let at = |values: &[u16], k: i64, shift: i64| values[usize::try_from(k + shift).unwrap()];
            assert!((1..50).all(|k| at(&values, k, shift) == at(&others, k, listed_shift)), "{code}");
        }
    }

    /// The lines of these b-files, whose digests are those of the published files, are numbered by the heap.
    #[test]
    fn sequences_with_known_b_files_are_listed() {
        let table = include_str!("../../data/oeis-bfiles.csv");
        for line in table.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let OeisSequence { number, shift, first } = known(&rule(cells[1])).oeis.unwrap();
            let first_line = cells[2].split_once("..").unwrap().0;
            assert_eq!((cells[0], shift), (&*format!("b{}.txt", &number[1..]), 0), "{line}");
            assert_eq!(first_line, first.to_string(), "{line}");
        }
    }

    /// Every line of `octal-runs.jsonl` is read, and outweighs the shorter examination of the survey.
    #[test]
    fn long_runs_extend_the_survey() {
        for line in RUNS.lines() {
            let run: LongRun = serde_json::from_str(line).unwrap();
            let rule = rule(&run.game);
            let surveyed = OCTAL3.cells_of(&rule).unwrap();
            assert!(surveyed[12].parse::<u64>().unwrap() <= run.count, "{}", run.game);
            let PeriodFact::Searched { values } = known(&rule).period.unwrap().fact else { panic!("{}", run.game) };
            assert!(values >= run.count, "{}", run.game);
            if run.mask != 0 && rule.known().is_none() {
                let fact = known(&rule).space.unwrap().fact;
                assert_eq!((fact.space.mask, fact.last_rare), (run.mask, Some(run.last_rare)), "{}", run.game);
            }
        }
    }

    #[test]
    fn rare_positions_stated_for_small_games_are_those_of_the_values() {
        for code in ["0.77", "0.771", "4.63"] {
            let rule = rule(code);
            let fact = known(&rule).space.unwrap().fact;
            let values = definition::values(&rule, 400).unwrap();
            let rare = (0..).zip(&values).filter(|&(n, &value)| fact.space.is_rare(value, n)).map(|(n, _)| n).max();
            assert_eq!(fact.last_rare, rare, "{code}");
        }
    }
}

//! `grundy info`: show what is known about a game.

use super::games::with_name;
use super::layout::{paragraph, unbroken};
use super::{advice, space};
use anyhow::Result;
use grundy::Rule;
use grundy::theory::catalogue::{self, Equivalent, Knowledge, PeriodFact, Sourced, SpaceFact};
use grundy::theory::definition;
use grundy::theory::oeis::OeisSequence;
use grundy::theory::standard_form::StandardForm;
use grundy::theory::words::moves_in_words;
use indicatif::HumanCount;
use serde_json::json;

/// Number of first values that are shown.
const SHOWN: usize = 20;

/// Arguments of `grundy info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy info kayles\n         \
                        grundy info .07 --json\n\n\
                        Knows the named games, the octal games of up to three digits, and the games that have the \
                        same sequence as one of these by a theorem (src/theory/standard_form.rs). 'grundy period' \
                        searches the period of any game, and proves it.\n\n\
                        JSON keys: game aliases about moves values standard_form shift equivalent mask position \
                        last_rare space_source period preperiod searched period_source computed \
                        computed_source oeis. G(n) = H(n - shift), where H is the sequence of the game 'standard_form'; \
                        'equivalent' lists the known games with the same standard form, each with its shift. 'mask' \
                        is 0 if no sparse space is known. 'searched' is the number of first values in which this \
                        program found no period, 'computed' the number of values of the longest published \
                        computation that is known to this program, null if it is not larger. 'oeis' has the keys \
                        sequence, shift and first: a(k) = G(k + shift) for k >= first. What is unknown is null.")]
pub(crate) struct Args {
    /// Game to describe.
    #[arg(value_parser = advice::rule)]
    game: Rule,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What is known about a game.
struct Facts<'a> {
    rule: &'a Rule,
    moves: Vec<String>,
    values: Vec<u16>,
    known: Knowledge,
}

pub(crate) fn info(args: &Args) -> Result<()> {
    let rule = &args.game;
    let values = definition::values(rule, SHOWN)?;
    let facts = Facts { rule, moves: moves_in_words(rule), values, known: catalogue::known(rule) };
    if args.json {
        super::output::print(|out| super::output::object(out, &object(&facts)))
    } else {
        super::output::styled(&text(&facts))
    }
}

fn object(facts: &Facts<'_>) -> serde_json::Value {
    let named = facts.rule.known();
    let equivalent = |other: &Equivalent| json!({ "game": other.rule.name(), "shift": other.shift });
    let space = facts.known.space.as_ref().map(|space| space.fact);
    let (period, preperiod, searched) = match facts.known.period.as_ref().map(|period| &period.fact) {
        Some(&PeriodFact::Periodic { period, preperiod }) => (Some(period), Some(preperiod), None),
        Some(&PeriodFact::Searched { values }) => (None, None, Some(values)),
        None => (None, None, None),
    };
    json!({
        "game": facts.rule.name(),
        "aliases": named.map_or(&[][..], |named| named.aliases),
        "about": named.map(|named| named.about),
        "moves": facts.moves,
        "values": facts.values,
        "standard_form": facts.known.form.as_ref().map(|form| form.rule.name()),
        "shift": facts.known.form.as_ref().map(|form| form.shift),
        "equivalent": facts.known.equivalents.iter().map(equivalent).collect::<Vec<_>>(),
        "mask": space.map_or(0, |space| space.space.mask),
        "position": space.map_or(0, |space| space.space.position),
        "last_rare": space.and_then(|space| space.last_rare),
        "space_source": facts.known.space.as_ref().map(|space| &space.source),
        "period": period,
        "preperiod": preperiod,
        "searched": searched,
        "period_source": facts.known.period.as_ref().map(|period| &period.source),
        "computed": facts.known.computed.as_ref().map(|computed| computed.fact),
        "oeis": facts.known.oeis.map(|OeisSequence { number, shift, first }| {
            json!({ "sequence": number, "shift": shift, "first": first })
        }),
        "computed_source": facts.known.computed.as_ref().map(|computed| &computed.source),
    })
}

fn text(facts: &Facts<'_>) -> String {
    let values: Vec<String> = facts.values.iter().map(u16::to_string).collect();
    let mut lines = vec![("game", facts.rule.name().to_owned())];
    if let Some(named) = facts.rule.known() {
        if !named.aliases.is_empty() {
            lines.push(("other names", named.aliases.join(", ")));
        }
        lines.push(("about", named.about.to_owned()));
    }
    let none = "none: the player to move loses".to_owned();
    lines.push(("moves", facts.moves.first().cloned().unwrap_or(none)));
    lines.extend(facts.moves.iter().skip(1).map(|phrase| ("", format!("or {phrase}"))));
    lines.push(("first values", format!("{} … (G(0) to G({}))", values.join(" "), SHOWN - 1)));
    if let Some(form) = &facts.known.form {
        lines.push(("standard form", standard_form(form)));
        lines.extend(same_sequence(facts, form));
    }
    lines.extend(facts.known.oeis.into_iter().flat_map(|sequence| oeis(sequence, facts.rule.name())));
    lines.push(("sparse space", sparse_space(facts.known.space.as_ref())));
    lines.push(("period", period(facts)));
    let line = |&(label, ref text): &(&str, String)| match label {
        WRITE | CHECK => unbroken(label, text),
        _ => paragraph(label, text),
    };
    lines.iter().map(line).collect()
}

/// The code that stands for all codes with this sequence, and how the sequences differ.
fn standard_form(form: &StandardForm) -> String {
    let name = form.rule.name();
    match form.shift {
        0 => format!("{name}, with the same values"),
        shift => format!("{name}: G(n) is the value of {name} at n - {shift}, and 0 for n up to {shift}"),
    }
}

/// The known games with the same standard form: a line for each shift, and the reason.
fn same_sequence(facts: &Facts<'_>, form: &StandardForm) -> Vec<(&'static str, String)> {
    let others: Vec<&Equivalent> = facts.known.equivalents.iter().filter(|other| other.rule != *facts.rule).collect();
    if others.is_empty() {
        return Vec::new();
    }
    let line = |group: &[&Equivalent]| {
        let names: Vec<String> = group.iter().map(|other| with_name(&other.rule)).collect();
        let shifted = match (group[0].shift, form.shift) {
            (a, b) if a == b => "the same values",
            (a, b) if a > b => &format!("{0} later (their value at n is G(n - {0}))", a - b),
            (a, b) => &format!("{0} earlier (their value at n is G(n + {0}))", b - a),
        };
        format!("{shifted}: {}", names.join(", "))
    };
    let lines = others.chunk_by(|a, b| a.shift == b.shift).map(|group| ("", line(group)));
    let reason = "by the theorem on shifts (first cousins; Winning Ways, chapter 4) and redundant removals:";
    [("equal games", reason.to_owned())].into_iter().chain(lines).collect()
}

/// The label of the command that writes a b-file.
const WRITE: &str = "b-file";

/// The label of the command that checks a b-file.
const CHECK: &str = "b-file check";

/// The sequence of the OEIS, and the commands that write and check its b-file.
fn oeis(sequence: OeisSequence, game: &str) -> Vec<(&'static str, String)> {
    /// The last index of the b-file.
    const LAST: u64 = 10_000;
    let OeisSequence { number, shift, first } = sequence;
    let from = first.saturating_add_signed(shift);
    let offset = if shift == 0 { String::new() } else { format!(" --offset {}", -shift) };
    let file = format!("b{}.txt", &number[1..]);
    // Without a range, the command writes G(0) to G(LAST).
    let end = from + LAST + 1 - first;
    let range = if from == 0 && first == 0 { String::new() } else { format!(" --range {from}..{end}") };
    vec![
        ("OEIS", format!("{number}: {sequence}, n >= {first}")),
        (WRITE, format!("grundy export {game} --format bfile{range}{offset} -o {file}")),
        (CHECK, format!("grundy check {game} {file}{offset}")),
    ]
}

fn sparse_space(space: Option<&Sourced<SpaceFact>>) -> String {
    let Some(Sourced { fact: SpaceFact { space, last_rare }, source }) = space else {
        return "none is known".to_owned();
    };
    let last =
        last_rare.map_or_else(String::new, |last| format!("; the last known rare position is {}", HumanCount(last)));
    let explained = space::explained(*space);
    format!("{explained}; {}{last} ({source})", space::which_are_rare(*space))
}

fn period(facts: &Facts<'_>) -> String {
    if facts.rule.is_nim() {
        return "none: G(n) = n".to_owned();
    }
    let computed = facts.known.computed.as_ref();
    let computed =
        computed.map(|Sourced { fact, source }| format!("{} values are computed ({source})", HumanCount(*fact)));
    let Some(Sourced { fact, source }) = &facts.known.period else {
        if let Some(computed) = computed {
            return format!("not known; {computed}");
        }
        let search = format!("grundy period {}", super::advice::quoted(facts.rule.name()));
        return match facts.rule.largest_heap() {
            Some(_) => {
                format!(
                    "none is proved; this program cannot prove one, because the code repeats; to search for one: {search}"
                )
            }
            None => format!("none is proved; to search for one: {search}"),
        };
    };
    match fact {
        PeriodFact::Periodic { period, preperiod } => {
            format!("{}, preperiod {} ({source})", HumanCount(*period), HumanCount(*preperiod))
        }
        PeriodFact::Searched { values } => {
            let more = computed.map_or_else(String::new, |computed| format!("; {computed}"));
            format!("not known; none shows in the first {} values ({source}){more}", HumanCount(*values))
        }
    }
}

use super::*;
use std::path::Path;

fn damage(damage: Damage) -> Error {
    Error::Damage { path: "run/values.npy".into(), offset: 4096, damage }
}

#[test]
fn damage_states_file_offset_and_what_is_wrong() {
    let digest = damage(Damage::Digest { from: 5, to: 9, repair_failed: false });
    let text = "damage: run/values.npy at byte 4096: the values 5..9 do not have the digest that the journal states";
    assert_eq!(digest.to_string(), text);
    assert_eq!(digest.kind(), Kind::Damage);
    let counted = Counters { rares: 3, last_rare: 40, max_value: 7, max_at: 50 };
    let stated = Counters { rares: 4, ..counted };
    assert_eq!(
        Damage::Counters { counted, stated }.to_string(),
        "the table has 3 rare positions, the last at n = 40, and the largest value 7 at n = 50; the journal states 4 \
         rare positions, the last at n = 40, and the largest value 7 at n = 50"
    );
}

#[test]
fn damage_of_a_whole_file_states_no_offset() {
    let damage = Damage::NotAPlan { why: "no plan".into() };
    let text = Error::Damage { path: "survey/survey.plan".into(), offset: 0, damage }.to_string();
    assert!(text.starts_with("damage: survey/survey.plan: ") && text.contains("no plan"), "{text}");
}

#[test]
fn damaged_journal_states_its_first_broken_record_and_what_follows() {
    let journal = |values| Damage::Journal {
        record: BrokenRecord::Hash,
        rest: JournalRest::BrokenRecords { records: 2 },
        values,
        game: Some("0.77".into()),
    };
    let text = "the record does not match its own hash, and 2 more broken records follow; the journal was altered";
    assert_eq!(journal(Some(7)).to_string(), text);
    assert_eq!(journal(None).to_string(), format!("{text}; no good record precedes it"));
}

#[test]
fn remedy_of_damage_names_the_run_directory() {
    let dir = Path::new("run").to_owned();
    let remedy = |kind| damage(kind).remedy();
    assert_eq!(remedy(Damage::MissingFile), Some(Remedy::RestoreFile { dir: dir.clone() }));
    assert_eq!(
        remedy(Damage::Digest { from: 5, to: 9, repair_failed: true }),
        Some(Remedy::RollBack { dir: dir.clone(), to: RollBackTo::Values { values: 5 } })
    );
    let summary = Damage::Summary(SummaryDamage::Missing);
    assert_eq!(remedy(summary), Some(Remedy::RollBack { dir, to: RollBackTo::BeforeDiscarded }));
    assert_eq!(remedy(Damage::EmptyDigest), None);
}

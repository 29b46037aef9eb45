//! The table of a survey's records, as comma-separated values and as Markdown.

use super::record::Record;
use crate::period::Status;
use std::fmt::Write;

const COLUMNS: &str =
    "game,status,period,preperiod,max_value,max_at,rares,last_rare,mask,position,theorem,saltus,checked_through,digest";

/// Returns the table as comma-separated values, with a header line.
#[must_use]
pub fn csv<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let mut text = format!("{COLUMNS}\n");
    for r in records {
        let row = [
            r.game.clone(),
            r.status.to_string(),
            known(r.period),
            known(r.preperiod),
            r.max_value.to_string(),
            r.max_at.to_string(),
            known(r.rares),
            known(r.last_rare),
            format!("{:#x}", r.mask),
            r.position.to_string(),
            known(r.theorem),
            r.saltus.to_string(),
            r.checked_through.to_string(),
            r.digest.clone(),
        ];
        text.push_str(&row.join(","));
        text.push('\n');
    }
    text
}

/// Returns the table as Markdown.
#[must_use]
pub fn markdown<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let mut text = String::from(
        "| code | period | preperiod | saltus | largest value | at | rares | last rare | mask | by | checked through |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|---|---|--:|\n",
    );
    for r in records {
        let period = match (r.status, r.period) {
            (Status::Proved, Some(p)) => p.to_string(),
            (Status::Observed, Some(p)) => format!("{p} (observed)"),
            _ => "?".into(),
        };
        let (preperiod, saltus) = match r.period {
            Some(_) => (known(r.preperiod), r.saltus.to_string()),
            None => ("?".into(), "?".into()),
        };
        let mask = match (r.mask, r.position) {
            (0, _) => String::new(),
            (mask, 0) => format!("{mask:#x}"),
            (mask, _) => format!("{mask:#x}, n"),
        };
        // Writing to a string never fails.
        let _ = writeln!(
            text,
            "| {} | {period} | {preperiod} | {saltus} | {} | {} | {} | {} | {mask} | {} | {} |",
            r.game,
            r.max_value,
            r.max_at,
            known(r.rares),
            known(r.last_rare),
            known(r.theorem),
            r.checked_through
        );
    }
    text
}

fn known<T: ToString>(number: Option<T>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

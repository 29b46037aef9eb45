//! The preparation of a run: decides by the files of the directory whether to create a run, to resume it, or to refuse.

use super::admission::{RoomRequest, check_keep, check_room, check_unoccupied};
use super::context::{Context, Prepared};
use super::create::create;
use super::reader::check_rule;
use super::resume::resume;
use crate::checkpoint::journal::{self, Journal, StatedGame};
use crate::error::{Damage, Error, NoRunReason, Result};
use crate::table::{self, HEADER, Width, length_of};
use crate::theory::rule::Rule;
use std::path::Path;

/// Maximum length of the name of a game, in characters: what fits a record of 4096 bytes beside the other fields.
const LONGEST_NAME: usize = 2048;

/// Creates or resumes the run of the directory.
pub(super) fn prepare(rule: Option<&Rule>, context: &mut Context) -> Result<Prepared> {
    let Context { dir, options, .. } = *context;
    let length = |name: &str| length_of(dir, name);
    // In this order: a process that creates a run creates the journal before the tables.
    let has_data = length(table::VALUES)?.is_some() || length(table::ESCAPES)?.is_some();
    let fresh = length(journal::NAME)?.is_none();
    let no_run = |why| Error::NoRun { path: dir.path().into(), why };
    if let Some(rule) = rule.filter(|rule| rule.name().len() > LONGEST_NAME) {
        let length = rule.name().len();
        return Err(Error::LongName { length, most: LONGEST_NAME });
    }
    if fresh {
        if has_data && !(options.rollback && rule.is_some()) {
            let game = rule.map(|rule| rule.name().to_owned());
            return Err(no_run(NoRunReason::LostJournal { journal: journal::NAME, game }));
        }
        let Some(rule) = rule else { return Err(no_run(NoRunReason::NoGame)) };
        check_unoccupied(dir)?;
        if let Some(keep) = options.keep {
            check_keep(dir.path(), rule, options, keep, 0)?;
        }
        let width = options.width.unwrap_or(Width::U8);
        check_room(dir, &RoomRequest { to: options.to, keep: options.keep, width, lookback: 0 }, None)?;
        dir.make().map_err(Error::io("making", dir.path()))?;
    }
    let (journal, contents) = if options.rollback { Journal::open_to_roll_back(dir)? } else { Journal::open(dir)? };
    let stated = match (&contents, journal.game_after_damage()) {
        (None, Some(game)) => Some(stated_rule(dir.path(), rule, game)?),
        _ => None,
    };
    match (contents, rule.or(stated.as_ref())) {
        (Some(contents), rule) => {
            if let Some(rule) = rule {
                check_rule(dir.path(), rule, &contents.last)?;
            }
            resume(context, journal, contents)
        }
        (None, None) => Err(no_run(NoRunReason::NoGameRecorded)),
        (None, Some(rule)) => {
            // A kill before the first record leaves empty tables. Values without a record are set aside only on
            // request.
            for name in [table::VALUES, table::ESCAPES] {
                let path = dir.join(name);
                if length(name)?.unwrap_or(0) > HEADER && !options.rollback {
                    let damage = Damage::ValuesWithoutRecord { game: rule.name().to_owned() };
                    return Err(Error::Damage { path, offset: HEADER, damage });
                }
            }
            create(context, journal, rule)
        }
    }
}

/// The rule that a record after the damage of a journal states, which must be `named` if the user named one.
fn stated_rule(dir: &Path, named: Option<&Rule>, game: &StatedGame) -> Result<Rule> {
    let found = game.name.escape_default().to_string();
    let expected = named.map_or("a game of this program", Rule::name).to_owned();
    let mismatch =
        || Error::Mismatch { path: dir.into(), what: "the game", found: found.clone(), expected: expected.clone() };
    let rule: Rule = game.name.parse().map_err(|_| mismatch())?;
    let agrees = |rule: &Rule| rule.digest() == game.rule;
    let agrees = agrees(&rule) && named.is_none_or(agrees);
    if agrees { Ok(rule) } else { Err(mismatch()) }
}

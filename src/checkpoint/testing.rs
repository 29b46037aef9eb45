//! For tests of the repository: writes run directories with given values and records, right or wrong.

use super::journal::{Journal, Record};
use crate::error::Result;
use crate::storage::Dir;
use crate::table::Table;
use crate::table::digest::DigestChain;
use std::path::Path;

/// Writes a run directory with these values, right or wrong, whose journal has the one record `record`, with the digest
/// of the values.
///
/// # Errors
/// The errors of writing table and journal.
pub fn forge_run(dir: &Path, values: &[u16], mut record: Record) -> Result<()> {
    let dir = Dir::at(dir);
    let mut table = Table::create(&dir, record.width)?;
    table.write(values)?;
    table.sync()?;
    let mut chain = DigestChain::new();
    chain.update(values);
    record.digest = chain.digest().to_string();
    Journal::open(&dir)?.0.append(record)?;
    table.publish()
}

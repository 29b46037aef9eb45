//! Values as a Parquet file, which DuckDB, Polars, pandas, Arrow and Spark read: the columns `n` (unsigned, 64 bits)
//! and `value` (unsigned, 16 bits), without compression.
//!
//! The numbers n are written as differences and the values as indices into a dictionary, so a row takes little more
//! than the bits of its value. Each row group is written to memory first, so that memory holds one at a time. The
//! metadata in the footer name the game, the program, the range and the digest of the values.

use super::values::in_pieces;
use anyhow::Result;
use grundy::table::digest::DigestChain;
use grundy::theory::definition::Sequence;
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Stored};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// Number of rows in a row group.
const GROUP: u64 = 1 << 20;

/// Number of rows passed to the writer at a time.
const PIECE: u64 = 1 << 16;

/// Bounds on the size of a file with `count` values of at most `largest`, in bytes.
pub(super) fn size(count: u64, largest: u16, game: &str) -> (u64, u64) {
    // An index takes the bits of `largest` and, where runs alternate with other values, at most one more on average; n
    // takes at most 8 bytes for 128 rows.
    let bits = u64::from(u16::BITS - largest.leading_zeros()) + 1;
    let rows = count.div_ceil(8).saturating_mul(bits).saturating_add(count.div_ceil(16));
    // Each group has headers, and a dictionary with 4 bytes per value.
    let each = 256 + 4 * (u64::from(largest) + 1).min(count);
    let groups = count.div_ceil(GROUP).saturating_mul(each);
    let footer = 192 + (grundy::PROGRAM.len() + game.len()) as u64;
    (count / 64, rows.saturating_add(groups).saturating_add(footer))
}

/// Writes the values of `range`; `at` receives each n at which a piece begins.
pub(super) fn write(
    values: &dyn Sequence,
    range: &Range<u64>,
    game: &str,
    mut at: impl FnMut(u64),
    out: &mut dyn Write,
) -> Result<()> {
    let mut chain = DigestChain::new();
    let mut file = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties()))?;
    let mut from = range.start;
    while from < range.end {
        let to = range.end.min(from + GROUP);
        let mut group = file.next_row_group()?;
        let column = || ParquetError::General("a column of the schema is missing".into());
        let mut numbers = group.next_column()?.ok_or_else(column)?;
        for first in (from..to).step_by(PIECE as usize) {
            // The bits of an unsigned number, as the format stores it.
            let piece: Vec<i64> = (first..to.min(first + PIECE)).map(u64::cast_signed).collect();
            numbers.typed::<Int64Type>().write_batch(&piece, None, None)?;
        }
        numbers.close()?;
        let mut column = group.next_column()?.ok_or_else(column)?;
        in_pieces(values, from..to, |first, piece| {
            at(first);
            chain.update(piece);
            let piece: Vec<i32> = piece.iter().map(|&value| value.into()).collect();
            column.typed::<Int32Type>().write_batch(&piece, None, None)?;
            Ok(())
        })?;
        column.close()?;
        group.close()?;
        drain(&mut file, out)?;
        from = to;
    }
    let (start, end) = (range.start.to_string(), range.end.to_string());
    let digest = chain.digest().to_string();
    let facts = [("game", game), ("program", grundy::PROGRAM), ("from", &start), ("to", &end), ("digest", &digest)];
    for (key, value) in facts {
        file.append_key_value_metadata(KeyValue::new(key.to_owned(), value.to_owned()));
    }
    file.finish()?;
    drain(&mut file, out)
}

/// Moves what was written to memory to `out`.
fn drain(file: &mut SerializedFileWriter<Vec<u8>>, out: &mut dyn Write) -> Result<()> {
    file.flush()?;
    out.write_all(file.inner())?;
    // The writer counts the bytes of the file itself.
    file.inner_mut().clear();
    Ok(())
}

/// The columns, both without missing values.
fn schema() -> Result<Arc<Type>> {
    let column = |name, stored, bits| {
        let unsigned = Some(LogicalType::integer(bits, false));
        let builder = Type::primitive_type_builder(name, stored).with_repetition(Repetition::REQUIRED);
        builder.with_logical_type(unsigned).build().map(Arc::new)
    };
    let fields = vec![column("n", Stored::INT64, 64)?, column("value", Stored::INT32, 16)?];
    Ok(Arc::new(Type::group_type_builder("values").with_fields(fields).build()?))
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_column_dictionary_enabled("n".into(), false)
        .set_column_encoding("n".into(), Encoding::DELTA_BINARY_PACKED)
        // Readers skip whole groups by their least and largest n; an index of the pages would double the footer.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(GROUP as usize)
        .build()
}

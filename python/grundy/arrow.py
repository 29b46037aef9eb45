"""Runs as Arrow tables and Parquet files, for DuckDB, Polars, pandas and R. Needs pyarrow.

A table has one row per value, with the columns n (uint64) and value (uint16), neither of which has
missing values, and the metadata that docs/FORMAT.md describes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as e:
    raise ImportError(f"{e}; install it: python3 -m pip install pyarrow") from e

from .files import refuse_run_directory, replacing

if TYPE_CHECKING:
    from .run import Run

ROWS = 1 << 20  # number of rows of a batch and of a row group
ROW_BYTES = 10
TABLE_LIMIT = 10**9  # maximum number of bytes of an Arrow table in memory


def table(run: Run, start: int, stop: int) -> pyarrow.Table:
    """Returns the values [start, stop) as a table. Raises ValueError if it would exceed 1 GB."""
    if (stop - start) * ROW_BYTES > TABLE_LIMIT:
        raise ValueError(
            f"{run.path!r}: {stop - start} rows take more than {TABLE_LIMIT} bytes; select a range,"
            " read run.to_batches(), or write a file with run.to_parquet(path)"
        )
    return batches(run, start, stop).read_all()


def batches(run: Run, start: int, stop: int) -> pyarrow.RecordBatchReader:
    """Returns a reader of the values [start, stop), which reads a batch at a time."""
    schema = _schema(run, start, stop)
    return pyarrow.RecordBatchReader.from_batches(schema, _batches(run, schema, start, stop))


def write_parquet(run: Run, path: str, start: int, stop: int) -> None:
    """Writes the values [start, stop) to the Parquet file `path`, complete or not at all.

    Raises ValueError if `path` lies in a run directory, and OSError, which names `path`, if the
    file cannot be created or replaced.
    """
    refuse_run_directory(path)
    schema = _schema(run, start, stop)
    with replacing(path) as file:
        with pyarrow.parquet.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=["value"],
            column_encoding={"n": "DELTA_BINARY_PACKED"},
        ) as writer:
            for batch in _batches(run, schema, start, stop):
                writer.write_batch(batch, row_group_size=ROWS)


def _schema(run: Run, start: int, stop: int) -> pyarrow.Schema:
    metadata = {
        "game": run.game,
        "program": run.last_record["program"],
        "from": str(start),
        "to": str(stop),
    }
    if (start, stop) == (0, run.count):
        metadata["digest"] = run.last_record["digest"]
    return pyarrow.schema(
        [
            pyarrow.field("n", pyarrow.uint64(), nullable=False),
            pyarrow.field("value", pyarrow.uint16(), nullable=False),
        ],
        metadata,
    )


def _batches(
    run: Run, schema: pyarrow.Schema, start: int, stop: int
) -> Iterator[pyarrow.RecordBatch]:
    for first, values in run.chunks(ROWS, start, stop):
        n = np.arange(first, first + len(values), dtype=np.uint64)
        columns = [pyarrow.array(n), pyarrow.array(values)]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)

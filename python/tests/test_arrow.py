"""Tests of Arrow tables and Parquet files, and of the libraries that read them.

A library that is not installed is skipped; `pytest -rs` prints which.
"""

import os
import subprocess

import grundy
import numpy as np
import pytest
from fake_run import punch, random_values, write_run

pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

COUNT = 5000


@pytest.fixture
def pair(tmp_path):
    """Returns a run and its values, some of which are 255 or more."""
    values = random_values(41, COUNT, 400)
    values[[0, 5, 4999]] = [65535, 0, 255]
    return grundy.open_run(write_run(tmp_path / "r", values, game="grundy")), values


@pytest.fixture
def file(pair, tmp_path):
    """Returns a Parquet file of the run."""
    pair[0].to_parquet(tmp_path / "values.parquet")
    return str(tmp_path / "values.parquet")


def test_table_has_rows_types_and_metadata(pair):
    run, values = pair
    for start, stop in [(0, COUNT), (17, 4000), (9, 9)]:
        table = run.to_arrow(start, stop)
        assert [str(field.type) for field in table.schema] == ["uint64", "uint16"]
        assert not any(field.nullable for field in table.schema)
        assert table["n"].to_pylist() == list(range(start, stop))
        assert np.array_equal(table["value"].to_numpy(), values[start:stop])
        metadata = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
        assert metadata["game"] == "grundy" and metadata["from"] == str(start)
        assert metadata["to"] == str(stop) and ("digest" in metadata) == (stop == COUNT)


def test_links_and_devices_are_written_to_and_not_replaced(pair, tmp_path):
    run, values = pair
    (tmp_path / "old").write_text("old")
    os.symlink("old", tmp_path / "link")
    run.to_parquet(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    table = parquet.read_table(tmp_path / "old")
    assert np.array_equal(table["value"].to_numpy(), values)
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    run.to_parquet(tmp_path / "pipe")
    assert reader.communicate()[0] == (tmp_path / "old").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["link", "old", "pipe", "r"]
    run.to_parquet(tmp_path / ("x" * 254))


def test_batches_are_read_as_they_are_used(pair, monkeypatch):
    from grundy import arrow

    monkeypatch.setattr(arrow, "ROWS", 1000)
    run, values = pair
    reads, read = [], run.values
    monkeypatch.setattr(run, "values", lambda a, b: reads.append((a, b)) or read(a, b))
    batches = run.to_batches(500, 4200)
    assert reads == []
    sizes = [batch.num_rows for batch in batches]
    assert sizes == [1000, 1000, 1000, 700] and len(reads) == 4


def test_table_above_a_gigabyte_is_refused(pair, monkeypatch):
    from grundy import arrow

    monkeypatch.setattr(arrow, "TABLE_LIMIT", 10 * 99)
    assert pair[0].to_arrow(0, 99).num_rows == 99
    with pytest.raises(ValueError, match=r"run\.to_batches\(\).*run\.to_parquet"):
        pair[0].to_arrow(0, 100)


def test_run_is_a_stream_of_the_arrow_c_interface(pair, monkeypatch):
    from grundy import arrow

    monkeypatch.setattr(arrow, "ROWS", 1000)
    run, values = pair
    for _ in range(2):
        table = pyarrow.table(run)
        assert table.schema.equals(run.to_arrow().schema, check_metadata=True)
        assert table["value"].num_chunks == 5
        assert table["n"].to_pylist() == list(range(COUNT))
        assert table["value"].to_pylist() == values.tolist()
    wanted = pyarrow.schema([("n", pyarrow.int64()), ("value", pyarrow.int32())])
    assert pyarrow.table(run, schema=wanted)["value"].to_pylist() == values.tolist()


def test_run_with_discarded_values_is_no_stream(tmp_path):
    path = write_run(tmp_path / "r", random_values(43, 3000), kept=[[0, 1000], [2000, 3000]])
    punch(path, 1000, 2000)
    with pytest.raises(grundy.Discarded, match=r"G\(1000\)"):
        pyarrow.table(grundy.open_run(path))


def test_parquet_file_has_the_layout_of_the_program(pair, tmp_path, monkeypatch):
    from grundy import arrow

    monkeypatch.setattr(arrow, "ROWS", 1 << 10)
    run, values = pair
    run.to_parquet(str(tmp_path / "p"), 10, 4000)
    file = parquet.ParquetFile(tmp_path / "p")
    assert np.array_equal(file.read()["value"].to_numpy(), values[10:4000])
    assert file.metadata.num_row_groups == 4
    n, value = (file.metadata.row_group(1).column(i) for i in range(2))
    assert (n.statistics.min, n.statistics.max) == (10 + 1024, 10 + 2047)
    assert "DELTA_BINARY_PACKED" in n.encodings and "RLE_DICTIONARY" in value.encodings
    assert file.schema_arrow.metadata[b"to"] == b"4000"


def test_parquet_file_is_complete_or_absent(pair, tmp_path):
    run, _ = pair
    values = random_values(42, 3000, 200)
    path = write_run(tmp_path / "holed", values, kept=[[0, 1000], [2000, 3000]])
    punch(path, 1000, 2000)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "p"
    target.write_text("before")
    with pytest.raises(grundy.Discarded):
        grundy.open_run(path).to_parquet(target)
    assert os.listdir(tmp_path / "out") == ["p"] and target.read_text() == "before"
    grundy.open_run(path).to_parquet(target, 2000, 3000)
    assert os.listdir(tmp_path / "out") == ["p"] and parquet.read_table(target).num_rows == 1000
    assert target.stat().st_mode & 0o111 == 0


def test_parquet_file_in_a_run_directory_is_refused(pair, tmp_path, monkeypatch):
    run, _ = pair
    other = write_run(tmp_path / "other", random_values(43, 100, 200))
    table = os.path.join(other, "values.npy")
    with open(table, "rb") as file:
        before = file.read()
    os.symlink(other, tmp_path / "link")
    (tmp_path / "disk").write_text("a part of the run on another disk")
    os.symlink(tmp_path / "disk", os.path.join(other, "elsewhere"))
    os.mkdir(os.path.join(other, "sub"))
    names = sorted(os.listdir(other))
    monkeypatch.chdir(other)
    for path in [
        os.path.join(run.path, "x.parquet"),
        table,
        "values.npy",
        tmp_path / "link" / "values.npy",
        os.path.join(other, "elsewhere"),
        os.path.join(other, "sub", "x.parquet"),
    ]:
        with pytest.raises(ValueError, match="is a run directory"):
            run.to_parquet(path)
    with open(table, "rb") as file:
        assert file.read() == before
    assert sorted(os.listdir(other)) == names and os.path.islink("elsewhere")


def test_parquet_file_that_cannot_be_written_is_named(pair, tmp_path):
    (tmp_path / "folder").mkdir()
    for path in [tmp_path / "nodir" / "x.parquet", tmp_path / "folder"]:
        with pytest.raises(OSError) as error:
            pair[0].to_parquet(path)
        assert error.value.filename == str(path) and ".part" not in str(error.value)
    assert isinstance(error.value, IsADirectoryError) and os.listdir(tmp_path / "folder") == []


def test_pandas_reads_the_file_and_the_arrays(pair, file):
    pandas = pytest.importorskip("pandas", exc_type=ImportError)
    run, values = pair
    frame = pandas.read_parquet(file)
    assert frame["n"].tolist() == list(range(COUNT)) and frame["value"].tolist() == values.tolist()
    assert pandas.Series(np.asarray(run)).tolist() == values.tolist()
    assert pandas.Series(run).tolist() == values.tolist()
    assert pandas.DataFrame(run.records())["n"].tolist() == run.records()["n"].tolist()
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(run)["value"].tolist() == values.tolist()
    assert pandas.DataFrame(run.escapes)["v"].tolist() == values[values >= 255].tolist()


def test_polars_reads_the_file_and_the_batches(pair, file):
    polars = pytest.importorskip("polars", exc_type=ImportError)
    run, values = pair
    zeros = polars.scan_parquet(file).filter(polars.col("value") == 0).select("n").collect()
    assert zeros["n"].to_list() == np.flatnonzero(values == 0).tolist()
    assert polars.from_arrow(run.to_arrow())["value"].to_list() == values.tolist()
    assert polars.DataFrame(run)["value"].to_list() == values.tolist()


def test_duckdb_queries_the_file_and_the_batches(pair, file):
    duckdb = pytest.importorskip("duckdb", exc_type=ImportError)
    run, values = pair
    query = "select n from {} where value = 0 order by n"
    expected = [(n,) for n in np.flatnonzero(values == 0).tolist()]
    assert duckdb.sql(query.format(f"'{file}'")).fetchall() == expected
    batches = run.to_batches()
    assert duckdb.sql(query.format("batches")).fetchall() == expected
    assert batches.schema.names == ["n", "value"]
    for _ in range(2):
        assert duckdb.sql(query.format("run")).fetchall() == expected

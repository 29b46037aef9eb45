"""Writes run directories of format 2 for the tests, from the documented format alone.

The sparse space of the runs is fictitious: mask 15, without a position term, and h = 0, unless a
test states another.
"""

import json
import os

import numpy as np

try:
    from blake3 import blake3
except ImportError:
    blake3 = None

ESCAPE = [("n", "<u8"), ("v", "<u2")]


def npy_header(descr, shape):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': ({shape},), }}"
    return b"\x93NUMPY\x01\x00" + (4086).to_bytes(2, "little") + text.encode().ljust(4085) + b"\n"


def record_line(**fields):
    text = json.dumps({**fields, "blake3": " " * 64}).encode()
    line = text.ljust(4095) + b"\n"
    digest = blake3(line).hexdigest() if blake3 else f"{fields['sequence']:064}"
    at = len(text) - 66
    assert line[at : at + 64] == b" " * 64
    return line[:at] + digest.encode() + line[at + 64 :]


def next_line(path, values, width="u8", **changes):
    """Returns the line of a record that follows the last line of the journal of `path`."""
    with open(os.path.join(path, "journal.jsonl"), "rb") as file:
        last = json.loads(file.read()[-4096:])
    changes = {"sequence": last["sequence"] + 1, "previous": last["blake3"], **changes}
    return record_line(**fields(values, width, **changes))


def fields(values, width="u8", **changes):
    values = np.asarray(values)
    mask, position = changes.get("mask", 15), changes.get("position", 0)
    parity = changes.pop("parity", 0)
    pairs = enumerate(values.tolist())
    rares = [n for n, v in pairs if is_rare(n, v, mask, position, parity)]
    return {
        "format": 2,
        "run": "0123456789abcdef0123456789abcdef",
        "game": "kayles",
        "rule": "0" * 64,
        "sequence": 0,
        "event": "commit",
        "time": "2026-11-22T20:49:00Z",
        "seconds": 7,
        "count": len(values),
        "escapes": int((values >= 255).sum()) if width == "u8" else 0,
        "width": width,
        "mask": 15,
        "position": 0,
        "kept": [[0, len(values)]],
        "digest": "0" * 64,
        "rares": len(rares),
        "last_rare": rares[-1] if rares else 0,
        "max_value": int(values.max(initial=0)),
        "max_at": int(values.argmax()) if len(values) else 0,
        "checks": {},
        "errors": 0,
        "suspect": None,
        "kernel": "test",
        "program": "grundy 0.1.0 (0123456789ab, x86_64-unknown-linux-gnu)",
        "previous": "0" * 64,
        **changes,
    }


def is_rare(n, value, mask=15, position=0, parity=0):
    """Whether a value is rare at n, by the definition."""
    return n == 0 or (bin(value & mask).count("1") + position * n + parity) % 2 == 0


def write_run(path, values, width="u8", shape=None, entries=None, **changes):
    """Writes a run directory with one commit record, and returns its path.

    shape    shape in the header of values.npy, if it differs from the number of values
    entries  content of escapes.npy, if it differs from that of the values
    """
    os.makedirs(path, exist_ok=True)
    values = np.asarray(values, np.uint16)
    shape = len(values) if shape is None else shape
    with open(os.path.join(path, "values.npy"), "wb") as file:
        if width == "u8":
            file.write(npy_header("'|u1'", shape) + saturated(values))
        else:
            file.write(npy_header("'<u2'", shape) + values.astype("<u2").tobytes())
    if width == "u8":
        if entries is None:
            entries = escapes(values)
        with open(os.path.join(path, "escapes.npy"), "wb") as file:
            file.write(npy_header(repr(ESCAPE), len(entries)) + np.array(entries, ESCAPE).tobytes())
        changes.setdefault("escapes", len(entries))
    with open(os.path.join(path, "journal.jsonl"), "wb") as file:
        file.write(record_line(**fields(values, width, **changes)))
    return str(path)


def saturated(values):
    return np.minimum(values, 255).astype("u1").tobytes()


def escapes(values, start=0):
    return [(start + n, values[n]) for n in np.flatnonzero(np.asarray(values) >= 255).tolist()]


def append(path, name, data):
    with open(os.path.join(path, name), "ab") as file:
        file.write(data)


def random_values(seed, count, top=700):
    print("seed", seed)
    return np.random.default_rng(seed).integers(0, top, count, dtype=np.uint16)


def punch(path, a, b):
    """Overwrites the values from a to b with zeros, as a hole reads. The escapes stay."""
    with open(os.path.join(path, "values.npy"), "r+b") as file:
        file.seek(4096 + a)
        file.write(bytes(b - a))


class Writer:
    """Writes a run with `--keep` step by step, in the order of the real program.

    Frees whole segments between `head` and the last `keep` values. One step writes the counts, the
    snapshot and the record; the next step punches the hole and removes the previous snapshot.
    """

    def __init__(self, path, values, segment, head, keep, parity=0):
        self.path, self.values, self.parity = str(path), np.asarray(values, np.uint16), parity
        self.segment, self.head, self.keep = segment, head, keep
        self.count, self.discarded, self.records, self.named = 0, head, [], []
        os.makedirs(path)
        for name, descr in [("values.npy", "'|u1'"), ("escapes.npy", repr(ESCAPE))]:
            append(path, name, npy_header(descr, 0))
        append(path, "journal.jsonl", b"")

    def step(self, values):
        """Commits the next `values` values, and discards every segment that may be discarded."""
        start, self.count = self.count, min(self.count + values, len(self.values))
        new = self.values[start : self.count]
        append(self.path, "values.npy", saturated(new))
        append(self.path, "escapes.npy", np.array(escapes(new, start), ESCAPE).tobytes())
        twice = self.discarded
        end = max(self.count - self.keep, 0) // self.segment * self.segment
        if end > self.discarded:
            self.write_counts(self.discarded, end)
            self.discarded = end
            self.write_snapshot()
        self.commit()
        punch(self.path, self.head, twice)
        while len(self.named) > 2:
            os.remove(os.path.join(self.path, self.named.pop(0)["name"]))

    def write_counts(self, start, stop):
        for a in range(start, stop, self.segment // 4):
            b = a + self.segment // 4
            counts = np.bincount(self.values[a:b]).tolist()
            line = json.dumps({"from": a, "to": b, "counts": counts}).encode() + b"\n"
            append(self.path, "counts.jsonl", line)

    def write_snapshot(self):
        gone = self.values[self.head : self.discarded].tolist()
        maxima = []
        for n, value in enumerate(gone, self.head):
            if not maxima or value > maxima[-1][1]:
                maxima.append([n, value])
        content = {
            "run": fields([])["run"],
            "from": self.head,
            "to": self.discarded,
            "digest": f"{self.discarded:064}",
            "mask": 15,
            "position": 0,
            "rares": self.rares(gone),
            "maxima": maxima,
            "histogram": np.bincount(gone).tolist(),
        }
        data = json.dumps(content).encode() + b"\n"
        name = f"snapshot-{self.discarded}.json"
        append(self.path, name, data)
        digest = blake3(data).hexdigest() if blake3 else "0" * 64
        self.named.append({"name": name, "blake3": digest})

    def rares(self, gone):
        pairs = enumerate(gone, self.head)
        return [[n, v] for n, v in pairs if is_rare(n, v, parity=self.parity)]

    def commit(self, **changes):
        values = self.values[: self.count]
        if self.discarded > self.head:
            changes["kept"] = [[0, self.head], [self.discarded, self.count]]
            changes["keep"] = self.keep
            changes["snapshot"] = self.named[-1]
        if self.records:
            changes["previous"] = self.records[-1]["blake3"]
        changes = {"sequence": len(self.records), "digest": f"{self.count:064x}", **changes}
        changes["parity"] = self.parity
        line = record_line(**fields(values, **changes))
        self.records.append(json.loads(line))
        append(self.path, "journal.jsonl", line)

#!/usr/bin/env python3
"""Writes what a run found as a text to keep: status, records, zeros and the digest of every segment.

    python3 scripts/results.py runs/grundy --command 'grundy run grundy --to 2^34 --keep 1G' > data/results/grundy-2-34.md

The values that are kept are read once. What is known of freed ones comes from the snapshot that the journal names.
"""

import argparse
import json
import os
import platform
import sys

import numpy as np

import grundy_table

SEGMENT = 1 << 24


def records(directory):
    """All records of the journal, in order."""
    with open(os.path.join(directory, "journal.jsonl"), "rb") as journal:
        while line := journal.read(grundy_table.RECORD):
            if len(line) == grundy_table.RECORD:
                yield json.loads(line)


def segments(directory):
    """The digest at the end of every whole segment that the run still stands by: {count: digest}."""
    digests = {}
    for record in records(directory):
        if record["event"] == "rollback":
            digests = {count: digest for count, digest in digests.items() if count <= record["count"]}
        if record["count"] % SEGMENT == 0 and record["count"] > 0:
            digests[record["count"]] = record["digest"]
    return digests


def census(run, snapshot):
    """Running maxima [(n, value)], how often 0 occurs, the last kept zero, over kept and freed values."""
    maxima, zeros, last_zero = [], 0, None
    kept = [(a, b, None) for a, b in run.kept]
    freed = [(snapshot["from"], snapshot["to"], snapshot)] if snapshot else []
    for a, b, gone in sorted(kept + freed, key=lambda part: part[0]):
        if gone:
            found = [tuple(pair) for pair in gone["maxima"]]
            zeros += gone["histogram"][0]
        else:
            found = []
            for start, values in run.chunks(a, b):
                best = max((v for _, v in (maxima + found)[-1:]), default=-1)
                while (larger := np.flatnonzero(values > best)).size:
                    best = int(values[larger[0]])
                    found.append((start + int(larger[0]), best))
                at = np.flatnonzero(values == 0)
                zeros += int(at.size)
                last_zero = start + int(at[-1]) if at.size else last_zero
        for n, value in found:
            if not maxima or value > maxima[-1][1]:
                maxima.append((int(n), int(value)))
    return maxima, zeros, last_zero


def machine():
    """The processor and the system, in a line."""
    name = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            name = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="a run directory")
    parser.add_argument("--command", help="the command that made it")
    parser.add_argument("--commit", help="the commit of the program that made it")
    parser.add_argument("--note", action="append", default=[], help="a line more (time, rate); may be repeated")
    options = parser.parse_args(arguments)
    try:
        run = grundy_table.open_run(options.directory)
        last = list(records(options.directory))[-1]
        snapshot = None
        if last.get("snapshot"):
            with open(os.path.join(options.directory, last["snapshot"]["name"]), encoding="utf-8") as file:
                snapshot = json.load(file)
        maxima, zeros, last_zero = census(run, snapshot)
        digests = segments(options.directory)
    except (grundy_table.RunError, OSError) as error:
        print(f"results.py: {error}", file=sys.stderr)
        return 1
    print(f"# {run.game}, {run.count} values\n")
    for name, text in [("command", options.command), ("commit", options.commit)]:
        if text:
            print(f"- {name}: `{text}`")
    print(f"- machine: {machine()}")
    for note in options.note:
        print(f"- {note}")
    for key in ["count", "width", "mask", "position", "rares", "last_rare", "max_value", "max_at", "escapes", "kernel",
                "program", "checks", "errors", "kept", "digest"]:
        print(f"- {key}: {json.dumps(last[key])}")
    print(f"- zeros: {zeros}, the last among the kept values at {last_zero}\n")
    print("## New maxima\n\n| n | G(n) |\n|---|---|")
    for n, value in maxima:
        print(f"| {n} | {value} |")
    print("\n## Digests\n\nOf the values 0 to count - 1, at the end of every segment of 2^24 values.\n\n```text")
    for count, digest in sorted(digests.items()):
        print(count, digest)
    print("```")
    return 0


if __name__ == "__main__":
    sys.exit(main())

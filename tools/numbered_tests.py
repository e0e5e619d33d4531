# SPDX-License-Identifier: Apache-2.0
"""Shared by tools/pitfalls and tools/cases: tables of numbers whose last column names the tests."""
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def scan(names_in, numbers_in):
    """number → file without ending → names of tests; a network test has none.

    names_in(text) gives pairs of a number and a test's name, numbers_in(text) those a script says.
    """
    tests = defaultdict(lambda: defaultdict(list))
    for path in sorted((ROOT / "Tests").rglob("*")):
        if path.suffix in {".c", ".swift", ".py"}:
            for number, name in names_in(path.read_text(encoding="utf-8")):
                names = tests[number][path.stem.removesuffix("_test")]
                if name not in names:
                    names.append(name)
        elif path.suffix == ".sh" and path.name != "lib.sh":
            for number in numbers_in(path.read_text(encoding="utf-8")):
                tests[number][f"{path.parent.name}/{path.stem}"] = []
    return tests


def cell(files):
    parts = []
    for file, names in sorted(files.items()):
        names = ", ".join(name.replace("_", " ") for name in names)
        parts.append(f"`{file}`" + (f": {names}" if names else ""))
    return "; ".join(parts)


def filled(text, tests, row, begin, end):
    """The document with the last column filled, and the numbers its table has. `row` matches a
    line: what stands before the last column, with the number in it as group "number"."""
    head, rest = text.split(begin)
    table, tail = rest.split(end)
    numbers, lines = set(), []
    for line in table.split("\n"):
        match = re.match(row, line)
        if match:
            number = int(match["number"])
            numbers.add(number)
            line = f"{match['before']}| {cell(tests.get(number, {}))} |"
        lines.append(line)
    return head + begin + "\n".join(lines) + end + tail, numbers

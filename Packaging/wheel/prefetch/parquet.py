"""Writes a Parquet file beside each shard of an exported data set, as img2dataset does.

Usage: python -m prefetch.parquet FOLDER

`prefetch export FOLDER --layout webdataset` writes the shards. NNNNN.parquet has a row for each entry
of a shard: the members of the samples' JSON in NNNNN.tar, and of the lines in NNNNN_failed.jsonl, with
status and error_message. Columns of other names are numbers if all their values in all shards are
numbers without leading zeros, booleans if all are, and otherwise texts, of objects and lists their JSON. Needs pyarrow. Files are put in place whole, and a repeated call writes
the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tarfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    sys.exit(
        "prefetch.parquet: pyarrow is not installed\n"
        f"hint: {sys.executable} -m pip install pyarrow")

# The same in all shards, also where a column is empty.
TYPES = {
    "url": pyarrow.string(), "caption": pyarrow.string(), "key": pyarrow.string(),
    "status": pyarrow.string(), "error_message": pyarrow.string(), "width": pyarrow.int32(),
    "height": pyarrow.int32(), "original_width": pyarrow.int32(),
    "original_height": pyarrow.int32(), "sha256": pyarrow.string(),
}
INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
FAILED = "_failed.jsonl"


def rows(shard: Path) -> Iterator[Dict[str, Any]]:
    """The metadata of a shard's entries, in the order of the list; `shard` has no extension."""
    found: List[Dict[str, Any]] = []
    tar, failed = shard.with_suffix(".tar"), shard.with_name(shard.name + FAILED)
    if tar.exists():
        with tarfile.open(tar) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.name.endswith(".json") else None
                if file is not None:
                    found.append(json.load(file))
    if failed.exists():
        found += [json.loads(line) for line in failed.read_bytes().splitlines()]
    if not all(isinstance(row, dict) for row in found):
        raise ValueError(f"{shard.name}: the metadata is not an object")
    return iter(sorted(found, key=lambda row: str(row.get("key"))))


def is_long(value: int) -> bool:
    return -2**63 <= value < 2**63


class Column:
    """The type of a column, after all its values."""

    def __init__(self) -> None:
        self.kinds: Set[type] = set()
        # All integers, or texts, of 64 bits; all texts.
        self.is_integer = self.is_number = True

    def add(self, value: Any) -> None:
        if value is None or value == "":
            return
        self.kinds.add(type(value))
        if isinstance(value, str):
            digits = sum(map(str.isdigit, re.split("[eE]", value)[0]))
            self.is_integer = self.is_integer and INTEGER.fullmatch(value) is not None and is_long(
                int(value))
            # A double has 15 decimal digits: others would be lost.
            self.is_number = (
                self.is_number and digits <= 15 and NUMBER.fullmatch(value) is not None)
        elif isinstance(value, int):
            self.is_integer = self.is_integer and is_long(value)

    @property
    def type(self) -> pyarrow.DataType:
        if self.kinds == {bool}:
            return pyarrow.bool_()
        if self.kinds in ({int}, {str}) and self.is_integer:
            return pyarrow.int64()
        if float in self.kinds and self.kinds <= {int, float}:
            return pyarrow.float64()
        if self.kinds == {str} and self.is_number:
            return pyarrow.float64()
        return pyarrow.string()


def note(shard: Path, columns: Dict[str, Column]) -> None:
    """Adds the values of a shard to the columns that have no type in TYPES."""
    for row in rows(shard):
        for name, value in row.items():
            if name not in TYPES:
                columns.setdefault(name, Column()).add(value)


def array(values: List[Any], type_: pyarrow.DataType) -> pyarrow.Array:
    if type_ in (pyarrow.int64(), pyarrow.float64()):
        number: Any = int if type_ == pyarrow.int64() else float
        values = [None if value in (None, "") else number(value) for value in values]
    elif type_ == pyarrow.string():
        values = [value if value is None or isinstance(value, str)
                  else json.dumps(value, ensure_ascii=False) for value in values]
    elif type_ == pyarrow.bool_():
        values = [None if value == "" else value for value in values]
    return pyarrow.array(values, type_)


def write(shard: Path, columns: Dict[str, Column]) -> Path:
    """Writes the Parquet file of a shard with these columns, and returns its path."""
    samples = list(rows(shard))
    types = {**TYPES, **{name: column.type for name, column in columns.items()}}
    table = pyarrow.table(
        {name: array([row.get(name) for row in samples], type_) for name, type_ in types.items()})
    path = shard.with_suffix(".parquet")
    # An export removes the leftovers of these names.
    new = shard.with_name(f".prefetch-export-new-{path.name}")
    try:
        pyarrow.parquet.write_table(table, new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
    return path


def shards(folder: Path) -> List[Path]:
    """The shards of a folder, without extensions; a shard may have failed entries only."""
    tars = [tar.with_suffix("") for tar in folder.glob("*.tar")]
    failed = [file.with_name(file.name[:-len(FAILED)]) for file in folder.glob("*" + FAILED)]
    return sorted({*tars, *failed})


def main(arguments: List[str]) -> None:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, end="", file=sys.stderr)
        sys.exit(64)
    found = shards(Path(arguments[0]))
    if not found:
        sys.exit(f"prefetch.parquet: {arguments[0]}: no shards\n"
                 "hint: prefetch export --layout webdataset writes them")
    status = 0
    readable: List[Path] = []
    columns: Dict[str, Column] = {}
    for shard in found:
        try:
            note(shard, columns)
            readable.append(shard)
        except (OSError, ValueError, tarfile.TarError) as error:
            print(f"prefetch.parquet: {shard}: {error}", file=sys.stderr)
            status = 1
    for shard in readable:
        try:
            print(write(shard, columns))
        except (OSError, ValueError, tarfile.TarError, pyarrow.ArrowException) as error:
            print(f"prefetch.parquet: {shard}: {error}", file=sys.stderr)
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])

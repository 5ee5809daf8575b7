"""Writes a Parquet file beside each shard of an exported data set, as img2dataset does.

Usage: python -m prefetch.parquet FOLDER

`prefetch export FOLDER --layout webdataset` writes the shards. NNNNN.parquet has a row for each sample
of NNNNN.tar: the members of its JSON. Needs pyarrow. Files are put in place whole, and a repeated call
writes the same bytes.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Any, Dict, Iterator, List

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    sys.exit("prefetch.parquet: pyarrow is not installed\nhint: pip install pyarrow")

# The same in all shards, also where a column is empty.
TYPES = {
    "url": pyarrow.string(), "caption": pyarrow.string(), "key": pyarrow.string(),
    "status": pyarrow.string(), "error_message": pyarrow.string(), "width": pyarrow.int32(),
    "height": pyarrow.int32(), "original_width": pyarrow.int32(),
    "original_height": pyarrow.int32(), "sha256": pyarrow.string(),
}


def rows(shard: Path) -> Iterator[Dict[str, Any]]:
    """The metadata of a shard's samples, in their order."""
    with tarfile.open(shard) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".json") else None
            if file is not None:
                row = json.load(file)
                if not isinstance(row, dict):
                    raise ValueError(f"{member.name} is not an object")
                yield row


def column(name: str, values: List[Any]) -> pyarrow.Array:
    type_ = TYPES.get(name)
    if type_ is None and all(value is None or isinstance(value, str) for value in values):
        type_ = pyarrow.string()
    try:
        return pyarrow.array(values, type_)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        # Values of several types, as the JSON has them.
        texts = [value if value is None or isinstance(value, str) else json.dumps(value)
                 for value in values]
        return pyarrow.array(texts, pyarrow.string())


def write(shard: Path) -> Path:
    """Writes the Parquet file of a shard, and returns its path."""
    samples = list(rows(shard))
    names = list(TYPES)
    names += [
        name for name in dict.fromkeys(name for row in samples for name in row) if name not in TYPES]
    table = pyarrow.table(
        {name: column(name, [row.get(name) for row in samples]) for name in names})
    path = shard.with_suffix(".parquet")
    # An export removes the leftovers of these names.
    new = shard.with_name(f".prefetch-export-new-{path.name}")
    try:
        pyarrow.parquet.write_table(table, new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
    return path


def main(arguments: List[str]) -> None:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, end="", file=sys.stderr)
        sys.exit(64)
    shards = sorted(Path(arguments[0]).glob("*.tar"))
    if not shards:
        sys.exit(f"prefetch.parquet: {arguments[0]}: no shards\n"
                 "hint: prefetch export --layout webdataset writes them")
    status = 0
    for shard in shards:
        try:
            print(write(shard))
        except (OSError, ValueError, tarfile.TarError, pyarrow.ArrowException) as error:
            print(f"prefetch.parquet: {shard}: {error}", file=sys.stderr)
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Limits that may only fall: `limits.json`, for check-words and check-shape.

A limit belongs to the check's name and a row. Each limit must be at most the lowest that any
commit of the file gave it, so raising one fails in the commit that does it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

LIMITS = Path(__file__).resolve().parent / "limits.json"


def code_folders(root):
    """Sources, and the programs of Tests that keep its rules."""
    return [root / name for name in ("Sources", "Tests/codec-bench", "Tests/scheduler-bench")]


def limits(check):
    return json.loads(LIMITS.read_text())[check]


def lowest_limits(check, versions):
    """The lowest limit of each row in the file's versions."""
    lowest = {}
    for version in versions:
        for row, limit in json.loads(version).get(check, {}).items():
            lowest[row] = min(limit, lowest.get(row, limit))
    return lowest


def committed_versions(folder=LIMITS.parent):
    """The file in each commit that changed it, on any branch that was merged.

    None outside a git repository, and in a shallow clone, which is said.
    """

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", folder, *arguments], text=True, stdout=subprocess.PIPE, check=True
        ).stdout

    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return []
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        print("note: shallow clone: raised limits are not found", file=sys.stderr)
        return []
    commits = git(
        "log", "--full-history", "--format=%H", "--diff-filter=AM", "--", LIMITS.name).split()
    return [git("show", f"{commit}:./{LIMITS.name}") for commit in commits]


def shown(figure):
    return f"{figure:.2f}" if isinstance(figure, float) else f"{figure:,}"


def verdict(figure, limit, lowest):
    """The complaint about one row; empty if its figure is within a limit that has not risen."""
    if limit > lowest:
        return f"  the limit was raised; it was {shown(lowest)}"
    return "  exceeds its limit" if figure > limit else ""


def compare(check, figures, may_rise=()):
    """Prints each figure with its limit. Returns the exit status: 1 if a row has a complaint."""
    rows = limits(check)
    lowest = lowest_limits(check, committed_versions())
    failed = False
    for row, figure in figures.items():
        limit = rows[row]
        complaint = verdict(
            figure, limit, limit if row in may_rise else lowest.get(row, limit))
        failed = failed or bool(complaint)
        print(f"check-{check}: {row:<20} {shown(figure):>8} (limit {shown(limit)}){complaint}")
    if failed:
        print(f"hint: Scripts/check-{check} --list ROW names each place", file=sys.stderr)
    return 1 if failed else 0


def main(check, description, rows, test, count, may_rise=()):
    """Tests a check, lists the places of a row, or compares the figures of a folder."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=rows)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("folder", nargs="?", type=Path, default=LIMITS.parents[2])
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        sys.exit(test())
    counts = count(arguments.folder)
    figures = counts.figures()
    if arguments.list:
        print("\n".join(counts.places[arguments.list]))
        sys.exit(0)
    sys.exit(compare(check, figures, may_rise))


def self_test():
    """A limit must not exceed the lowest of its history, and a figure not its limit."""
    history = ['{"words": {"a": 3, "b": 2}}', '{"words": {"a": 1}}', '{"shape": {"a": 0}}']
    lowest = lowest_limits("words", history)
    assert lowest == {"a": 1, "b": 2}, lowest
    assert verdict(1, 1, 1) == ""
    assert verdict(2, 1, 1) == "  exceeds its limit"
    assert verdict(1, 2, lowest["a"]) == "  the limit was raised; it was 1"
    with tempfile.TemporaryDirectory() as folder:
        assert committed_versions(Path(folder)) == []

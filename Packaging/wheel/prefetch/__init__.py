"""Keeps an on-disk cache of images warm.

    import prefetch

    result = prefetch.run(["https://example.com/hero.jpg"], cache="images")
    for entry in result.failed:
        print(entry.url, entry.message)
    path = prefetch.get("https://example.com/hero.jpg", cache="images")

The package starts the `prefetch` command that it was installed with. Configuration files and
environment variables apply as they do to the command.
"""

from __future__ import annotations

import enum
import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

__all__ = [
    "CacheInUseError", "Entry", "Outcome", "PrefetchError", "Result", "UsageError", "get", "run",
]

StrPath = Union[str, "os.PathLike[str]"]
Row = Union[str, Mapping[str, Any]]


class Outcome(enum.Enum):
    """The end of an entry; every entry has exactly one."""

    DOWNLOADED = "downloaded"
    REVALIDATED = "revalidated"
    FRESH = "fresh"
    DERIVED = "derived"
    DUPLICATE = "duplicate"
    BLACKLISTED = "blacklisted"
    EXCLUDED = "excluded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REQUESTED = "requested"


@dataclass(frozen=True)
class Entry:
    """One URL of a run, from a line of the report."""

    index: int
    """Position among the URLs of the run, from 0."""
    url: str
    """The URL, with secrets masked."""
    outcome: Outcome
    reason: Optional[str]
    """The reason of a failure, or the rule of an exclusion."""
    message: Optional[str]
    """Details for people."""
    http_status: Optional[int]
    path: Optional[Path]
    """The file of the stored image."""
    format: Optional[str]
    width: Optional[int]
    height: Optional[int]
    bytes_received: int
    bytes_stored: Optional[int]
    expires_at: Optional[str]
    """RFC 3339, UTC. None for an image that is validated at every use."""
    key: str
    """The cache key, with secrets masked: the URL, unless the row has another one."""
    sha256: Optional[str]
    """The digest of the file, in hexadecimal digits."""
    columns: Dict[str, Any] = field(default_factory=dict, hash=False)
    """The other columns of the row, like its caption."""


@dataclass(frozen=True)
class Result:
    """The end of a run."""

    entries: Tuple[Entry, ...]
    """All entries, in the order in which they ended; empty with `keep_entries=False`."""
    counts: Dict[Outcome, int]
    """The number of entries by outcome."""
    exit_status: int
    """0 everything is warm, 1 entries failed, 3 a limit left work."""
    cache: Optional[Path]
    """The cache's directory; None for a run that `lock="skip"` skipped."""
    bytes_received: int
    bytes_stored: int
    elapsed_seconds: float

    @property
    def ok(self) -> bool:
        """Whether everything is warm."""
        return self.exit_status == 0

    @property
    def failed(self) -> Tuple[Entry, ...]:
        """The failed and blacklisted entries, as far as entries are kept."""
        wanted = (Outcome.FAILED, Outcome.BLACKLISTED)
        return tuple(entry for entry in self.entries if entry.outcome in wanted)


class PrefetchError(Exception):
    """The command could not do its work. The text is its message, with the hint if it gave one."""

    def __init__(self, message: str, hint: Optional[str], exit_status: int) -> None:
        hints = [] if hint is None else [f"hint: {line}" for line in hint.splitlines()]
        super().__init__("\n".join([message, *hints]))
        self.message = message
        self.hint = hint
        self.exit_status = exit_status


class UsageError(PrefetchError):
    """An option is unknown, or its value is wrong."""


class CacheInUseError(PrefetchError):
    """Another process holds the cache."""


def run(
    urls: Iterable[Row],
    *,
    cache: Optional[StrPath] = None,
    on_progress: Optional[Callable[[Entry], None]] = None,
    keep_entries: bool = True,
    **options: Any,
) -> Result:
    """Downloads the missing and stale images of a list into a cache.

    A row of the list is a URL, or a mapping with one as `url` (`url_column` names another) and any
    columns, like a caption: `entry.columns` returns them. `column="key=id"` makes one a field of the
    list. Rows are read as the command asks for them, on another thread. `on_progress` is called on
    this thread with each entry when it ends; an exception of it ends the run. With
    `keep_entries=False` memory does not grow with the number of URLs.

    `options` are flags of `prefetch run`: `host_concurrency=4` is `--host-concurrency 4`, `True` is
    a switch, `None` and `False` are left out, and a list repeats a flag.

    Raises UsageError, CacheInUseError or another PrefetchError; failed entries raise nothing.
    """
    if isinstance(urls, (str, bytes)):
        raise TypeError(
            "urls is one string; give a list of URLs or of rows, "
            "like pyarrow.parquet.read_table(file).to_pylist()")
    if isinstance(urls, AnyMapping):
        raise TypeError("urls is one row; give a list of rows")
    for name in _OWN_OPTIONS & options.keys():
        raise TypeError(f"prefetch.run sets the option {name} itself")
    arguments = ["run", "-", "--format", "jsonl", "--report", "-", "--absolute-paths"]
    arguments += ["--summary", "none", "--progress", "never", *_cache_flag(cache), *_flags(options)]
    with _start(arguments, stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        messages = _Messages(process.stderr)
        writer = _Writer(urls, process)
        entries: List[Entry] = []
        summary: Dict[str, Any] = {}
        try:
            for line in process.stdout:
                row = json.loads(line)
                if row["type"] == "summary":
                    summary = row
                    continue
                entry = _entry(row)
                if keep_entries:
                    entries.append(entry)
                if on_progress is not None:
                    on_progress(entry)
            status = process.wait()
            writer.finish(waits=status in (0, 1, 3))
        except BaseException:
            process.terminate()
            # The command may wait for a reader of its report.
            process.stdout.close()
            raise
        messages.finish()
    if status not in (0, 1, 3) or not summary and options.get("lock") != "skip":
        raise messages.error(status)
    counts = summary.get("outcomes", {})
    return Result(
        entries=tuple(entries),
        counts={outcome: counts.get(outcome.value, 0) for outcome in Outcome},
        exit_status=status,
        cache=Path(summary["cache_dir"]).absolute() if summary else None,
        bytes_received=summary.get("bytes_received", 0),
        bytes_stored=summary.get("bytes_stored", 0),
        elapsed_seconds=summary.get("elapsed_ms", 0) / 1000,
    )


def get(url: str, *, cache: Optional[StrPath] = None, **options: Any) -> Optional[Path]:
    """Returns the file of a URL's image; None if the image is missing or stale.

    `options` are flags of `prefetch get`, like `variant="thumb"` or `stale=True`.
    """
    arguments = ["get", *_cache_flag(cache), *_flags(options), "--", url]
    with _start(arguments, stdin=subprocess.DEVNULL) as process:
        assert process.stdout and process.stderr
        messages = _Messages(process.stderr)
        path = process.stdout.read()
        messages.finish()
    if process.returncode == 1:
        return None
    if process.returncode != 0:
        raise messages.error(process.returncode)
    return Path(os.fsdecode(path[:-1])).absolute()


_OWN_OPTIONS = {
    "absolute_paths", "cache_dir", "dry_run", "format", "help", "progress", "quiet", "report",
    "summary", "verbose", "version"}


def _cache_flag(cache: Optional[StrPath]) -> List[str]:
    return [] if cache is None else [f"--cache-dir={os.fspath(cache)}"]


def _flags(options: Dict[str, Any]) -> List[str]:
    flags: List[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is True:
                flags.append(flag)
            elif each is not None and each is not False:
                flags.append(f"{flag}={each}")
    return flags


def _entry(row: Dict[str, Any]) -> Entry:
    return Entry(
        index=row["line"] - 1,
        url=row["url"],
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        message=row["message"],
        http_status=row["http_status"],
        path=None if row["path"] is None else Path(row["path"]),
        format=row["format"],
        width=row["width"],
        height=row["height"],
        bytes_received=row["bytes_received"],
        bytes_stored=row["bytes_stored"],
        expires_at=row["expires_at"],
        key=row["key"],
        sha256=row["sha256"],
        columns=row.get("columns") or {},
    )


def _line(row: Row) -> bytes:
    """A row as JSON, so that no character of a URL ends the line or begins a field."""
    if isinstance(row, str):
        row = {"url": row}
    elif not isinstance(row, AnyMapping):
        raise TypeError(f"a row is a URL or a mapping, not {type(row).__name__}")
    text = json.dumps(_value(row), default=str, ensure_ascii=False)
    # A lone surrogate becomes a question mark.
    return text.encode("utf-8", "replace") + b"\n"


def _value(value: Any) -> Any:
    """A value for JSON. pandas has NaN for an empty cell, and scalars of numpy."""
    if isinstance(value, AnyMapping):
        return {str(name): _value(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(each) for each in value]
    if not isinstance(value, str) and hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _start(arguments: List[str], stdin: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [_program(), *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _program() -> str:
    """The installed command: beside Python, in the user's folder, or on the PATH."""
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        # pip install --target DIR
        str(Path(__file__).parent.parent / "bin"),
    ]
    for folder in folders:
        program = os.path.join(folder, "prefetch")
        if os.access(program, os.X_OK):
            return program
    found = shutil.which("prefetch")
    if found is None:
        raise PrefetchError(
            f"prefetch: the command is not in {', '.join(folders)} or on the PATH",
            f"{sys.executable} -m pip install --force-reinstall prefetch-images", 2)
    return found


class _Messages:
    """The last lines on the command's standard error."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.lines: deque[str] = deque(maxlen=100)
        self.stream = stream
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        for line in self.stream:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))

    def finish(self) -> None:
        self.thread.join()

    def error(self, status: int) -> PrefetchError:
        lines = list(self.lines)
        starts = [i for i, line in enumerate(lines) if line.startswith("prefetch: ")]
        message, hint = f"the command ended with status {status}", None
        if status < 0:
            message = f"the command was ended by signal {-status}"
        if starts:
            # All mistakes of a call; of a run, only the error that ended it.
            text = lines[starts[0] if status == 64 else starts[-1]:]
            hints = [line[len("hint: "):] for line in text if line.startswith("hint: ")]
            hint = "\n".join(hints) or None
            message = "\n".join(
                line[len("prefetch: "):] if line.startswith("prefetch: ") else line
                for line in text if not line.startswith("hint: "))
        kind = {64: UsageError, 75: CacheInUseError}.get(status, PrefetchError)
        return kind(message, hint, status)


class _Writer:
    """Writes the rows on a thread of its own, since the command's pipes hold little."""

    def __init__(self, urls: Iterable[Row], process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        self.urls = urls
        self.process = process
        self.stream = process.stdin
        self.error: Optional[BaseException] = None
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def _write(self) -> None:
        try:
            for row in self.urls:
                self.stream.write(_line(row))
        except BrokenPipeError:
            pass  # The command has ended, and says why.
        except BaseException as error:
            self.error = error
            # Before the end of its input: a part of a list must not count as a list.
            self.process.terminate()
        finally:
            try:
                self.stream.close()
            except BrokenPipeError:
                pass

    def finish(self, waits: bool) -> None:
        """Raises the error of the list. A list that the command did not read to its end may never
        give its next URL."""
        if waits:
            self.thread.join()
        if self.error is not None:
            raise self.error

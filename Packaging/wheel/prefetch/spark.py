"""Warms caches with the tasks of a Spark job, one cache for each shard of a table of URLs.

    from prefetch.spark import warm

    job = warm(df, "url", "/shared/images", 64, encode="webp")
    job.results.write.parquet("/shared/results")
    print(job.summary["outcomes"])

A shard has all URLs of its registrable domains, so that one task at a time requests a domain. Its
number is that of `prefetch run --shard`. A shard's run ends in the folder `shard-N` of the output:

    cache/          the cache, for `prefetch merge`
    report.jsonl    the report of the run, which the results are read from
    shard.json      the summary of the run, and a fingerprint of its list

Every executor needs this package, pyarrow and the output folder, on a file system with flock(2).
Attempts write below `_attempts`; an attempt continues in the cache of one that was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

from prefetch import PrefetchError, StrPath, _flags, _Messages, _program

try:
    import pyarrow
    from pyarrow import compute
    from pyspark import Accumulator, AccumulatorParam, TaskContext
    from pyspark.sql import Column, DataFrame, SparkSession, functions, types
except ImportError as error:
    raise ImportError(
        f"prefetch.spark: {error}\nhint: pip install 'prefetch-images[spark]'") from error

__all__ = ["Warm", "warm"]

Batches = Iterator[pyarrow.RecordBatch]

# Set by `warm`, of one run only, or leaving lines of a list unread, whose rows would be missing.
_REFUSED = {
    "absolute_paths", "base_url", "cache_dir", "deadline", "dry_run", "fail_fast", "format", "help",
    "html", "junit", "limit", "list", "lock", "no_header", "plan", "progress", "prometheus",
    "report", "shard", "sitemap_pages", "summary", "until", "url_column", "verbose", "version"}

# Names that no table has: they stay apart from the columns that `column=` turns into fields.
_URL, _ROW = "prefetch.url", "prefetch.row"

# Exact for all types that _check accepts; by default Spark cuts times to milliseconds.
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC",
         "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}


@dataclass(frozen=True)
class Warm:
    """A job that an action on `results` starts."""

    results: DataFrame
    """A row for each row of the table: url, outcome, reason, sha256, path, width, height, bytes,
    and the struct `columns` with the table's other columns. A second action requests nothing."""
    _summaries: Accumulator[Dict[int, Dict[str, Any]]]

    @property
    def summary(self) -> Dict[str, Any]:
        """The sums over the shards whose rows an action has read to the end, and their numbers."""
        total: Dict[str, Any] = {"entries": 0, "outcomes": {}, "reasons": {}, "requests": 0,
                                 "bytes_received": 0, "bytes_stored": 0}
        for summary in self._summaries.value.values():
            for name, value in total.items():
                if isinstance(value, dict):
                    for key, count in summary[name].items():
                        value[key] = value.get(key, 0) + count
                else:
                    total[name] += summary[name]
        return {"shards": sorted(self._summaries.value), **total}


def warm(df: DataFrame, url_col: str, out: StrPath, n: int, **options: Any) -> Warm:
    """Warms the images of a table's URLs in `n` shards below the folder `out`.

    `options` are flags of `prefetch run`, as for `prefetch.run`. `column="key=id"` turns a column
    into a field of the list; without it no column is one. A folder belongs to one table and one set
    of options: the same call again continues it, and requests nothing for shards that have ended.

    Raises PrefetchError where the job cannot be politely repeated, TypeError for options or columns
    that do not fit. A task fails if the command exits with 2 or more; failed images are rows.
    """
    for name in sorted(_REFUSED & options.keys()):
        raise TypeError(f"prefetch.spark.warm takes no option {name}")
    folder = os.path.abspath(out)
    if "://" in os.fspath(out):
        raise TypeError(f"{out} is a URL; give a folder that every executor has mounted")
    if n < 1:
        raise ValueError(f"{n} shards; give at least 1")
    _check(df.schema)
    if url_col in df.columns and not isinstance(df.schema[url_col].dataType, types.StringType):
        raise TypeError(f"the column {url_col} is not of type string")
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise PrefetchError("Spark Connect has no accumulators", "use a classic session", 64)
    context = df.sparkSession.sparkContext
    if context.getConf().get("spark.speculation", "false").lower() == "true":
        raise PrefetchError(
            "speculative execution would request one domain from two tasks",
            "--conf spark.speculation=false", 64)
    fields = _field_columns(df, options)
    summaries = context.accumulator({}, _Summaries())
    job = json.dumps([n, url_col, df.schema.jsonValue(), options], sort_keys=True, default=str)
    run = _Run(folder, _flags(options), n if "sink" in options else None, job, summaries)

    # mapInArrow moves whole columns: an RDD would pickle each row, and hide the plan. The JVM
    # writes and parses the JSON, and Python never looks into it.
    row = functions.struct(*map(_column, df.columns))
    line = functions.to_json(
        functions.struct(_column(url_col).alias(_URL), *map(_column, fields), row.alias(_ROW)),
        {**_JSON, "ignoreNullFields": "false"})
    url = _column(url_col)
    lines = df.select(url.alias("url"), functions.xxhash64(url).alias("hash"), line.alias("line"))
    shards = lines.mapInArrow(
        _assign(_keys(df.sparkSession, n)), "key int, shard int, hash bigint, line string"
    ).repartition(n, "key")
    reports = shards.mapInArrow(run, "shard int, line string")

    carried = types.StructType().add(_ROW, df.schema)
    schema = types.StructType().add("url", "string").add("outcome", "string").add(
        "reason", "string").add("sha256", "string").add("path", "string").add(
        "width", "integer").add("height", "integer").add("bytes_stored", "long").add(
        "columns", carried)
    parsed = reports.select("shard", functions.from_json(
        "line", schema, {**_JSON, "mode": "FAILFAST"}).alias("entry"))
    entry = functions.col("entry")
    row = entry["columns"][_ROW]
    path = functions.concat(functions.lit(f"{folder}/shard-"), functions.col("shard"),
                            functions.lit("/cache/"), entry["path"])
    # A line that is too long for the command has no columns, and the report its beginning.
    results = [functions.when(row.isNull(), entry["url"]).otherwise(row[url_col]).alias("url"),
               *(entry[name].alias(name) for name in ("outcome", "reason", "sha256")),
               path.alias("path"), entry["width"].alias("width"), entry["height"].alias("height"),
               entry["bytes_stored"].alias("bytes")]
    others = [row[name].alias(name) for name in df.columns if name != url_col]
    if others:
        results.append(functions.struct(*others).alias("columns"))
    return Warm(parsed.select(*results), summaries)


def _column(name: str) -> Column:
    return functions.col("`" + name.replace("`", "``") + "`")


def _check(type_: types.DataType) -> None:
    """Refuses types that JSON would change."""
    if isinstance(type_, types.StructType):
        for field in type_:
            _check(field.dataType)
    elif isinstance(type_, types.ArrayType):
        _check(type_.elementType)
    elif isinstance(type_, types.MapType) and isinstance(type_.keyType, types.StringType):
        _check(type_.valueType)
    elif not isinstance(type_, (
            types.StringType, types.BinaryType, types.BooleanType, types.NumericType,
            types.DateType, types.TimestampType, types.TimestampNTZType)):
        raise TypeError(
            f"a column of type {type_.simpleString()} cannot be carried; cast or drop it")


def _field_columns(df: DataFrame, options: Dict[str, Any]) -> List[str]:
    rules = options.get("column") or []
    names = [rule.partition("=")[2] for rule in ([rules] if isinstance(rules, str) else rules)]
    for name in names:
        if name and name not in df.columns:
            raise TypeError(f"column: the table has no column {name}")
    return sorted(set(names) - {""})


class _Summaries(AccumulatorParam[Dict[int, Dict[str, Any]]]):
    """Summaries by shard: a shard counts once, however often it is read."""

    def zero(self, value: Dict[int, Dict[str, Any]]) -> Dict[int, Dict[str, Any]]:
        return {}

    def addInPlace(
        self, value1: Dict[int, Dict[str, Any]], value2: Dict[int, Dict[str, Any]]
    ) -> Dict[int, Dict[str, Any]]:
        value1.update(value2)
        return value1


def _assign(keys: List[int]) -> Callable[[Batches], Batches]:
    """Returns the function that adds a line's shard, and the key that partition number N gets."""

    def assign(batches: Batches) -> Batches:
        for batch in batches:
            shards = _shards(batch.column(0).to_pylist(), len(keys))
            columns = [pyarrow.array([keys[each] for each in shards], pyarrow.int32()),
                       pyarrow.array(shards, pyarrow.int32()), batch.column(1), batch.column(2)]
            yield pyarrow.RecordBatch.from_arrays(columns, ["key", "shard", "hash", "line"])

    return assign


def _shards(urls: List[Optional[str]], n: int) -> List[int]:
    """The shards of URLs among `n`, by the command; 0 also for text that is no URL."""
    if not urls:
        return []
    lines = "".join(json.dumps({"url": url}) + "\n" for url in urls)
    done = subprocess.run(
        [_program(), "plan", "-", "--format=jsonl", "--url-column=url", f"--shards={n}"],
        input=lines.encode(), capture_output=True)
    if done.returncode != 0:
        messages = _Messages(io.BytesIO(done.stderr))
        messages.finish()
        raise messages.error(done.returncode)
    shards = list(map(int, done.stdout.split()))
    if len(shards) != len(urls):
        raise PrefetchError(f"{len(shards)} shards for {len(urls)} URLs", None, 2)
    return shards


def _keys(spark: SparkSession, n: int) -> List[int]:
    """A number for each partition that `repartition` sends to it, by Spark's own hash.

    Shard numbers themselves would share some partitions and leave others empty.
    """
    # Each partition gets 20 more numbers than the most that are needed on average.
    count = n * (n.bit_length() + 20)
    key = functions.col("id").cast("int")
    rows = spark.range(count).select(
        functions.pmod(functions.hash(key), functions.lit(n)).alias("partition"), key.alias("key")
    ).groupBy("partition").agg(functions.min("key").alias("key")).collect()
    keys = {row["partition"]: row["key"] for row in rows}
    return [keys[partition] for partition in range(n)]


@dataclass(frozen=True)
class _Run:
    """Runs the command over a shard's lines, or finds that this is done, and reads the report.

    Rows are read from the published report only, after the run: a task that ends early, as under
    `limit`, cuts no run short, and every evaluation gives the same rows.
    """

    out: str
    flags: List[str]
    named: Optional[int]
    """The number of shards, if a bucket has to tell them apart."""
    job: str
    summaries: Accumulator[Dict[int, Dict[str, Any]]]

    def __call__(self, batches: Batches) -> Batches:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        # Not the partition's number: `coalesce` lets one task read several of our partitions.
        number = first.column(1)[0].as_py()
        lines = _Lines(itertools.chain([first], batches), number, self.job)
        published = Path(self.out, f"shard-{number}")
        with self.lock(number) as lock:
            if not published.is_dir():
                self.publish(lines, published, lock)
        lines.drain()
        done = json.loads((published / "shard.json").read_text())
        if done["fingerprint"] != lines.fingerprint:
            raise PrefetchError(
                f"{published} was made from another list or with other options",
                "give warm another folder", 64)
        with open(published / "report.jsonl", "rb") as report:
            entries = itertools.islice(report, lines.count)
            while texts := [_short(line) for line in itertools.islice(entries, 2000)]:
                shards = pyarrow.array([number] * len(texts), pyarrow.int32())
                yield pyarrow.RecordBatch.from_arrays(
                    [shards, pyarrow.array(texts, pyarrow.string())], ["shard", "line"])
        self.summaries.add({number: done["summary"]})

    @contextlib.contextmanager
    def lock(self, number: int) -> Iterator[int]:
        """Waits for another task with this shard: Spark leaves tasks running when it repeats their
        stage after the loss of an executor. The command inherits the lock, which ends with both.
        """
        folder = Path(self.out, "_attempts")
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def publish(self, lines: _Lines, published: Path, lock: int) -> None:
        attempts = Path(self.out, "_attempts")
        earlier = list(attempts.glob(f"{lines.number}-*"))
        context = TaskContext.get()
        attempt = context.taskAttemptId() if context else 0
        folder = Path(tempfile.mkdtemp(prefix=f"{lines.number}-{attempt}-", dir=attempts))
        for each in earlier:
            # The images of an attempt that was killed, or failed, are not requested again.
            with contextlib.suppress(OSError):
                os.rename(each / "cache", folder / "cache")
        summary = self.run(lines, folder, lock)
        (folder / "shard.json").write_text(
            json.dumps({"fingerprint": lines.fingerprint, "summary": summary}))
        folder.chmod(0o711)
        os.rename(folder, published)
        for each in earlier:
            shutil.rmtree(each, ignore_errors=True)

    def run(self, lines: _Lines, folder: Path, lock: int) -> Dict[str, Any]:
        report = folder / "report.jsonl"
        command = [_program(), "run", "-", "--format=jsonl", f"--url-column={_URL}",
                   f"--cache-dir={folder / 'cache'}", f"--report={report}", "--summary=none",
                   "--progress=never", *self.flags]
        if self.named:
            command.append(f"--shard={lines.number}/{self.named}")
        # The report has the URLs with their secrets.
        report.touch(0o600)
        with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                preexec_fn=_end_with_parent(), pass_fds=[lock]) as process:
            assert process.stdin and process.stderr
            messages = _Messages(process.stderr)
            try:
                with contextlib.suppress(BrokenPipeError):  # The command has ended, and says why.
                    for text in lines:
                        process.stdin.write(text)
                    process.stdin.close()
            except BaseException:
                # Before the end of its input: a part of a list must not count as a list.
                process.terminate()
                raise
            status = process.wait()
            messages.finish()
        if status not in (0, 1):
            raise messages.error(status)
        lines.drain()
        summary = _last_line(report)
        if summary.get("type") != "summary" or summary["entries"] != lines.count:
            raise PrefetchError(f"{report} lacks entries of the list", None, 2)
        return summary


class _Lines:
    """The lines of a shard, once. Their order is not that of another evaluation."""

    def __init__(self, batches: Batches, number: int, job: str) -> None:
        self.batches = batches
        self.number = number
        self.job = job
        self.count = 0
        self.sum = 0

    def __iter__(self) -> Iterator[bytes | pyarrow.Buffer]:
        for batch in self.batches:
            if set(batch.column(1).unique().to_pylist()) - {self.number}:
                raise PrefetchError("Spark has put two shards into one partition", None, 2)
            if not batch.num_rows:
                continue
            self.count += batch.num_rows
            # Overflows alike in any order.
            self.sum = (self.sum + compute.sum(batch.column(2)).as_py()) % (1 << 64)
            texts = pyarrow.ListArray.from_arrays([0, batch.num_rows], batch.column(3))
            yield compute.binary_join(texts, "\n")[0].as_buffer()
            yield b"\n"

    def drain(self) -> None:
        for _ in self:
            pass

    @property
    def fingerprint(self) -> str:
        text = f"{self.job} {self.count} {self.sum}"
        return hashlib.sha256(text.encode()).hexdigest()


def _end_with_parent() -> Callable[[], None]:
    """Returns the function that ends the child when Spark kills the Python worker."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def prepare() -> None:
        libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _short(line: bytes) -> bytes:
    """Cuts the members between the image's and `columns`, most of a line, which no result has.

    Parsing them would take as long as the rest. Text cannot look like a member: it has no bare
    quotation marks.
    """
    start = line.find(b'"expires_at":')
    end = line.find(b'"columns":', start)
    return line if start < 0 or end < 0 else line[:start] + line[end:]


def _last_line(path: Path) -> Dict[str, Any]:
    with open(path, "rb") as file:
        # A summary has at most some hundred hosts and pauses.
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        summary: Dict[str, Any] = json.loads(file.readlines()[-1])
        return summary

"""Tests of prefetch.spark on a cluster of two executors, against a server on 127.0.0.1.

Usage: python -m unittest discover -s Packaging/wheel/tests -p test_spark.py

Skipped where pyspark or Java is missing.
"""

import collections
import datetime
import decimal
import hashlib
import http.server
import importlib.util
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import prefetch

ROOT = Path(__file__).resolve().parents[3]
IMAGES = sorted((ROOT / "samples/images").glob("*.jpg"))
MISSING = None
if importlib.util.find_spec("pyspark") is None:
    MISSING = "pyspark is not installed"
elif shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
    MISSING = "Java is not installed"
else:
    import pyspark
    from pyspark.sql import SparkSession

    from prefetch.spark import _keys, warm

DOMAINS = [f"d{number}.test" for number in range(12)]
HOSTS = DOMAINS + [f"www.{domain}" for domain in DOMAINS[:4]]
SHARDS = 4


def shard_of(domain):
    return int.from_bytes(hashlib.sha256(domain.encode()).digest()[:8], "big") % SHARDS


def domain_of(url):
    return ".".join(url.split("/")[2].split(":")[0].split(".")[-2:])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, url = self.server, f"http://{self.headers['Host']}{self.path}"
        with server.condition:
            server.requests[url] += 1
            server.condition.notify_all()
            server.condition.wait_for(lambda: url not in server.held)
        number = re.search(r"(\d+)\.jpg$", self.path)
        body = server.images[int(number[1]) % len(server.images)] if number else b""
        try:
            self.send_response(200 if number else 404)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "max-age=86400")
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # The command was killed.

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.images = [file.read_bytes() for file in IMAGES]
        self.condition = threading.Condition()
        self.requests = collections.Counter()
        self.held = set()

    def hold(self, urls):
        with self.condition:
            self.held = set(urls)
            self.condition.notify_all()

    def wait_for(self, test, message):
        with self.condition:
            if not self.condition.wait_for(lambda: test(self.requests), 60):
                raise AssertionError(message)


class Job(threading.Thread):
    """An action on another thread."""

    def __init__(self, results):
        super().__init__(daemon=True)
        self.results, self.rows, self.error = results, None, None
        self.start()

    def run(self):
        try:
            self.rows = self.results.collect()
        except Exception as error:
            self.error = error

    def end(self):
        self.join(100)
        if self.is_alive():
            raise AssertionError("the job does not end")
        if self.error is not None:
            raise self.error
        return self.rows


def processes(text):
    """The identifiers of processes whose command line has the text, without zombies."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text in (folder / "cmdline").read_bytes().decode().replace("\0", " "):
                found.append(int(folder.name))
        except OSError:
            pass  # It has ended.
    return found


def parents(pid):
    while pid > 1:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def openers(path):
    """The processes that have a file open."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link) == str(path) for link in (folder / "fd").iterdir()):
                found.add(int(folder.name))
        except OSError:
            pass  # It has ended, or closed a file.
    return found


@unittest.skipIf(MISSING, MISSING)
class SparkTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        # The cluster writes its logs below SPARK_HOME.
        home = Path(folder.name, "spark")
        home.mkdir()
        for file in Path(pyspark.__file__).parent.iterdir():
            (home / file.name).symlink_to(file)
        os.environ.update(
            SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable,
            SPARK_SCALA_VERSION=next(
                re.search(r"_(2\.\d+)-", file.name)[1] for file in home.glob("jars/spark-core_*")))
        cls.spark = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", folder.name)
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "America/New_York").getOrCreate())
        cls.addClassCleanup(cls.spark.stop)
        cls.spark.sparkContext.setLogLevel("OFF")

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.server_close)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.hold, ())
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out"
        self.port = self.server.server_address[1]
        self.urls = [
            f"http://{host}:{self.port}/{number}.jpg" for host in HOSTS for number in range(3)]
        self.options = {
            "resolve": [f"{host}:{self.port}:127.0.0.1" for host in HOSTS], "retry": 0,
            "host_concurrency": 1,
            # A held request does not end by itself.
            "stall_timeout": "10m", "timeout": "10m", "host_timeout": "10m"}

    def table(self, urls=None):
        rows = [(number, url) for number, url in enumerate(urls or self.urls)]
        return self.spark.createDataFrame(rows, "id bigint, image string")

    def warm(self, df=None, **options):
        return warm(self.table() if df is None else df, "image", self.out, SHARDS,
                    **{**self.options, **options})

    def wait_until(self, test, message):
        end = time.monotonic() + 60
        while not (found := test()):
            self.assertLess(time.monotonic(), end, message)
            time.sleep(0.02)
        return found

    def shard_urls(self, *shards):
        return {url for url in self.urls if shard_of(domain_of(url)) in shards}

    def test_a_domain_has_one_shard_and_a_second_action_requests_nothing(self):
        urls = [*self.urls, f"http://d0.test:{self.port}/none", "no URL", None]
        job = self.warm(self.table(urls))
        self.assertFalse(self.out.exists(), "nothing runs before an action")
        rows = job.results.collect()
        self.assertEqual(
            sorted((row.columns.id, row.url) for row in rows), list(enumerate(urls)))
        for row in rows:
            if row.columns.id < len(self.urls):
                data = Path(row.path).read_bytes()
                self.assertEqual(row.outcome, "downloaded")
                self.assertEqual(hashlib.sha256(data).hexdigest(), row.sha256)
                self.assertEqual(len(data), row.bytes)
                self.assertGreater(row.width * row.height, 0)
                self.assertEqual(
                    Path(row.path).relative_to(self.out).parts[0],
                    f"shard-{shard_of(domain_of(row.url))}")
        last = [row for row in rows if row.columns.id >= len(self.urls)]
        self.assertEqual(
            [(row.outcome, row.reason) for row in sorted(last, key=lambda row: row.columns.id)],
            [("failed", "http-status"), ("failed", "invalid-entry"), ("failed", "invalid-entry")])

        summary = job.summary
        self.assertEqual(summary["shards"], sorted({shard_of(name) for name in DOMAINS} | {0}))
        outcomes = collections.Counter(row.outcome for row in rows)
        self.assertEqual({k: v for k, v in summary["outcomes"].items() if v}, dict(outcomes))
        reasons = collections.Counter(row.reason for row in rows if row.reason)
        self.assertEqual({k: v for k, v in summary["reasons"].items() if v}, dict(reasons))
        self.assertEqual(summary["entries"], len(urls))
        self.assertEqual(summary["requests"], sum(self.server.requests.values()))
        self.assertEqual(set(self.server.requests.values()), {1})

        # Each action evaluates the table again; `coalesce` reads all shards in one task.
        self.assertEqual(sorted(job.results.coalesce(1).collect(), key=str), sorted(rows, key=str))
        self.assertEqual(job.results.filter("outcome = 'failed'").count(), 3)
        self.assertEqual(len(job.results.limit(2).collect()), 2)
        again = self.warm(self.table(urls))
        self.assertEqual(sorted(again.results.collect(), key=str), sorted(rows, key=str))
        self.assertEqual(again.summary, summary)
        self.assertEqual(job.summary, summary)
        self.assertEqual(set(self.server.requests.values()), {1})
        self.assertEqual([path for path in (self.out / "_attempts").iterdir() if path.is_dir()], [])

        with self.assertRaisesRegex(Exception, "another list or with other options"):
            self.warm(self.table(urls[1:])).results.collect()
        with self.assertRaisesRegex(Exception, "hint: give warm another folder"):
            self.warm(self.table(urls), encode="webp").results.collect()

    def test_an_action_that_stops_early_ends_its_runs(self):
        job = self.warm()
        self.assertEqual(len(job.results.limit(1).collect()), 1)
        self.assertEqual(len(job.results.collect()), len(self.urls))
        self.assertEqual(set(self.server.requests.values()), {1})

    def test_columns_keep_their_values(self):
        schema = ("id bigint, image string, url string, sha256 string, width int, f double, "
                  "d decimal(38,18), t timestamp, n timestamp_ntz, day date, b binary, "
                  "a array<string>, m map<string,int>, `s.t` struct<x:int,`y z`:float>")
        day = datetime.datetime(2020, 2, 29, 23, 59, 59, 123456)
        rows = [
            (1, self.urls[0], "not the URL", "x", 7, 0.1, decimal.Decimal("-1e-18"), day, day,
             day.date(), bytearray(range(256)), ["a\n\"\u2028", None, "ü😀"], {"k": None, "": 1},
             (None, 0.1)),
            (2, self.urls[1], None, "", -1, float("inf"), decimal.Decimal(10) ** 19,
             datetime.datetime(1700, 1, 1), datetime.datetime(9999, 12, 31), datetime.date(1, 1, 1),
             bytearray(), [], {}, (3, None)),
            (3, self.urls[2], *[None] * 12),
        ]
        df = self.spark.createDataFrame(rows, schema)
        found = self.warm(df, column=["key=id"]).results.collect()
        before = {row.id: row.asDict(True) for row in df.collect()}
        for row in found:
            self.assertEqual(row.outcome, "downloaded")
            self.assertEqual(
                {"image": row.url, **row.columns.asDict(True)}, before[row.columns.id])
        # The field `key` was set.
        cache = Path(next(row.path for row in found if row.columns.id == 1)).parents[2]
        self.assertTrue(prefetch.get("1", cache=cache).is_file())
        self.out = self.folder / "nan"
        df = self.spark.createDataFrame([(self.urls[0], math.nan)], "image string, f float")
        nan = self.warm(df)
        self.assertTrue(math.isnan(nan.results.collect()[0].columns.f))
        self.assertEqual(
            self.warm(self.table().select("image")).results.columns,
            ["url", "outcome", "reason", "sha256", "path", "width", "height", "bytes"])

    def test_a_lost_executor_repeats_only_its_shard(self):
        """Spark then repeats the stage, also the shards whose tasks still run elsewhere."""
        lost, other = 1, 0
        held = {max(self.shard_urls(lost)), max(self.shard_urls(other))}
        self.server.hold(held)
        job = self.warm()
        action = Job(job.results)
        self.server.wait_for(lambda seen: held <= set(seen), "both shards are requested")
        command = self.wait_until(
            lambda: processes(f"/_attempts/{lost}-"), "the shard's command runs")[0]
        executor = next(pid for pid in parents(command)
                        if pid in processes("CoarseGrainedExecutorBackend"))
        lock = self.out / f"_attempts/{other}.lock"
        before = openers(lock)
        os.kill(executor, signal.SIGKILL)
        self.wait_until(lambda: command not in processes(f"/_attempts/{lost}-"),
                        "the command ends with its executor")
        self.wait_until(lambda: openers(lock) - before, "the other shard has a second task")
        self.server.hold(())
        rows = action.end()
        self.assertEqual(sorted(row.url for row in rows), sorted(self.urls))
        self.assertEqual({row.outcome for row in rows} - {"fresh"}, {"downloaded"})
        self.assertEqual(job.summary["entries"], len(self.urls))
        for url, count in self.server.requests.items():
            repeated = shard_of(domain_of(url)) == lost
            self.assertIn(count, (1, 2) if repeated else (1,), url)
        self.assertEqual(self.server.requests[max(self.shard_urls(lost))], 2)

    def test_a_killed_worker_ends_its_command_and_the_next_attempt_resumes(self):
        held = max(self.shard_urls(2))
        others = self.shard_urls(2) - {held}
        self.server.hold({held})
        action = Job(self.warm(host_concurrency=6).results)
        self.server.wait_for(
            lambda seen: {held} | others <= set(seen), "the shard is requested")
        command = self.wait_until(lambda: processes("/_attempts/2-"), "the command runs")[0]
        content = next((self.out / "_attempts").glob("2-*")) / "cache/content"
        stored = len({int(url.split("/")[-1][0]) % len(IMAGES) for url in others})
        self.wait_until(
            lambda: len(list(content.glob("*/*.*"))) >= stored, "the images are stored")
        os.kill(list(parents(command))[1], signal.SIGKILL)
        self.wait_until(lambda: command not in processes("/_attempts/2-"),
                        "the command ends with its worker")
        self.server.hold(())
        rows = action.end()
        self.assertEqual(sorted(row.url for row in rows), sorted(self.urls))
        self.assertEqual({row.outcome for row in rows} - {"fresh"}, {"downloaded"})
        self.assertEqual(self.server.requests.pop(held), 2)
        self.assertEqual(set(self.server.requests.values()), {1})

    def test_errors_of_the_command_fail_the_task(self):
        with self.assertRaisesRegex(Exception, "(?s)host-concurency.*hint: "):
            self.warm(host_concurency=4).results.collect()
        with self.assertRaisesRegex(Exception, "none.pem"):
            self.warm(cacert=str(self.folder / "none.pem")).results.collect()
        self.assertEqual(list(self.out.glob("shard-*")), [])
        self.assertEqual(len(self.warm().results.collect()), len(self.urls))
        self.assertEqual([path for path in (self.out / "_attempts").iterdir() if path.is_dir()], [])

    def test_arguments_that_do_not_fit_are_refused(self):
        with self.assertRaisesRegex(TypeError, "no option deadline"):
            self.warm(deadline="1h")
        with self.assertRaisesRegex(TypeError, "no column none"):
            self.warm(column="key=none")
        with self.assertRaisesRegex(TypeError, "interval"):
            self.warm(self.table().selectExpr("image", "interval '1' day as i"))
        with self.assertRaisesRegex(TypeError, "is a URL"):
            warm(self.table(), "image", "s3://bucket/out", SHARDS)
        with self.assertRaises(ValueError):
            warm(self.table(), "image", self.out, 0)

    def test_speculation_is_refused(self):
        code = """if True:
            import sys
            from prefetch.spark import warm
            from pyspark.sql import SparkSession
            spark = (SparkSession.builder.master("local[1]").config("spark.speculation", "true")
                     .config("spark.ui.enabled", "false").getOrCreate())
            warm(spark.createDataFrame([("x",)], "url string"), "url", sys.argv[1], 2)"""
        ended = subprocess.run(
            [sys.executable, "-c", code, str(self.out)], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("speculative execution would request one domain from two tasks", ended.stderr)
        self.assertIn("hint: --conf spark.speculation=false", ended.stderr)

    def test_a_key_reaches_its_partition(self):
        for n in (1, 7, 1000):
            keys = self.spark.createDataFrame(
                enumerate(_keys(self.spark, n)), "partition int, key int")
            self.assertEqual(keys.where(f"pmod(hash(key), {n}) != partition").count(), 0)

    def test_the_plan_has_one_exchange(self):
        plan = self.warm().results._jdf.queryExecution().executedPlan().toString()
        self.assertEqual(plan.count("Exchange hashpartitioning"), 1, plan)
        self.assertEqual(plan.count("from_json"), 1, plan)

    def test_the_example(self):
        text = (ROOT / "Packaging/wheel/README.md").read_text()
        code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
                    if "prefetch.spark" in block)
        self.table().withColumnRenamed("image", "url").write.parquet(str(self.folder / "list"))
        code = code.replace("/shared/", f"{self.folder}/")
        code = code.replace('encode="webp"', f"encode='webp', resolve={self.options['resolve']!r}")
        printed = []
        exec(code, {"spark": self.spark, "print": printed.append})
        self.assertEqual(printed[0]["downloaded"], len(self.urls))
        found = self.spark.read.parquet(str(self.folder / "results"))
        self.assertEqual(found.count(), len(self.urls))
        self.assertTrue(found.first().path.endswith(".webp"))

        program = prefetch._program()
        if b" merge " not in subprocess.run([program, "--help"], capture_output=True).stdout:
            self.skipTest("the command has no merge")
        merge = re.search(r"`prefetch (merge [^`]*)`", text)[1].replace("/shared", str(self.folder))
        subprocess.run(f"{program} {merge}", shell=True, check=True, capture_output=True)
        for row in found.select("url", "sha256").collect():
            path = prefetch.get(row.url, cache=self.folder / "cache")
            self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), row.sha256)


if __name__ == "__main__":
    unittest.main()

"""Tests `run --sink`, `pull` and `get --sink` against both servers."""

import contextlib
import hashlib
import http.server
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import zlib
from pathlib import Path

from shared import HERE, Script
from sigv4 import signed_headers

BINARY = os.environ.get(
    "PREFETCH_BINARY", str(HERE.parent.parent / ".build/release/prefetch"))
IMAGES = 40
DONE = "shards/0-of-1/_DONE.json"
KEYS = {"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "t/+=",
        "Expiration": "2100-01-01T00:00:00Z"}


def png(seed, size=16):
    """A PNG of `size` by `size` pixels, another one for each seed."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(
        b"\0" + bytes((seed * (x + 3 * y) + 7 * c) % 256 for x in range(size) for c in range(3))
        for y in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


class Origin:
    """Serves `/N.png` under any name of this machine, and `KEYS` as a container's agent does."""

    def __init__(self):
        origin = self
        # Another number gives other images.
        self.shift = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                # A client that stops hangs up.
                with contextlib.suppress(ConnectionError):
                    self.answer()

            def answer(self):
                if self.path == "/keys":
                    body = json.dumps(KEYS).encode()
                else:
                    body = png((int(Path(self.path).stem) + origin.shift) % 1000)
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def url(self, number, host="h0"):
        return f"http://{host}.localhost:{self.server.server_port}/{number}.png"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class SinkTests:
    """The tests with each server."""

    name = None

    @classmethod
    def setUpClass(cls):
        cls.origin = Origin()
        try:
            cls.server = Script("servers", cls.name)
        except BaseException:
            cls.origin.close()
            raise
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.origin.close()
        cls.server.close()

    def setUp(self):
        type(self).count += 1
        self.folder = Path(tempfile.mkdtemp(prefix="prefetch-sink-"))
        self.addCleanup(shutil.rmtree, self.folder)
        values = self.server.values
        # A prefix of its own for each test.
        self.sink = f"s3://{values['bucket']}/t {self.count}/é"
        self.environment = os.environ | {
            "AWS_ACCESS_KEY_ID": values["access_key"],
            "AWS_SECRET_ACCESS_KEY": values["secret_key"], "AWS_REGION": values["region"],
            "AWS_ENDPOINT_URL_S3": values["endpoint"], "HOME": str(self.folder)}
        self.list(range(IMAGES))
        self.server.control("DELETE")

    def list(self, numbers, name="list.txt"):
        lines = [self.origin.url(number, f"h{number % 7}") for number in numbers]
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def prefetch(self, *arguments, status=0, **environment):
        result = subprocess.run(
            [BINARY, *arguments], cwd=self.folder, env=self.environment | environment,
            capture_output=True, text=True, timeout=120)
        self.assertIn(result.returncode, status if isinstance(status, tuple) else [status], result)
        return result

    def run_to_sink(self, *arguments, status=0, cache="a", **environment):
        """Runs over the list; returns the member `sink` of the summary."""
        result = self.prefetch(
            "run", "list.txt", "--cache-dir", cache, "--ttl", "1h", "--sink", self.sink,
            "--summary", "json", *arguments, status=status, **environment)
        self.result = result
        if not result.stdout:
            return None
        return json.loads(result.stdout.splitlines()[-1])["sink"]

    def refuse(self, method, key, status, code):
        """Lets all such requests fail."""
        self.server.fault("status", method=method, key=key, status=status, code=code, times=None)

    def requests(self, method, text=""):
        """The targets of the requests with a method, whose target has that text."""
        return [
            target for kind, target, _ in self.server.control()["requests"]
            if kind == method and text in target]

    def request(self, method, name, body=b""):
        """Sends a signed request for an object; returns its answer."""
        bucket, prefix = self.sink.removeprefix("s3://").split("/", 1)
        path = "/" + urllib.parse.quote(f"{bucket}/{prefix}/{name}", safe="/")
        headers = signed_headers(method, path, self.server.address, body, self.server.values, {})
        answer, found = self.server.request(method, path, body or None, headers)
        self.assertEqual(answer.status, 200, found)
        return found

    def object(self, name):
        return self.request("GET", name)

    def put(self, name, body):
        self.request("PUT", name, body)

    def publish(self, done, database):
        """Puts a database and `_DONE.json` into the bucket; returns the digest."""
        digest = hashlib.sha256(database).hexdigest()
        self.put(f"shards/0-of-1/{digest}.sqlite", database)
        entry = {"sha256": digest, "bytes": len(database)}
        self.put(DONE, json.dumps(done | {"database": entry}).encode())
        return digest

    def rows(self, cache):
        with contextlib.closing(sqlite3.connect(self.folder / cache / "prefetch.sqlite")) as db:
            return db.execute(
                """
                SELECT key, url, source_sha256, validated_at, expires_at, variant.recipe, sha256,
                    bytes FROM resource JOIN variant ON id = resource_id ORDER BY key, 6
                """).fetchall()

    def files(self, cache):
        return {
            path.name: path.read_bytes()
            for path in (self.folder / cache / "content").glob("*/*")}

    def expect_equal(self, first, second):
        self.assertEqual(self.rows(first), self.rows(second))
        self.assertEqual(self.files(first), self.files(second))
        self.prefetch("verify", "-q", "--cache-dir", second)

    # MARK: Copying and reading back

    def test_round_trip(self):
        sink = self.run_to_sink("--variant", "s=4x4")
        files = self.files("a")
        self.assertEqual(sink["uploaded"], len(files))
        self.assertEqual(sink["bytes_uploaded"], sum(map(len, files.values())))
        self.assertTrue(sink["done"])
        self.prefetch("pull", self.sink, "--cache-dir", "b")
        self.expect_equal("a", "b")
        # Nothing is sent or received twice.
        self.server.control("DELETE")
        sink = self.run_to_sink("--variant", "s=4x4")
        self.assertEqual((sink["uploaded"], sink["present"]), (0, len(files)))
        self.assertEqual(self.requests("PUT", "/content/"), [])
        result = json.loads(self.prefetch("pull", self.sink, "--cache-dir", "b", "--json").stdout)
        self.assertEqual((result["downloaded"], result["added"]), (0, 0))
        self.assertEqual(self.requests("GET", "/content/"), [])
        self.expect_equal("a", "b")

    def test_only_new_files_are_sent(self):
        self.run_to_sink()
        self.list(range(IMAGES // 2, IMAGES + 30))
        sink = self.run_to_sink(cache="other")
        self.assertEqual((sink["uploaded"], sink["present"]), (30, IMAGES // 2))
        # The first database stays for an hour: someone may be reading it.
        self.assertEqual(self.requests("DELETE"), [])
        done = json.loads(self.object(DONE))
        former = done["database"]["replaced"]
        self.assertEqual(len(former), 1)
        former[0]["at"] = "2020-01-01T00:00:00Z"
        self.put(DONE, json.dumps(done).encode())
        self.run_to_sink(cache="other")
        self.assertIn(former[0]["sha256"], self.requests("DELETE")[0])
        done = json.loads(self.object(DONE))
        self.assertNotIn(
            former[0]["sha256"], [each["sha256"] for each in done["database"]["replaced"]])
        self.prefetch("pull", self.sink, "--cache-dir", "b")
        self.expect_equal("other", "b")

    def test_losing_rows_leave_no_files(self):
        self.run_to_sink()
        (self.folder / "own.png").write_bytes(png(999, 20))
        for number in range(0, IMAGES, 2):
            self.prefetch(
                "put", self.origin.url(number, f"h{number % 7}"), "own.png", "--cache-dir", "b")
        result = json.loads(self.prefetch("pull", self.sink, "--cache-dir", "b", "--json").stdout)
        self.assertEqual((result["downloaded"], result["lost"]), (IMAGES // 2, 0))
        self.assertEqual(
            {name.split(".")[0] for name in self.files("b")},
            {row[6].hex() for row in self.rows("b")})
        self.prefetch("verify", "-q", "--cache-dir", "b")

    def run_in_shards(self, *arguments):
        """Runs over three shards of the list, and merges them into the cache `whole`."""
        self.prefetch("plan", "list.txt", "--shards", "3", "-o", "plan.json")
        shards = [f"shard-{index}" for index in range(3)]
        for index, cache in enumerate(shards):
            self.run_to_sink(
                "--plan", "plan.json", "--shard", str(index), *arguments, cache=cache)
        self.prefetch("merge", "whole", *shards)

    def test_shards(self):
        self.list(range(60))
        self.run_in_shards()
        self.prefetch("pull", self.sink, "--cache-dir", "b")
        self.expect_equal("whole", "b")
        self.assertFalse((self.folder / "b/pull").exists())

    def test_refused_images_are_no_obstacle(self):
        (self.folder / "list.txt").write_text(
            f"{self.origin.url(1)}\nhttp://127.0.0.1:1/none.png\n")
        sink = self.run_to_sink("--retry", "0", status=1)
        self.assertEqual((sink["uploaded"], sink["done"]), (1, True))

    def test_incomplete_runs_publish_nothing(self):
        sink = self.run_to_sink("--limit", "3", status=3)
        self.assertFalse(sink["done"])
        self.assertIn("not complete", self.result.stderr)
        self.assertEqual(self.requests("PUT"), [])

    # MARK: Single images

    def get(self, url, *arguments, status=0, cache="b"):
        return self.prefetch(
            "get", url, "--cache-dir", cache, "--sink", self.sink, *arguments, status=status)

    def test_get(self):
        self.list(range(300))
        self.run_in_shards("--variant", "s=4x4")
        self.server.control("DELETE")
        for number in [5, 123]:
            url = self.origin.url(number, f"h{number % 7}")
            for variant in ["main", "s"]:
                path = self.get(url, "--variant", variant).stdout.strip()
                wanted = self.prefetch(
                    "get", url, "--cache-dir", "whole", "--variant", variant).stdout.strip()
                self.assertEqual(
                    (self.folder / path).read_bytes(), (self.folder / wanted).read_bytes())
        # Only parts of one database are read, and each image once.
        databases = {target for target in self.requests("GET", ".sqlite")}
        self.assertLessEqual(len(databases), 2)
        self.assertEqual(len(self.requests("GET", "/content/")), 4)
        self.server.control("DELETE")
        self.get(url)
        self.assertEqual(self.server.control()["counts"], {})
        self.prefetch("verify", "-q", "--cache-dir", "b")
        result = self.get(self.origin.url(999), status=1)
        self.assertIn("neither in the cache nor in s3://", result.stderr)
        self.refuse("GET", "content/", 404, "NoSuchKey")
        result = self.get(self.origin.url(7), status=1)
        self.assertIn("its file in the bucket is missing or damaged", result.stderr)
        self.refuse("GET", "sqlite", 403, "AccessDenied")
        result = self.get(self.origin.url(7), status=2)
        self.assertIn("AccessDenied", result.stderr)
        self.server.control("POST", faults=[
            {"kind": "cut", "at": "body", "method": "GET", "key": "sqlite", "times": 2},
            {"kind": "status", "method": "GET", "key": "content/", "status": 500}])
        self.server.control("DELETE")
        self.get(self.origin.url(7))
        self.prefetch("verify", "-q", "--cache-dir", "b")

    def test_get_keeps_later_copies(self):
        """The rule of merges: the image validated later stays, with all its variants."""
        self.run_to_sink("--variant", "s=4x4")
        url = self.origin.url(5, "h5")
        (self.folder / "list.txt").write_text(url + "\n")
        own = ["--cache-dir", "b", "--ttl", "1h"]
        self.prefetch("run", "list.txt", *own)
        later = self.rows("b")
        # The source is the same, so the bucket's variant is one more.
        self.get(url, "--variant", "s")
        self.prefetch("get", url, "--cache-dir", "b")
        rows = self.rows("b")
        self.assertEqual(len(rows), 2)
        self.assertEqual({row[3] for row in rows}, {later[0][3]})
        # Of another source it is none.
        shutil.rmtree(self.folder / "b")
        self.origin.shift = 500
        self.addCleanup(setattr, self.origin, "shift", 0)
        self.prefetch("run", "list.txt", *own)
        result = self.get(url, "--variant", "s", status=1)
        self.assertIn("the cache has a later image of it", result.stderr)
        self.prefetch("get", url, "--cache-dir", "b")
        self.prefetch("verify", "-q", "--cache-dir", "b")

    # MARK: Faults

    def test_transient_failures_are_repeated(self):
        for kind, settings in [
                ("status", {"times": 3}), ("status-early", {}), ("cut", {"at": "head"}),
                ("lost", {}), ("lost", {"key": "_DONE"})]:
            with self.subTest(kind=kind, **settings):
                shutil.rmtree(self.folder / "b", ignore_errors=True)
                self.sink += "x"
                self.server.fault(kind, **{"method": "PUT"} | settings)
                self.assertTrue(self.run_to_sink()["done"])
                self.assertGreaterEqual(sum(self.server.control()["faults"]), 1)
                self.server.control("DELETE")
                self.prefetch("pull", self.sink, "--cache-dir", "b")
                self.expect_equal("a", "b")

    def test_cut_answers_of_a_pull(self):
        self.run_to_sink()
        for settings in [
                {"kind": "cut", "at": "body", "key": "content/", "times": 5},
                {"kind": "cut", "at": "body", "key": "sqlite$"},
                {"kind": "lost", "key": "_DONE"}]:
            with self.subTest(**settings):
                shutil.rmtree(self.folder / "b", ignore_errors=True)
                self.server.fault(**{"method": "GET"} | settings)
                self.prefetch("pull", self.sink, "--cache-dir", "b")
                self.assertGreaterEqual(sum(self.server.control()["faults"]), 1)
                self.expect_equal("a", "b")

    def test_lasting_failures_end_with_one_message(self):
        self.refuse("PUT", "content/", 403, "AccessDenied")
        sink = self.run_to_sink(status=2)
        self.assertFalse(sink["done"])
        self.assertEqual(self.result.stderr.count("AccessDenied"), 1, self.result.stderr)
        self.assertIn("hint: these credentials may not do that", self.result.stderr)
        self.assertEqual(self.requests("PUT", "_DONE"), [])
        # The images are in the cache, and the next run goes on.
        self.server.control("DELETE")
        self.assertTrue(self.run_to_sink()["done"])

    def test_damaged_files_are_not_published(self):
        self.run_to_sink("--sink", self.sink + "-first")
        path = next((self.folder / "a/content").glob("*/*"))
        body = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
        sink = self.run_to_sink(status=2)
        self.assertFalse(sink["done"])
        self.assertIn("1 content file is missing or damaged", self.result.stderr)
        self.assertEqual(self.requests("PUT", "t%20" + f"{self.count}/%C3%A9/shards"), [])
        self.prefetch("verify", "-q", "--repair", "--cache-dir", "a", status=1)
        self.assertTrue(self.run_to_sink()["done"])

    def test_files_missing_in_the_bucket_are_told(self):
        self.run_to_sink()
        digests = sorted(name.split(".")[0] for name in self.files("a"))
        # The proxy answers as if they had gone.
        self.refuse("GET", digests[0], 404, "NoSuchKey")
        result = self.prefetch("pull", self.sink, "--cache-dir", "b", status=1)
        self.assertIn("1 file is missing or damaged", result.stderr)
        self.prefetch("verify", "-q", "--cache-dir", "b")
        self.assertEqual(len(self.rows("b")), IMAGES - 1)
        self.server.control("DELETE")
        self.prefetch("pull", self.sink, "--cache-dir", "b")
        self.expect_equal("a", "b")

    def test_objects_of_another_size_are_sent_again(self):
        self.run_to_sink()
        digest = sorted(name.split(".")[0] for name in self.files("a"))[0]
        self.put(f"content/{digest[:2]}/{digest}", b"no")
        self.prefetch("pull", self.sink, "--cache-dir", "b", status=1)
        sink = self.run_to_sink()
        self.assertEqual((sink["uploaded"], sink["present"]), (1, IMAGES - 1))
        # Other bytes of the same size, and more bytes, are refused by whoever reads them.
        size = len(self.object(f"content/{digest[:2]}/{digest}"))
        for body in [b"x" * size, b"x" * (size + 1), b"x" * 3000000]:
            shutil.rmtree(self.folder / "b")
            self.put(f"content/{digest[:2]}/{digest}", body)
            result = self.prefetch("pull", self.sink, "--cache-dir", "b", status=1)
            self.assertIn("1 file is missing or damaged", result.stderr)
            self.assertEqual(len(self.rows("b")), IMAGES - 1)

    def test_hostile_databases_are_refused(self):
        self.run_to_sink()
        done = json.loads(self.object(DONE))
        path = self.folder / "evil.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("CREATE VIEW variant AS SELECT 1 AS sha256")
            database.execute("PRAGMA application_id = 1")
        for body in [b"", b"SQLite format 3\0" + bytes(5000), path.read_bytes(), bytes(100)]:
            digest = self.publish(done, body)
            self.prefetch("pull", self.sink, "--cache-dir", "b", status=2)
            self.get(self.origin.url(1), status=2)
        wrong = [{"sha256": "../../x", "bytes": 1}, {"sha256": digest, "bytes": -5},
                 {"sha256": digest, "bytes": 1 << 62}]
        for text in [b"", b"{}", b"[]", b"[" * 100000] + [
                json.dumps(done | {"database": each}).encode() for each in wrong]:
            self.put(DONE, text)
            result = self.prefetch("pull", self.sink, "--cache-dir", "b", status=2)
            self.assertIn("not written by this program", result.stderr)
        # A shard beside them is merged.
        self.put("shards/1-of-2/_DONE.json", b"{}")
        self.run_to_sink()
        result = self.prefetch("pull", self.sink, "--cache-dir", "b", status=1)
        self.assertIn("hint: run that shard again with --sink", result.stderr)
        self.expect_equal("a", "b")

    def test_impossible_sizes_are_refused(self):
        for size in [0, 1 << 50, (1 << 63) - 1]:
            self.sink += "x"
            self.run_to_sink()
            done = json.loads(self.object(DONE))
            path = self.folder / "evil.sqlite"
            path.write_bytes(self.object(f"shards/0-of-1/{done['database']['sha256']}.sqlite"))
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA journal_mode = DELETE")
                for (trigger,) in database.execute(
                        "SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                    database.execute(f"DROP TRIGGER {trigger}")
                database.execute("UPDATE variant SET bytes = ?", (size,))
                database.commit()
            self.publish(done, path.read_bytes())
            self.prefetch("pull", self.sink, "--cache-dir", f"c{size}", status=(1, 2))

    # MARK: Stops

    def test_stopped_and_killed_copies_go_on(self):
        self.prefetch("run", "list.txt", "--cache-dir", "a", "--ttl", "1h")
        for number in [signal.SIGTERM, signal.SIGKILL]:
            self.sink += "x"
            self.stop(
                number, "PUT", "run", "list.txt", "--cache-dir", "a", "--ttl", "1h", "--sink",
                self.sink)
            self.assertEqual(self.requests("PUT", "_DONE"), [])
            self.server.control("DELETE")
            sink = self.run_to_sink()
            self.assertTrue(sink["done"])
            # Three threads have a request each.
            self.assertGreaterEqual(sink["present"], 7)

    def test_stopped_and_killed_pulls_go_on(self):
        self.run_to_sink()
        for number in [signal.SIGTERM, signal.SIGKILL]:
            shutil.rmtree(self.folder / "b", ignore_errors=True)
            self.stop(number, "GET", "pull", self.sink, "--cache-dir", "b")
            self.server.control("DELETE")
            self.prefetch("pull", self.sink, "--cache-dir", "b")
            gotten = self.requests("GET", "/content/")
            # Three threads have a request each.
            self.assertLessEqual(len(gotten), IMAGES - 7)
            self.expect_equal("a", "b")

    def stop(self, number, method, *arguments):
        """Sends a signal to a command while a request for content gets no answer."""
        self.server.control("DELETE")
        self.server.fault("stall", method=method, key="content/", skip=10, times=None)
        command = subprocess.Popen(
            [BINARY, *arguments], cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not sum(self.server.control()["faults"]):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        command.send_signal(number)
        self.assertEqual(command.wait(timeout=20), -number)

    # MARK: Access

    def test_wrong_names_are_told_before_the_run(self):
        values = self.server.values
        for sink, environment, text in [
                ("s3://none-such/x", {}, "NoSuchBucket"),
                (self.sink, {"AWS_SECRET_ACCESS_KEY": "wrong"}, "hint: check the secret key"),
                (self.sink, {"AWS_ACCESS_KEY_ID": ""}, "no credentials"),
                (self.sink, {"AWS_ENDPOINT_URL_S3": "ftp://x"}, "not an http or https URL")]:
            result = self.prefetch(
                "run", "list.txt", "--cache-dir", "c", "--sink", sink, status=2, **environment)
            self.assertIn(text, result.stderr)
        result = self.prefetch("pull", self.sink, "--cache-dir", "c", status=2)
        self.assertIn("no shard is complete there", result.stderr)


class MotoSinkTests(SinkTests, unittest.TestCase):
    name = "moto"

    def test_large_databases_are_sent_in_parts(self):
        """By attributes, 64 KiB each."""
        self.list(range(70))
        self.prefetch("run", "list.txt", "--cache-dir", "a", "--ttl", "1h")
        with contextlib.closing(
                sqlite3.connect(self.folder / "a/prefetch.sqlite")) as database:
            database.execute(
                """
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 18)
                INSERT INTO attribute SELECT id, 'big' || i, randomblob(65536) FROM resource, n
                """)
            database.commit()
        for settings in [{"status": 500, "query": "partNumber=2"},
                         {"status": 503, "code": "SlowDown", "query": "uploads="},
                         {"status": 500, "method": "POST", "query": "uploadId"},
                         {"kind": "lost", "method": "POST", "query": "uploadId"},
                         {"status": 200, "code": "InternalError", "method": "POST",
                          "query": "uploadId"}]:
            self.server.fault(**{"kind": "status"} | settings)
            self.sink += "x"
            self.assertTrue(self.run_to_sink()["done"])
            self.assertGreaterEqual(len(self.requests("PUT", "partNumber=")), 5)
            self.server.control("DELETE")
        self.prefetch("pull", self.sink, "--cache-dir", "b")
        self.expect_equal("a", "b")
        # A failure ends the upload, whose parts would cost money.
        self.sink += "x"
        self.server.fault(
            "status", status=403, code="AccessDenied", query="partNumber=3", times=None)
        self.assertFalse(self.run_to_sink(status=2)["done"])
        self.assertEqual(len(self.requests("DELETE", "uploadId=")), 1)

    def test_temporary_keys(self):
        role = {"access_key": "A", "secret_key": "S", "token": "t/+="}
        container = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI":
                f"http://127.0.0.1:{self.origin.server.server_port}/keys",
            "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
        arguments = ["--sink-credentials", "metadata"]
        self.server.control("POST", credentials=[role])
        self.assertTrue(self.run_to_sink(*arguments, **container)["done"])
        self.server.control("POST", credentials=[role | {"expired": True}])
        self.run_to_sink(*arguments, status=2, **container)
        self.assertIn("ExpiredToken", self.result.stderr)


class SwiftSinkTests(SinkTests, unittest.TestCase):
    name = "swift"


if __name__ == "__main__":
    unittest.main()

"""Tests of the installed wheel, against a server on 127.0.0.1.

Usage: python -m unittest discover -s Packaging/wheel/tests
"""

import functools
import hashlib
import http.server
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import prefetch

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "samples/images"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class WheelTests(unittest.TestCase):
    def setUp(self):
        handler = functools.partial(Handler, directory=str(IMAGES))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(self.server.server_close)
        threading.Thread(
            target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(self.server.shutdown)
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.cache = self.folder / "cache"
        self.names = sorted(file.name for file in IMAGES.glob("*.jpg"))
        self.assertGreater(len(self.names), 3)
        self.urls = [f"{self.origin}/{name}" for name in self.names]

    def test_outcomes_are_typed(self):
        seen = []
        result = prefetch.run(
            self.urls + [f"{self.origin}/none.jpg", "no url\nhttps://x"],
            cache=self.cache, on_progress=seen.append, retry=0)
        self.assertFalse(result.ok)
        self.assertEqual(result.exit_status, 1)
        self.assertEqual(result.counts[prefetch.Outcome.DOWNLOADED], len(self.urls))
        self.assertEqual(result.counts[prefetch.Outcome.FAILED], 2)
        self.assertEqual(tuple(seen), result.entries)
        self.assertEqual(sum(result.counts.values()), len(result.entries))
        self.assertEqual(result.cache, self.cache)
        by_index = {entry.index: entry for entry in result.entries}
        for index, url in enumerate(self.urls):
            entry = by_index[index]
            self.assertEqual((entry.url, entry.outcome), (url, prefetch.Outcome.DOWNLOADED))
            self.assertEqual(entry.path.stat().st_size, entry.bytes_stored)
            self.assertGreater(entry.width * entry.height, 0)
        missing, invalid = by_index[len(self.urls)], by_index[len(self.urls) + 1]
        self.assertEqual((missing.http_status, missing.reason), (404, "http-status"))
        self.assertEqual(invalid.reason, "invalid-entry")
        self.assertEqual({missing, invalid}, set(result.failed))

    def test_a_second_run_requests_nothing(self):
        prefetch.run(self.urls, cache=self.cache)
        result = prefetch.run(iter(self.urls), cache=str(self.cache), ttl="1d", keep_entries=False)
        self.assertTrue(result.ok)
        self.assertEqual(result.counts[prefetch.Outcome.FRESH], len(self.urls))
        self.assertEqual(result.entries, ())

    def test_rows_have_columns(self):
        class Scalar:
            def item(self):
                return 7

        rows = [
            {"picture": url, "caption": f'"{index}", ä\n\t\ud83d', "none": None, "nan": float("nan"),
             "list": [1, {"a": float("inf")}], "path": Path("x"), "scalar": Scalar(), 3: "number"}
            for index, url in enumerate(self.urls)]
        rows[0]["id"] = "first"
        result = prefetch.run(
            rows, cache=self.cache, url_column="picture", column="key=id", lock="wait")
        self.assertTrue(result.ok, result)
        for entry in result.entries:
            row = rows[entry.index]
            self.assertEqual(entry.url, row["picture"])
            self.assertEqual(entry.key, row.get("id", row["picture"]))
            self.assertEqual(entry.sha256, hashlib.sha256(entry.path.read_bytes()).hexdigest())
            self.assertTrue(entry.columns["caption"].startswith(f'"{entry.index}", ä\n\t'))
            self.assertEqual(entry.columns["3"], "number")
            self.assertTrue({entry})
        with self.assertRaisesRegex(TypeError, "a row is a URL or a mapping, not int"):
            prefetch.run([1], cache=self.cache)
        with self.assertRaisesRegex(TypeError, "to_pylist"):
            prefetch.run("list.parquet", cache=self.cache)

    def test_get(self):
        self.assertIsNone(prefetch.get(self.urls[0], cache=self.cache))
        prefetch.run(self.urls[:1], cache=self.cache, variant=["thumb=8x8,png", "web=4x4,webp"])
        path = prefetch.get(self.urls[0], cache=self.cache)
        self.assertTrue(path.is_absolute() and path.is_file())
        thumb = prefetch.get(self.urls[0], cache=self.cache, variant="thumb", stale=True)
        self.assertEqual(thumb.suffix, ".png")
        self.assertIsNone(prefetch.get(self.urls[1], cache=self.cache))

    def test_errors_have_message_and_hint(self):
        with self.assertRaises(prefetch.UsageError) as caught:
            prefetch.run([], cache=self.cache, host_concurency=4)
        self.assertIn("host-concurency", caught.exception.message)
        self.assertTrue(caught.exception.hint)
        self.assertEqual(caught.exception.exit_status, 64)
        # The whole error: all values, and each of several mistakes.
        with self.assertRaises(prefetch.UsageError) as caught:
            prefetch.run([], cache=self.cache, encode="jpg")
        for part in ("did you mean jpeg?", "webp", "original", "--encode <format>"):
            self.assertIn(part, str(caught.exception))
        configuration = self.folder / "c.toml"
        configuration.write_text("jbos = 1\nretyr = 2\n")
        with self.assertRaises(prefetch.UsageError) as caught:
            prefetch.run([], cache=self.cache, config=configuration)
        for part in ("c.toml:1: unknown key 'jbos'", "did you mean 'jobs'?", "c.toml:2: unknown key 'retyr'"):
            self.assertIn(part, str(caught.exception))
        file = self.folder / "file"
        file.write_text("")
        with self.assertRaises(prefetch.PrefetchError) as caught:
            prefetch.run(self.urls, cache=file)
        self.assertEqual(caught.exception.exit_status, 2)
        self.assertIn(str(file), str(caught.exception))
        with self.assertRaises(prefetch.UsageError):
            prefetch.get(self.urls[0], cache=self.cache, recipe="a", variant="b")

    def test_a_held_cache(self):
        program, cache = prefetch._program(), f"--cache-dir={self.cache}"
        # It reads a list that does not end.
        with subprocess.Popen([program, "run", "-", cache], stdin=subprocess.PIPE) as holder:
            self.addCleanup(holder.kill)
            end = time.monotonic() + 20
            while subprocess.run([program, "status", cache], capture_output=True).returncode:
                self.assertLess(time.monotonic(), end, "the cache is not held")
            with self.assertRaises(prefetch.CacheInUseError) as caught:
                prefetch.run(self.urls, cache=self.cache)
            self.assertTrue(caught.exception.hint)
            self.assertIsNone(prefetch.run(self.urls, cache=self.cache, lock="skip").cache)
            holder.kill()

    def test_an_exception_ends_the_run(self):
        class Stop(Exception):
            pass

        def stop(_):
            raise Stop

        with self.assertRaises(Stop):
            prefetch.run(self.urls, cache=self.cache, on_progress=stop)

        def broken():
            yield self.urls[0]
            raise Stop

        with self.assertRaises(Stop):
            prefetch.run(broken(), cache=self.cache)

    def test_many_urls(self):
        """More than the pipes hold, in both directions."""
        prefetch.run(self.urls[:1], cache=self.cache)
        result = prefetch.run(
            (self.urls[0] for _ in range(20_000)), cache=self.cache, ttl="1d", keep_entries=False)
        self.assertEqual(sum(result.counts.values()), 20_000)

    def test_parquet(self):
        rows = [{"url": url, "caption": f"image {index}", "n": index}
                for index, url in enumerate(self.urls)]
        lines = self.folder / "list.jsonl"
        lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
        prefetch.run(self.urls, cache=self.cache)
        out = self.folder / "out"
        export = [prefetch._program(), "export", str(out), str(lines), "--layout", "webdataset",
                  "--shard-size", "2", f"--cache-dir={self.cache}"]
        subprocess.run(export, check=True)
        command = [sys.executable, "-m", "prefetch.parquet", str(out)]
        if importlib.util.find_spec("pyarrow") is None:
            failed = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(failed.returncode, 1)
            self.assertIn(f"hint: {sys.executable} -m pip install pyarrow", failed.stderr)
            return
        import pyarrow.parquet
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        first = {file.name: file.read_bytes() for file in out.glob("*.parquet")}
        self.assertEqual(len(first), (len(rows) + 1) // 2)
        found = [row for name in sorted(first)
                 for row in pyarrow.parquet.read_table(out / name).to_pylist()]
        self.assertEqual([{name: row[name] for name in ("url", "caption", "n")} for row in found], rows)
        self.assertTrue(all(row["status"] == "success" and row["width"] > 0 for row in found))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(first, {file.name: file.read_bytes() for file in out.glob("*.parquet")})
        again = subprocess.run(export, check=True, capture_output=True, text=True)
        self.assertIn("unchanged", again.stderr)

    @unittest.skipIf(importlib.util.find_spec("pyarrow") is None, "needs pyarrow")
    def test_types_and_failed_rows_in_parquet(self):
        import pyarrow.parquet
        # Column, its cells in the rows of both shards, its type and values.
        columns = [
            ("n", ["1", "", "-3", "0"], "int64", [1, None, -3, 0]),
            ("price", ["1.5", "2", "", "1e3"], "double", [1.5, 2.0, None, 1000.0]),
            ("zip", ["01234", "1", "2", "3"], "string", ["01234", "1", "2", "3"]),
            ("long", ["1", "2", "3", "1" * 30], "string", ["1", "2", "3", "1" * 30]),
            ("digits", ["0.1", "2", "3", "1" * 17], "string", ["0.1", "2", "3", "1" * 17]),
            ("text", ["1", "2", "3", "x"], "string", ["1", "2", "3", "x"]),
            ("none", ["", "", "", ""], "string", ["", "", "", ""]),
        ]
        urls = [self.urls[0], f"{self.origin}/none.jpg", self.urls[1], f"{self.origin}/x.svg"]
        table = self.folder / "list.csv"
        rows = zip(urls, *(cells for _, cells, _, _ in columns))
        lines = [",".join(["url"] + [name for name, *_ in columns]), *map(",".join, rows)]
        table.write_text("".join(line + "\n" for line in lines))
        prefetch.run(urls, cache=self.cache, retry=0)
        out = self.folder / "out"
        export = [prefetch._program(), "export", str(out), str(table), "--layout", "webdataset",
                  "--shard-size", "2", "-q", f"--cache-dir={self.cache}"]
        self.assertEqual(subprocess.run(export, capture_output=True).returncode, 1)
        subprocess.run([sys.executable, "-m", "prefetch.parquet", str(out)], check=True,
                       stdout=subprocess.DEVNULL)
        tables = [pyarrow.parquet.read_table(file) for file in sorted(out.glob("*.parquet"))]
        self.assertEqual(len(tables), 2)
        self.assertEqual(tables[0].schema, tables[1].schema)
        found = [row for table in tables for row in table.to_pylist()]
        self.assertEqual([row["error_message"] for row in found], [None, "HTTP 404", None, "HTTP 404"])
        self.assertEqual([row["status"] for row in found], ["success", "failed_to_download"] * 2)
        for name, _, type_, values in columns:
            self.assertEqual(str(tables[0].schema.field(name).type), type_, name)
            self.assertEqual([row[name] for row in found], values, name)

    def test_the_example(self):
        text = (ROOT / "Packaging/wheel/README.md").read_text()
        code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
        code = code.replace("https://example.com/hero.jpg", self.urls[0])
        code = code.replace('cache="images"', f"cache={str(self.cache)!r}")
        names = {"print": lambda *arguments: None}
        exec(code, names)
        self.assertTrue(names["path"].is_file())


if __name__ == "__main__":
    unittest.main()

"""Shared by the scripts in this folder: servers, databases, workplaces and findings."""

import collections
import concurrent.futures
import contextlib
import functools
import hashlib
import http.server
import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PREFETCH_BINARY", ROOT / ".build/debug/prefetch"))
STOPPER = ROOT / ".build/debug/libStopAtStart.so"
# A run takes less than a second.
TIME_LIMIT = 60
# Of a database, and of a small file on the disk.
PAGE = 4096
WORKERS = max(2, len(os.sched_getaffinity(0)))


def fail(message):
    sys.exit(f"torture: {message}")


class FolderServer:
    """Serves a folder over HTTP on loopback while the block runs."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.process = subprocess.Popen(
            [ROOT / "Scripts/serve-directory", self.folder], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


class Server(FolderServer):
    """A server of small pictures, and a bucket."""

    def __init__(self, folder, count, suffixes=("png", "jpg")):
        super().__init__(folder)
        folder.mkdir()
        self.paths = []
        for index in range(count):
            picture = Image.new("RGB", (24, 16), (index % 256, index // 256, index * 7 % 256))
            suffix = suffixes[index % len(suffixes)]
            picture.save(folder / f"{index}.{suffix}")
            self.paths.append(f"{index}.{suffix}")

    def __enter__(self):
        super().__enter__()
        self.urls = [f"http://127.0.0.1:{self.port}/{path}" for path in self.paths]
        self.bucket = Bucket()
        return self

    def __exit__(self, *_):
        self.bucket.shutdown()
        self.bucket.server_close()
        super().__exit__()


class Bucket(http.server.ThreadingHTTPServer):
    """A bucket in memory, without signatures."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Bucket.Handler)
        self.objects = {}
        Workplace.more["AWS_ENDPOINT_URL_S3"] = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def problems(self):
        """Objects whose bytes differ from their names."""
        return [f"bucket: {key}" for key, data in self.objects.copy().items() if not key.endswith(".json")
                and hashlib.sha256(data).hexdigest() != key.rpartition("/")[2].removesuffix(".sqlite")]

    def handle_error(self, *_):
        """A killed client hangs up."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            url = urllib.parse.urlsplit(self.path)
            key = urllib.parse.unquote(url.path).removeprefix("/b").lstrip("/")
            query = dict(urllib.parse.parse_qsl(url.query))
            objects, status, data = self.server.objects, 200, b""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.command == "PUT":
                objects[key] = body
            elif self.command == "DELETE":
                objects.pop(key, None)
                status = 204
            elif "list-type" in query:
                names = sorted(name for name in objects if name.startswith(query.get("prefix", ""))
                               and name > query.get("start-after", ""))
                data = ("<ListBucketResult><IsTruncated>false</IsTruncated>" + "".join(
                    f"<Contents><Key>{name}</Key><Size>{len(objects[name])}</Size></Contents>" for name in names)
                    + "</ListBucketResult>").encode()
            else:
                data, status = objects.get(key, b""), 200 if key in objects else 404
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", '"e"')
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_DELETE = answer

        def log_message(self, *_):
            pass


def write_list(path, urls):
    path.write_text("".join(url + "\n" for url in urls))


# MARK: caches

def execute(database, *statements, **values):
    """Executes statements over a database, each in its own transaction; the rows of the last."""
    connection = sqlite3.connect(database, isolation_level=None, uri=True)
    with contextlib.closing(connection):
        for statement in statements:
            rows = connection.execute(statement, values).fetchall()
        return rows


def as_snapshot(database):
    """The name of a database for reading without any change to it."""
    return f"file:{database}?mode=ro&immutable=1"


def damage_of(database):
    """The first damage of a database, or None."""
    try:
        finding = execute(database, "PRAGMA integrity_check(1)")[0][0]
    except sqlite3.Error as error:
        return str(error)
    return None if finding == "ok" else finding


def stored(cache):
    """For each row its key, its file, and whether the file is complete."""
    for key, digest, kind, size in execute(
            cache / "prefetch.sqlite", "SELECT key, sha256, format, bytes FROM variant LEFT JOIN "
            "resource ON id = resource_id"):
        digest = bytes(digest).hex()
        path = cache / f"content/{digest[:2]}/{digest}.{'jpg' if kind == 'jpeg' else kind}"
        data = path.read_bytes() if path.exists() else b""
        yield key, path, len(data) == size and hashlib.sha256(data).hexdigest() == digest


def damage_files(cache, chance, each, orphans):
    """Changes, cuts and removes some content files `each`, and adds orphaned ones: both sets of names."""
    files = sorted(path for path in (cache / "content").rglob("*") if path.is_file())
    victims = chance.sample(files, 3 * each)
    for path in victims[:each]:
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
    for path in victims[each:2 * each]:
        os.truncate(path, 5)
    for path in victims[2 * each:]:
        path.unlink()
    names = {chance.randbytes(32).hex() for _ in range(orphans)}
    for name in names:
        path = cache / "content" / name[:2] / f"{name}.png"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(b"orphan")
        path.chmod(0o600)
    return {path.stem for path in victims}, names


class Workplace:
    """A separate folder with a manifest and a cache, for one run at a time."""

    # Variables of all commands.
    more = {"AWS_REGION": "us-east-1"}

    def __init__(self, folder, lines=None):
        """Keeps the folder as it is if no lines are given."""
        self.folder = folder
        self.cache = folder / "cache"
        if lines is not None:
            folder.mkdir(parents=True)
            (folder / "tmp").mkdir()
            write_list(folder / "manifest.txt", lines)

    def environment(self, more=None):
        kept = {name: os.environ[name] for name in os.environ
                if name in ("LLVM_PROFILE_FILE", "ASAN_OPTIONS", "TSAN_OPTIONS")}
        return {"HOME": str(self.folder), "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8", "PREFETCH_CACHE_DIR": str(self.cache),
                "TMPDIR": str(self.folder / "tmp"), "SWIFT_BACKTRACE": "enable=no",
                **self.more, **kept, **(more or {})}

    def run(self, arguments, before=(), environment=None, stdin=subprocess.DEVNULL):
        """The status (negative for a signal, None for too long) and standard error."""
        process = subprocess.Popen(
            [*before, str(BINARY), *arguments], cwd=self.folder, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(environment),
            start_new_session=True)
        try:
            output, error = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            # The command under strace may hold the pipes, so the whole session is killed.
            os.killpg(process.pid, signal.SIGKILL)
            output, error = process.communicate()
            return None, error.decode(errors="replace")
        return process.returncode, error.decode(errors="replace")

    def start(self, arguments, name="victim", before=()):
        """Starts a process whose streams are written to `name`.out and `name`.err."""
        with (open(self.folder / f"{name}.out", "wb") as output,
              open(self.folder / f"{name}.err", "wb") as error):
            return subprocess.Popen(
                [*before, str(BINARY), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=output, stderr=error, env=self.environment())


class Findings:
    """Counts statuses and prints problems."""

    def __init__(self):
        self.lock = threading.Lock()
        self.statuses = collections.defaultdict(collections.Counter)
        self.problems = 0

    def count(self, name, status):
        with self.lock:
            self.statuses[name]["too long" if status is None else status] += 1

    def problem(self, text):
        with self.lock:
            self.problems += 1
            print(f"torture: {text}", flush=True)


def taken(queue):
    """The last elements of a list first, each for one of several threads."""
    while True:
        try:
            element = queue.pop()
        except IndexError:
            return
        yield element


def run_all(work, workers=WORKERS):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work, number) for number in range(workers)]:
            future.result()


def print_statuses(findings):
    for name in sorted(findings.statuses):
        counts = findings.statuses[name]
        print(f"  {name:<24}", "  ".join(
            f"{status}: {counts[status]}" for status in sorted(counts, key=str)))


class Judge:
    """The tests' judge of caches, in this process, because starting another takes longer than judging."""

    lock = threading.Lock()

    @classmethod
    @functools.cache
    def module(cls):
        path = ROOT / "Tests/TestSupport/Judging/judge.py"
        specification = importlib.util.spec_from_file_location("judge", path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        decode = module.decoded

        @functools.lru_cache(4096)
        def remembered(data):
            before = len(module.problems)
            picture = decode(data, "")
            del module.problems[before:]
            return picture

        # Undecodable data is reported each time.
        module.decoded = lambda data, name: remembered(data) or decode(data, name)
        return module

    @classmethod
    def lines(cls, cache):
        """Its output: problems, and `rows=N files=N`."""
        with cls.lock:
            lines = []
            cls.module().print = lambda text="", **_: lines.append(str(text))
            cls.module().main([str(cache)])
            return lines


def judge(workplace, expected, is_allowed=lambda problem: False, name="the judge"):
    """The problems of the cache, as one text in a list; empty if there are none.

    `expected` is the number of rows, or a set or range of permitted numbers.
    """
    *problems, last = Judge.lines(workplace.cache)
    problems = [problem for problem in problems if not is_allowed(problem)]
    numbers = expected if isinstance(expected, (set, range)) else {expected}
    if expected is not None and int(last.split()[0].removeprefix("rows=")) not in numbers:
        problems.append(f"{last}, but there should be {expected}")
    return [f"{name}: {'; '.join(problems)[-600:]}"] if problems else []


@contextlib.contextmanager
def served_folder(count, suffixes=("png", "jpg"), parent=None):
    """A temporary folder, and a server of pictures."""
    with tempfile.TemporaryDirectory(prefix="prefetch-torture.", dir=parent) as folder:
        folder = Path(folder)
        with Server(folder / "images", count, suffixes) as server:
            yield folder, server

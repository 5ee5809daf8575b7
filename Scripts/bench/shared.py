"""Shared by the benchmarks in this folder: measuring a command, peers, origins, tables.

Wall time is from start to end of the process. CPU is user + system time of the process and all its
children (wait4). Peak memory is the largest resident set of any of its processes (GNU time's %M). GNU
time starts the command, which costs about a millisecond. Dirty pages are written out first.
"""

import argparse
import asyncio
import collections
import copy
import datetime
import functools
import json
import multiprocessing
import operator
import os
import platform
import shlex
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".build-bench"
CODEC_BENCH = ROOT / ".build/release/codec-bench"


# Seconds, seconds, bytes, the problem or None; for prefetch's cold run the seconds of decoding and
# encoding in its report; if threads were watched, CPU seconds and disk wait by thread; what an origin saw.
class Measurement(collections.namedtuple(
        "Measurement", "wall cpu peak problem codecs threads seen", defaults=[None, {}, None])):
    def unless(self, is_right, problem):
        """The same with a problem, unless it has one or something is right."""
        return self if self.problem or is_right else self._replace(problem=problem)


# A request in an origin's log: arrival and end in seconds since 1970, status, connection, protocol.
Request = collections.namedtuple("Request", "arrival end status connection protocol")


def fail(message):
    sys.exit(f"bench: {message}")


def png(width, height, data):
    """A PNG of 8-bit RGB; `data` is the compressed rows."""
    def chunk(kind, data):
        return (len(data).to_bytes(4, "big") + kind + data
                + zlib.crc32(kind + data).to_bytes(4, "big"))

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data)
            + chunk(b"IEND", b""))


def pixel(colour=0x808080):
    """A PNG of one pixel, 69 bytes, different for each 24-bit colour."""
    return png(1, 1, zlib.compress(b"\0" + colour.to_bytes(3, "big"), 9))


def photographs():
    """The folder of photographs."""
    return Path(os.environ.get("PREFETCH_BENCH_PHOTOS") or ROOT / "../shared/data/photos")


def read_ahead(path):
    """Reads a file into the page cache, so that no command waits for the disk."""
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nginx:
    """nginx on a free loopback port with its own configuration, stopped by its process id.

    `locations` is the part of the configuration that lists the served files. `servers` is more for its
    `http` block, and `main` for the file's beginning.
    """

    def __init__(self, locations, servers="", main=""):
        self.locations = locations
        self.servers = servers
        self.main = main

    def __enter__(self):
        self.folder = WORK / "nginx"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.port = free_port()
        temporary = "\n".join(
            f"    {kind}_temp_path {self.folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        # As root, nginx would serve as a user without access to this folder.
        user = "user root;" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(f"""\
{user}
{self.main}
daemon off;
worker_processes 1;
pid {self.folder}/pid;
error_log {self.folder}/error.log;
events {{ worker_connections 16384; }}
http {{
{temporary}
    types {{ image/jpeg jpg; image/png png; image/gif gif; image/webp webp; }}
    access_log off;
    sendfile on;
    tcp_nopush on;
    server {{
        listen 127.0.0.1:{self.port} backlog=4096;
        {self.locations}
        location = /requests {{ stub_status; }}
    }}
    {self.servers}
}}
""")
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen(
            [program, "-e", str(self.folder / "error.log"), "-c", str(self.folder / "nginx.conf")],
            stdin=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.requests()
                return self
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.process.kill()
        fail(f"nginx did not start; see {self.folder}/error.log")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def requests(self):
        """The requests so far, without this one."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/requests", timeout=5) as answer:
            self.asked = getattr(self, "asked", 0) + 1
            return int(answer.read().split(b"\n")[2].split()[2]) - self.asked


class Late:
    """The rule of an origin that answers each request after the same time.

    A rule's `answer(now)` returns a status and the seconds until the answer. `now` never decreases.
    """

    def __init__(self, seconds):
        self.seconds = seconds

    def answer(self, now):
        return 200, self.seconds


class Origin:
    """A server in its own process that answers `/N.png` with :func:`pixel` by a rule, and logs.

    It speaks HTTP/1.1 without pipelining. A refusal has neither body nor `Retry-After`.
    """

    def __init__(self, rule):
        self.rule = rule

    def __enter__(self):
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(
            target=self.serve, args=(self.rule, self.pipe, other), daemon=True)
        self.process.start()
        other.close()
        self.port = self.received()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join(10)

    def received(self):
        if not self.pipe.poll(10):
            fail("the origin does not answer")
        return self.pipe.recv()

    def requests(self):
        """The number of requests since the last :meth:`take`."""
        self.pipe.send("count")
        return self.received()

    def take(self):
        """Returns the log since the last call, without unanswered requests, and resets the rule."""
        self.pipe.send("take")
        return [Request(*fields) for fields in self.received()]

    @staticmethod
    def serve(rule, parent, pipe):
        picture = functools.cache(pixel)
        # The count of requests, the answered ones, and the rule with its state.
        state = [0, [], copy.deepcopy(rule)]
        connections = 0

        class Connection(asyncio.Protocol):
            def connection_made(self, transport):
                nonlocal connections
                connections += 1
                self.number = connections
                self.transport = transport
                self.received = b""

            def data_received(self, data):
                self.received += data
                while b"\r\n\r\n" in self.received:
                    head, self.received = self.received.split(b"\r\n\r\n", 1)
                    now = loop.time()
                    state[0] += 1
                    status, delay = state[2].answer(now)
                    number = int(head.split(b" ", 2)[1].strip(b"/").split(b".")[0])
                    loop.call_later(delay, self.answer, state[1], now, status, number)

            # A late answer belongs to the log that was current when its request arrived.
            def answer(self, log, arrival, status, number):
                body = picture(number) if status == 200 else b""
                self.transport.write(
                    b"HTTP/1.1 %d %s\r\nContent-Type: image/png\r\nCache-Control: max-age=86400"
                    b"\r\nContent-Length: %d\r\n\r\n" % (
                        status, b"OK" if status == 200 else b"Refused", len(body)) + body)
                log.append((arrival + since_1970, loop.time() + since_1970, status, self.number,
                            "HTTP/1.1"))

        def asked():
            try:
                question = pipe.recv()
            except EOFError:
                # The script was killed.
                loop.stop()
                return
            if question == "count":
                pipe.send(state[0])
                return
            pipe.send(state[1])
            state[:] = 0, [], copy.deepcopy(rule)

        async def main():
            server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=4096)
            loop.add_reader(pipe.fileno(), asked)
            pipe.send(server.sockets[0].getsockname()[1])

        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # ^C reaches the whole group; the script ends this process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Without this end, the other one would never be at its end.
        parent.close()
        loop = asyncio.new_event_loop()
        since_1970 = time.time() - loop.time()
        loop.run_until_complete(main())
        loop.run_forever()


# Seconds for which ext4 without a journal checks every freed inode before it allocates one, seen on
# Linux 6.18 (`recently_deleted` of fs/ext4/ialloc.c; five minutes more while the inode's block is not
# written back). 50 000 files made 6 seconds after as many were removed took 475 µs each, in place of 21.
AFTER_REMOVAL = 65


def remove(folder):
    """Removes the output of measurements; :func:`settle` waits before the next one."""
    if folder.exists():
        shutil.rmtree(folder)
        os.sync()
        (WORK / "removed").touch()


def settle():
    """Waits until removals, by this script and earlier ones, no longer cost time."""
    try:
        age = time.time() - (WORK / "removed").stat().st_mtime
    except OSError:
        return
    if age < AFTER_REMOVAL:
        print(f"bench: waiting {AFTER_REMOVAL - age:.0f} s after a removal", file=sys.stderr)
        time.sleep(AFTER_REMOVAL - age)


class ThreadWatch(threading.Thread):
    """Follows the threads of the only child of a process until it ends.

    Work after the last sample, at most `PERIOD` before a thread's end, is not counted.
    """
    PERIOD = 0.02

    def __init__(self, parent):
        super().__init__(daemon=True)
        self.parent = parent
        # By identifier: name, nanoseconds of CPU.
        self.threads = {}
        # By identifier: seconds of disk wait.
        self.disk = collections.Counter()
        self.is_over = threading.Event()
        self.start()

    def run(self):
        children = Path(f"/proc/{self.parent}/task/{self.parent}/children")
        last = time.perf_counter()
        while not self.is_over.wait(self.PERIOD):
            now = time.perf_counter()
            elapsed, last = now - last, now
            try:
                tasks = list(Path(f"/proc/{children.read_text().split()[0]}/task").iterdir())
            except (OSError, IndexError):
                continue
            for task in tasks:
                try:
                    nanoseconds = int((task / "schedstat").read_text().split()[0])
                    name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                except OSError:
                    continue
                self.threads[task.name] = name, nanoseconds
                if rest.split()[0] == "D":
                    self.disk[task.name] += elapsed

    def seconds(self):
        """CPU and disk wait, by the beginning of thread names up to a number."""
        self.is_over.set()
        self.join()
        sums = collections.defaultdict(lambda: (0, 0))
        for task, (name, nanoseconds) in self.threads.items():
            kind = name.rstrip("0123456789 ")
            sums[kind] = (sums[kind][0] + nanoseconds / 1e9, sums[kind][1] + self.disk[task])
        return dict(sums)


def run(command, folder, limit, environment=(), watches=False, may_fail=False):
    """Runs a command in `folder` to its end or time limit, and measures it.

    With `may_fail`, another status than 0 is no problem.
    """
    peak_file = WORK / "peak"
    peak_file.unlink(missing_ok=True)
    with open(WORK / "last-output.txt", "wb") as output:
        os.sync()
        start = time.perf_counter()
        process = subprocess.Popen(
            ["/usr/bin/time", "--quiet", "-f", "%M", "-o", str(peak_file), *map(str, command)],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, env={**os.environ, **dict(environment)})
        expired = threading.Event()

        def end():
            expired.set()
            os.killpg(process.pid, signal.SIGKILL)

        watch = ThreadWatch(process.pid) if watches else None
        timer = threading.Timer(limit, end)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            # Stopped by the user: no started process stays behind.
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    problem = None
    if expired.is_set():
        problem = f"ended after {limit} s"
    elif process.returncode != 0 and not may_fail:
        problem = f"status {process.returncode}"
        tail = (WORK / "last-output.txt").read_bytes()[-600:].decode(errors="replace")
        print(f"bench: {command[0]}: {problem}\n{tail}", file=sys.stderr)
    try:
        peak = int(peak_file.read_text().split()[-1]) * 1024
    except (OSError, ValueError, IndexError):
        peak = None
    return Measurement(wall, usage.ru_utime + usage.ru_stime, peak, problem,
                       threads=watch.seconds() if watch else {})


# The commands of peers, each from a list of `url` lines, or for curl of `url` and `output` lines.
def curl(urls, parallel, *options):
    return ["curl", "--disable", "-sS", "--fail", "-Z", "--parallel-max", str(parallel), *options,
            "-K", urls]


def wget2(urls, *options):
    return ["wget2", "--no-config", "--no-hsts", "-q", "--max-threads", "16", *options, "-i", urls]


def aria2c(urls, *options):
    return ["aria2c", "--no-conf", "--quiet", "-j", "16", "-x", "1", "--file-allocation=none",
            "--auto-file-renaming=false", *options, "-i", urls]


def img2dataset(urls, folder, threads, shard):
    """Two processes; `shard` images make a shard, and only one process works on it."""
    return [WORK / "venv/bin/img2dataset", "--url_list", urls, "--input_format", "txt",
            "--output_folder", folder / "out", "--output_format", "webdataset",
            "--processes_count", "2", "--thread_count", str(threads), "--resize_mode", "no",
            "--encode_format", "jpg", "--encode_quality", "85", "--enable_wandb", "False",
            "--number_sample_per_shard", str(shard)]


# One of img2dataset's libraries checks for updates unless told not to.
IMG2DATASET_ENVIRONMENT = (("NO_ALBUMENTATIONS_UPDATE", "1"),)


def img2dataset_images(folder):
    """The number of images that it says it stored."""
    return sum(json.loads(path.read_text())["successes"]
               for path in (folder / "out").glob("*_stats.json"))


def started(description):
    """The arguments of Scripts/bench/run, which every script parses, and the load before anything runs.

    Figures above 0.5 must not be quoted. SIGTERM becomes an exception, so that started processes are
    stopped on the way out.
    """
    parser = argparse.ArgumentParser(prog="Scripts/bench/run", description=description)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=3000, help="images of the corpus")
    parser.add_argument(
        "--largest", type=int, default=10_000_000,
        help="resources of the largest cache that lists are measured with; with 10 million of them "
        "16 GB of disk are in use at times, 8 GB stay")
    parser.add_argument(
        "--only", help="beginnings of the names of rows; Scripts/bench/run lists the names")
    parser.add_argument("--timeout", type=int, default=180, help="seconds a run may take")
    parser.add_argument("--output", type=Path, default=WORK / "results.md")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        fail("--rounds is at least 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return arguments, os.getloadavg()[0]


def chosen(rows, only):
    """The rows whose names begin with a value of --only."""
    wanted = only.split(",") if only else [""]
    return [row for row in rows if any(row[0].startswith(name) for name in wanted)]


def log(number, name, result):
    print(f"bench: round {number + 1}: {name:<18} wall {show_time(result.wall):>8}"
          f"  CPU {show_time(result.cpu):>8}  peak {(result.peak or 0) / 1e6:4.0f} MB"
          f"  {result.problem or ''}", file=sys.stderr)


def first_line(*command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            return "not there"
        return (done.stdout or done.stderr).strip().splitlines()[0]
    except (OSError, IndexError):
        return "not there"


def machine():
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = first_line("sh", "-c", ". /etc/os-release; echo $PRETTY_NAME")
    return (f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, {system}, "
            f"Linux {platform.release().split('-')[0]}")


def program():
    """The measured binary."""
    return os.environ.get("PREFETCH_BINARY", str(ROOT / ".build/release/prefetch"))


def versions(names):
    """The versions of the named programs, as they print them."""
    def word(line, position):
        words = line.split()
        return words[position] if len(words) > position else line

    known = {
        "curl": lambda: f"curl {word(first_line('curl', '--version'), 1)}",
        "wget2": lambda: f"wget2 {word(first_line('wget2', '--version'), 2)}",
        "aria2": lambda: f"aria2 {word(first_line('aria2c', '--version'), 2)}",
        "img2dataset": lambda: "img2dataset " + first_line(
            str(WORK / "venv/bin/python"), "-c",
            "import importlib.metadata as m; print(m.version('img2dataset'))"),
        "nginx": lambda: "nginx "
        + first_line("/usr/sbin/nginx", "-v").rsplit("/", 1)[-1],
        "libjpeg-turbo": lambda: "libjpeg-turbo "
        + first_line("dpkg-query", "-W", "-f", "${Version}", "libjpeg62-turbo"),
        "vips": lambda: "vips " + first_line("vips", "--version").removeprefix("vips-"),
        "Pillow": lambda: "Pillow " + first_line(
            "/usr/bin/python3", "-c", "import PIL; print(PIL.__version__)"),
        "jq": lambda: first_line("jq", "--version").replace("-", " "),
        "Python": lambda: f"Python {platform.python_version()}",
        "SQLite": lambda: f"SQLite {sqlite3.sqlite_version} (in Python)",
        "Swift": lambda: first_line("swift", "--version"),
        "prefetch": lambda: first_line(program(), "--version"),
    }
    return ", ".join(known[name]() for name in names)


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def show_time(seconds):
    if seconds is None:
        return "–"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.2 else f"{seconds:.2f} s"


def good(results, name):
    """The measurements of a row by round, without those with a problem."""
    return {number: result for number, result in enumerate(results.get(name, []))
            if not result.problem}


def ratio(results, name, other, field):
    """The median over the rounds of `name`'s value divided by `other`'s."""
    mine, theirs = good(results, name), good(results, other)
    return median([getattr(mine[number], field) / getattr(theirs[number], field)
                   for number in mine if number in theirs and getattr(theirs[number], field)])


def wanted(rows, arguments):
    """The chosen rows, or the end of the script."""
    rows = chosen(list(rows), arguments.only)
    if not rows:
        fail(f"--only {arguments.only}: no such row")
    return rows


def rounds(rows, arguments):
    """Measures each row once a round, in turn; a row's name is its first element."""
    results = {row[0]: [] for row in rows}
    for number in range(arguments.rounds):
        for row in rows:
            measure = row.measure if hasattr(row, "measure") else row[-1]
            results[row[0]].append(measure())
            log(number, row[0], results[row[0]][-1])
    return results


def middle_run(count, field, measure):
    """The middle of several runs by a field, for runs of milliseconds; the first one with a problem."""
    results = []
    for _ in range(count):
        results.append(measure())
        if results[-1].problem:
            return results[-1]
    return sorted(results, key=operator.attrgetter(field))[count // 2]


class Runs:
    """A folder for each run. Nothing is removed between measurements: see AFTER_REMOVAL."""

    def __init__(self, arguments):
        self.limit = arguments.timeout
        self.prefetch = program()
        self.lists = WORK / "lists"
        self.out = WORK / "out"
        self.folders = 0

    def rounds(self, rows, arguments):
        """Measures the rows with old output removed, and removes theirs."""
        remove(self.out)
        settle()
        results = rounds(rows, arguments)
        remove(self.out)
        return results

    def clear_lists(self):
        shutil.rmtree(self.lists, ignore_errors=True)
        self.lists.mkdir()

    def write_list(self, name, urls):
        """Writes a list of one URL a line, and one for curl with the names of files."""
        (self.lists / f"{name}.txt").write_text("".join(f"{url}\n" for url in urls))
        (self.lists / f"{name}.curl").write_text("".join(
            f'url = "{url}"\noutput = "{url.rsplit("/", 1)[1]}"\n' for url in urls))

    def served(self, server, requests, measure):
        """A measurement, with a problem if the server counts another number of requests."""
        before = server.requests()
        result = measure()
        seen = server.requests() - before
        return result.unless(seen == requests, f"{seen} requests, {requests} due")

    def downloaded(self, server, command, folder, sizes):
        """Runs a command, and compares the files in its folder by name and size."""
        result = self.served(server, len(sizes), lambda: run(command, folder, self.limit))
        have = {entry.name: entry.stat().st_size for entry in os.scandir(folder)}
        wrong = sum(have.get(name) != size for name, size in sizes.items())
        return result.unless(
            have == sizes, f"{wrong} files missing or wrong, {len(have)} there")

    def fresh(self, name):
        self.folders += 1
        folder = self.out / f"{self.folders}-{name}"
        folder.mkdir(parents=True)
        return folder


# The status of Scripts/bench/cache if the disk is too small.
NO_ROOM = 3


def make_cache(resources, lists, *options, may_lack_room=False):
    """Starts Scripts/bench/cache; returns its status, 0 unless the disk is too small."""
    status = subprocess.run(
        [ROOT / "Scripts/bench/cache", "--resources", str(resources), "--binary", program(),
         *(["--lists", lists] if lists else []), *options], stdout=subprocess.DEVNULL).returncode
    if status and not (may_lack_room and status == NO_ROOM):
        fail(f"bench/cache: status {status}")
    return status


def store_corpus(cache, names, limit):
    """Makes a cache of the corpus as it is, and its list; returns the measurement."""
    corpus = WORK / "corpus/images"
    with Nginx(f"root {corpus};") as nginx:
        names.write_text("".join(
            f"http://127.0.0.1:{nginx.port}/{path.name}\n" for path in sorted(corpus.iterdir())))
        return run([program(), names, "--encode", "original", "--cache-dir", cache, "-q"], WORK, limit)


def spaced(number):
    return f"{number:,}".replace(",", " ")


def middle(results, name, take):
    """The median of a field, or of a function, over a row's good measurements."""
    if isinstance(take, str):
        take = operator.attrgetter(take)
    return median([take(result) for result in good(results, name).values()])


def cells(results, name, title, *peers):
    """Title with problems, wall, CPU, peak memory, and ratios to peers (pairs of a row and a field)."""
    problems = [result.problem for result in results[name] if result.problem]
    if problems:
        title += f" — {len(problems)} of {len(results[name])} runs failed: {problems[0]}"
    peak = middle(results, name, "peak")
    ratios = [other and ratio(results, name, other, field) for other, field in peers]
    return [
        title, show_time(middle(results, name, "wall")), show_time(middle(results, name, "cpu")),
        "–" if peak is None else f"{peak / 1e6:.0f} MB",
        *("–" if value is None else f"{value:.3g}" for value in ratios)]


def table(columns, rows):
    """The lines of a table; only the first column is not of numbers."""
    return [f"| {' | '.join(columns)} |", "|---" + "|---:" * (len(columns) - 1) + "|",
            *(f"| {' | '.join(row)} |" for row in rows)]


COLUMNS = ["", "wall", "CPU", "peak memory"]


def publish_section(title, arguments, load, note, names, lines, results):
    """Prints a section with its date, machine and versions, and appends it to the file.

    Returns the exit status.
    """
    asked = " ".join(["Scripts/bench/run", *map(shlex.quote, sys.argv[1:])])
    text = "\n".join([
        f"### {title}", "",
        f"Measured on {datetime.date.today().isoformat()} by `{asked}`: {note}, medians of "
        f"{arguments.rounds} rounds, load average at the start {load:.1f}.", "",
        f"Machine: {machine()}.", f"Versions: {versions(names)}.", "", *lines]) + "\n"
    with open(arguments.output, "a") as file:
        if file.tell():
            file.write("\n")
        file.write(text)
    print(text, end="")
    return 1 if any(result.problem for row in results.values() for result in row) else 0

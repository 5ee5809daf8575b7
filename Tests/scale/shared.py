"""Lists, an origin, faults and a judge for the tests that run samples/scale for real."""

import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "samples/scale"
IMAGES = ROOT / "samples/images"
BINARY = Path(os.environ.get("PREFETCH_BINARY", ROOT / ".build/debug/prefetch")).resolve()
COUNT = 8
# libcurl resolves every name below `localhost` to the loopback addresses (RFC 6761 §6.3), and the
# public suffix list takes each as a registrable domain.
DOMAINS = [f"{letter}.localhost" for letter in "abcdefghijklmnopqrst"]

# The first attempt of each shard requests five entries and is killed. PREFETCH names this script.
FAULTY = """#!/bin/sh
real={binary}
shard=
previous=
for argument; do
    [ "$previous" != --shard ] || shard=${{argument%%/*}}
    previous=$argument
done
if [ -n "$shard" ] && mkdir "{marks}/$shard" 2>/dev/null; then
    "$real" "$@" --limit 5 >/dev/null
    kill -KILL $$
fi
exec "$real" "$@"
"""


class Failure(Exception):
    """A result that is not the expected one."""


class Workplace:
    """A folder with lists of every domain, the origin of its URLs, and a command with faults."""

    def __enter__(self):
        if not os.access(BINARY, os.X_OK):
            raise Failure(f"{BINARY}: no such command; PREFETCH_BINARY names one")
        self._folder = tempfile.TemporaryDirectory(prefix="prefetch-scale.")
        self.path = Path(self._folder.name)
        self._origin = subprocess.Popen(
            [ROOT / "Scripts/serve-directory", IMAGES],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(self._origin.stdout.readline())
        # Two lists, in which the domains alternate.
        names = sorted(path.name for path in IMAGES.iterdir())
        self.urls = [f"http://{domain}:{port}/{name}" for name in names for domain in DOMAINS]
        self.folder = self.path / "images"
        (self.folder / "lists").mkdir(parents=True)
        half = len(self.urls) // 2
        for name, urls in (("a.txt", self.urls[:half]), ("b.txt", self.urls[half:])):
            (self.folder / "lists" / name).write_text("".join(f"{url}\n" for url in urls))
        (self.path / "marks").mkdir()
        self.command = self.path / "prefetch"
        self.command.write_text(FAULTY.format(binary=BINARY, marks=self.path / "marks"))
        self.command.chmod(0o755)
        # A setting of the caller must not change the runs.
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PREFETCH_")}
        self.environment |= {"PREFETCH": str(self.command), "SHARDS": str(COUNT)}
        return self

    def __exit__(self, *error):
        self._origin.stdin.close()
        self._origin.wait()
        self._folder.cleanup()

    def requests(self):
        self._origin.stdin.write("\n")
        self._origin.stdin.flush()
        return int(self._origin.stdout.readline().split()[1])

    def run(self, *command, limit=100, **settings):
        return subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=limit,
            stdin=subprocess.DEVNULL, env=self.environment, **settings)

    def prefetch(self, *arguments):
        return self.run(BINARY, *arguments)

    def killed_attempts(self):
        return len(list((self.path / "marks").iterdir()))


def expect(condition, message):
    if not condition:
        raise Failure(message)


def judge(work):
    """Checks the merged cache against the lists, and the shards against the plan.

    Every first attempt was killed after some requests, so each URL was requested once only if the
    next attempt took those results over.
    """
    folder = work.folder
    expect(work.killed_attempts() == COUNT, f"{work.killed_attempts()} attempts were killed")
    shards = sorted(path.name for path in (folder / "shards").iterdir())
    expect(shards == [f"shard-{index}" for index in range(COUNT)], f"shards: {shards}")
    left = [path.name for path in (folder / "attempts").iterdir()]
    expect(not left, f"attempts are left: {left}")

    entries, owners = 0, collections.defaultdict(set)
    for index in range(COUNT):
        shard = folder / f"shards/shard-{index}"
        summary = json.loads((shard / "summary.json").read_text())
        expect(summary["shard"]["index"] == index, f"shard {index}: {summary['shard']}")
        expect(summary["shard"]["count"] == COUNT, f"shard {index}: {summary['shard']}")
        entries += summary["entries"]
        for row in rows(work, shard / "cache"):
            owners[row["url"].split("/")[2]].add(index)
    expect(entries == len(work.urls), f"the shards have {entries} of {len(work.urls)} entries")
    expect(len(set().union(*owners.values())) > 1, "all entries are in one shard")

    merged = [row["url"] for row in rows(work, folder / "cache")]
    expect(sorted(merged) == sorted(work.urls), f"{len(merged)} of {len(work.urls)} images")
    result = work.prefetch("verify", "--cache-dir", folder / "cache")
    expect(result.returncode == 0, f"verify: {result.stdout}{result.stderr}")
    requests = work.requests()
    expect(requests == len(work.urls), f"{requests} requests for {len(work.urls)} URLs")


def rows(work, cache):
    if not (cache / "prefetch.sqlite").exists():
        return []
    result = work.prefetch("list", "--json", "--cache-dir", cache)
    expect(result.returncode == 0, result.stderr)
    return [json.loads(line) for line in result.stdout.splitlines()]


def wait_until(condition, seconds, message):
    deadline = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < deadline, f"after {seconds} s: {message}")
        time.sleep(0.1)


def main(name, test, missing):
    """Runs a test, with the exit status 0 if it passes or the tool `missing` is not there."""
    if missing:
        print(f"{name}: skipped: {missing}")
        return
    try:
        test()
    except (Failure, subprocess.TimeoutExpired) as failure:
        print(f"{name}: failed: {failure}", file=sys.stderr)
        sys.exit(1)
    print(f"{name}: passed")

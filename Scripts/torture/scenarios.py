"""Commands that Scripts/torture/run disturbs, their initial caches, and the conditions that must hold afterwards."""

import functools
import json
import os
import random
import shutil
import sqlite3
import time

from shared import (
    PAGE, Workplace, as_snapshot, damage_files, damage_of, execute, fail, judge, stored, write_list)

VARIANT = ["--variant", "small=8x8"]
QUIET = ["-q", "--retry", "1", "--retry-delay", "10ms", "--host-timeout", "1s"]


class Attempt:
    """A command about to be disturbed."""

    # The permitted statuses of an undisturbed command.
    statuses = {0}
    # URLs that must be fresh in the next run; only `main` if other variants may be removed.
    kept = frozenset()
    spares_main_only = False
    # The required number.
    least = 0
    # Its report of stored images, and whether it may remove them again.
    report = None
    may_remove_reported = False
    # Permitted URLs besides the list.
    more = 0
    # The state seen shortly before the critical moments; None for the whole duration.
    landmark = None

    def __init__(self, arguments, **others):
        self.arguments = arguments
        vars(self).update(others)


def problems_of(workplace, arguments, what, statuses=(0,)):
    """The problems of an undisturbed command."""
    status, error = workplace.run(arguments)
    return [] if status in statuses else [f"{what}: status {status}: {error.strip()[-400:]}"]


def entries(report):
    """The complete lines of a report."""
    found = []
    if report.exists():
        for line in report.read_bytes().split(b"\n")[:-1]:
            entry = json.loads(line)
            if entry["type"] == "result":
                found.append(entry)
    return found


class Template:
    """A cache with a number of images, half at each of two hosts, some with the same bytes."""

    def __init__(self, folder, server, size, has_variant):
        self.size = size
        self.has_variant = has_variant
        half = size // 2
        other = f"http://localhost:{server.port}"
        self.near = server.urls[:half]
        self.far = [f"{other}/{path}" for path in server.paths[half * 3 // 4:half * 3 // 4 + size - half]]
        self.urls = self.near + self.far
        self.spare = server.urls[-1]
        self.rows_each = 2 if has_variant else 1
        self.options = QUIET + (VARIANT if has_variant else [])
        # One without rows, one with some, one with all.
        self.empty, self.part, self.whole = folder / "empty", folder / "part", folder / "whole"
        chance = random.Random(size)
        for place, urls in ((self.part, chance.sample(self.urls, size // 2)), (self.whole, self.urls)):
            workplace = Workplace(place, urls)
            self.add_lists(place)
            status, error = workplace.run(["manifest.txt", *self.options])
            if status != 0:
                fail(f"the first run ended with {status}: {error}")
        self.in_part = set((self.part / "manifest.txt").read_text().split())
        Workplace(self.empty, [])
        self.add_lists(self.empty)

    def add_lists(self, place):
        write_list(place / "all.txt", self.urls)
        write_list(place / "near.txt", self.near)
        write_list(place / "none.txt", [])

    def copy(self, source, place):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        return Workplace(place)


class Scenario:
    """A command, its initial cache, and the check that nothing was lost."""

    name = ""
    weight = 1
    # The approximate number of ways to call it.
    ways = 1
    # Sizes of caches and their weights; the first is for the tests.
    sizes = (20, 20, 20, 60, 300)
    # Whether orphaned files stay, because earlier rows may be unknown.
    keeps_orphans = False
    # The initial cache, as a template names it.
    starts_with = "whole"

    def prepare(self, template, place, chance):
        """The workplace and the attempt."""
        workplace = template.copy(getattr(template, self.starts_with), place)
        return workplace, self.attempt(workplace, template, chance)

    def attempt(self, workplace, template, chance):
        raise NotImplementedError

    def next_run(self, workplace, template, name="all.txt"):
        """An undisturbed run: its problems, and the outcomes by URL."""
        report = workplace.folder / "after.jsonl"
        report.unlink(missing_ok=True)
        wrong = problems_of(
            workplace, [name, *template.options, "--report", report.name], "the next run")
        return wrong, {entry["url"]: entry for entry in entries(report)}

    def lost(self, workplace, attempt, outcomes):
        """Images that were reported as stored, or protected, and are missing in the next run."""
        kept = set(attempt.kept)
        if attempt.report and not attempt.may_remove_reported:
            kept |= {entry["url"] for entry in entries(attempt.report)
                     if entry["outcome"] in ("downloaded", "revalidated", "derived", "fresh")}
        def is_fresh(entry):
            if attempt.spares_main_only and entry.get("variants"):
                return entry["variants"][0]["outcome"] == "fresh"
            # The second of two images with the same bytes uses the first one's file.
            return entry["outcome"] == "fresh"
        fresh = {url for url, entry in outcomes.items() if is_fresh(entry)}
        wrong = [f"{url}: lost: {outcomes.get(url, {}).get('outcome')}" for url in sorted(kept - fresh)[:3]]
        if len(fresh) < attempt.least:
            wrong.append(f"{len(fresh)} images are left, not {attempt.least}")
        return wrong

    def orphans(self, workplace):
        wrong = problems_of(workplace, ["none.txt", "--allow-empty", *QUIET], "a run")
        return wrong + judge(workplace, None, name="the judge, before anything is stored")

    def verify_next(self, workplace, template, attempt):
        """The problems of the next run and the judge."""
        # A run that stores nothing is first, because storing an image again restores its row.
        wrong = [] if self.keeps_orphans else self.orphans(workplace)
        failed, outcomes = self.next_run(workplace, template)
        wrong += failed
        wrong += self.lost(workplace, attempt, outcomes)
        return wrong + judge(workplace, {(template.size + more) * template.rows_each
                                         for more in range(attempt.more + 1)})


class FirstRun(Scenario):
    """A run over an empty cache that uses most features of a run."""

    name = "first run"
    weight = 0
    arguments = ["manifest.txt", "--report", "report.jsonl", "--queue-capacity", "8",
                 "--cookie-jar", "cookies.txt", "--retry", "1", "--retry-delay", "10ms",
                 "--host-timeout", "1s", "--stall-timeout", "5s"]

    def __init__(self, server, count):
        self.urls = server.urls[:count]

    def prepare(self, template, place, chance):
        shutil.rmtree(place, ignore_errors=True)
        return Workplace(place, self.urls), Attempt(self.arguments)

    def verify_next(self, workplace, template, attempt):
        wrong = problems_of(workplace, self.arguments, "the next run")
        return wrong + judge(workplace, len(self.urls))


class Run(Scenario):
    name = "run"
    weight = 3
    ways = 6

    def prepare(self, template, place, chance):
        is_new = chance.random() < 0.5
        workplace = template.copy(template.empty if is_new else template.part, place)
        report = place / "report.jsonl"
        sync = chance.choice(["normal", "full", "off"])
        return workplace, Attempt(
            ["all.txt", *template.options, "--report", report.name, "--sync", sync], report=report,
            kept=set() if is_new else template.in_part)


class RunMaxSize(Scenario):
    """A run that lists one host's images, and evicts the other's for twice as many as before."""

    name = "run --max-size"
    starts_with = "part"
    weight = 2

    def attempt(self, workplace, template, chance):
        named = template.near + template.far[:template.size // 8]
        write_list(workplace.folder / "named.txt", named)
        # Fits with evictions; shared files make it fewer than images.
        blocks = len(named) * template.rows_each + chance.randrange(3)
        report = workplace.folder / "report.jsonl"
        return Attempt(
            ["named.txt", *template.options, "--report", report.name, "--max-size",
             f"{blocks * PAGE}B"], report=report, kept=template.in_part & set(named))


class RunPrune(Scenario):
    """A run that prunes its own images at its end."""

    name = "run --prune"
    starts_with = "part"

    def attempt(self, workplace, template, chance):
        most = chance.choice([template.size // 3, template.size * 2 // 3]) * template.rows_each
        report = workplace.folder / "report.jsonl"
        # It may be killed before the cache exceeds its old size.
        least = min(template.size // 2, most * 9 // 10 // template.rows_each)
        return Attempt(
            ["all.txt", *template.options, "--report", report.name, "--prune",
             f"max-files={most},history=1d"], report=report, may_remove_reported=True, least=least)


class Prune(Scenario):
    name = "prune"
    weight = 3
    ways = 12

    def attempt(self, workplace, template, chance):
        rule = chance.randrange(6 if template.has_variant else 5)
        half = template.size // 2
        most = ["--max-files", str(half * template.rows_each), "--low-water", "100%"]
        size = ["--max-size", f"{half * PAGE}B", "--low-water", "50%", "--history", "1d"]
        words, others = [
            (most, {"least": half}), (most, {"least": half}),
            (size, {"least": half // 2 // template.rows_each}),
            (["--unlisted", "near.txt", "--json"], {"kept": set(template.near)}),
            (["--host", "localhost", "--gone"], {"kept": set(template.near)}),
            (["--variant", "small"], {"kept": set(template.urls), "spares_main_only": True})][rule]
        return Attempt(["prune", *words], **others)


class Remove(Scenario):
    name = "remove"
    weight = 2
    ways = 6

    def attempt(self, workplace, template, chance):
        way = chance.randrange(4 if template.has_variant else 3)
        gone = chance.sample(template.urls, template.size // 2)
        words, others = [
            (gone, {"kept": set(template.urls) - set(gone)}),
            (["--host", template.far[0].rpartition("/")[0]], {"kept": set(template.near)}),
            (["--all"], {}),
            (["--all", "--variant", "small"],
             {"kept": set(template.urls), "spares_main_only": True})][way]
        return Attempt(["remove", *words], **others)


class Put(Scenario):
    """Replaces a stored picture, or adds a new one."""

    name = "put"
    starts_with = "part"
    weight = 2
    ways = 6
    sizes = (20, 20, 60)

    def __init__(self, server):
        self.server = server

    def attempt(self, workplace, template, chance):
        file = self.server.folder / self.server.paths[-1 - chance.randrange(20)]
        kind = chance.randrange(3)
        if kind == 0:
            url = chance.choice(sorted(template.in_part))
        elif kind == 1:
            url = chance.choice(sorted(set(template.urls) - template.in_part))
        else:
            url = "http://example.com/put.png"
        return Attempt(
            ["put", url, str(file), "--json", "--attr", "from=put",
             *(VARIANT if template.has_variant else [])],
            kept=set(template.in_part), url=url, more=kind == 2)

    def verify_next(self, workplace, template, attempt):
        url = attempt.url
        said = (workplace.folder / "victim.out").read_text()
        if said.endswith("\n") and url in template.urls:
            attempt.kept.add(url)
        wrong = super().verify_next(workplace, template, attempt)
        if said.endswith("\n"):
            wrong += problems_of(workplace, ["get", url], "the stored picture is missing")
        return wrong


class Repair(Scenario):
    """Files that are damaged, missing or orphaned."""

    name = "verify --repair"
    weight = 2

    def attempt(self, workplace, template, chance):
        damaged, orphans = damage_files(workplace.cache, chance, 2, chance.choice((2, 20)))
        hit = {key for key, path, _ in stored(workplace.cache) if path.stem in damaged}
        kept = set(template.urls) - hit
        write_list(workplace.folder / "sound.txt", sorted(kept))
        return Attempt(
            ["verify", "--repair"], statuses={1}, kept=kept, orphans=orphans, damaged=damaged)

    def verify_next(self, workplace, template, attempt):
        # The next run does not list damaged images; those that the command began to remove must be gone.
        wrong, outcomes = self.next_run(workplace, template, "sound.txt")
        wrong += self.lost(workplace, attempt, outcomes)
        def is_allowed(problem):
            names = attempt.orphans if "no row names it" in problem else attempt.damaged
            return any(name in problem for name in names)
        wrong += judge(workplace, None, is_allowed, "the judge, after the next run")
        wrong += problems_of(workplace, ["verify", "--repair"], "the next verify --repair", (0, 1))
        wrong += super().verify_next(workplace, template, attempt)
        return wrong + problems_of(workplace, ["verify"], "the last verify")


class Chmod(Scenario):
    name = "chmod"
    ways = 6

    def attempt(self, workplace, template, chance):
        before, mode = chance.sample(["0600", "0640", "0644"], 2)
        workplace.run(["chmod", before, "-q"])
        return Attempt(["chmod", mode], kept=set(template.urls), mode=int(mode, 8))

    def verify_next(self, workplace, template, attempt):
        wrong, outcomes = self.next_run(workplace, template)
        wrong += self.lost(workplace, attempt, outcomes)
        mode = attempt.mode
        wrong += problems_of(workplace, ["chmod", f"{mode:04o}", "-q"], "the next chmod")
        for path in workplace.cache.rglob("*"):
            found = path.stat().st_mode & 0o777
            if found != (mode if path.is_file() else mode | 0o100 | (mode & 0o444) >> 2):
                wrong.append(f"{path.relative_to(workplace.cache)}: has the mode {found:o}, not {mode:o}")
        return wrong + judge(workplace, template.size * template.rows_each)


class Snapshot(Scenario):
    """A run that stores something, two days after the last snapshot."""

    name = "snapshot"
    sizes = (20, 300)

    def attempt(self, workplace, template, chance):
        cache = workplace.cache
        old = time.time() - 2 * 86400
        os.utime(cache / "snapshot.sqlite", (old, old))
        # Makes it slow.
        execute(
            cache / "prefetch.sqlite",
            "INSERT INTO attribute SELECT id, 'bulk', zeroblob(60000) FROM resource LIMIT 60")
        write_list(workplace.folder / "more.txt", [*template.urls, template.spare])
        return Attempt(
            ["more.txt", *template.options], kept=set(template.urls), more=1,
            landmark=cache / "tmp/snapshot.sqlite")

    def verify_next(self, workplace, template, attempt):
        wrong = super().verify_next(workplace, template, attempt)
        snapshot = as_snapshot(workplace.cache / "snapshot.sqlite")
        finding = damage_of(snapshot)
        rows = None if finding else execute(snapshot, "SELECT count(*) FROM variant")[0][0]
        if finding or rows // template.rows_each not in (template.size, template.size + 1):
            wrong.append(f"the snapshot: {finding}, {rows} rows")
        return wrong


class Salvage(Scenario):
    """A database with a damaged page, with rows only in its log, or with a snapshot."""

    name = "salvage"
    weight = 2
    ways = 12
    keeps_orphans = True
    sizes = (60, 300)

    def __init__(self):
        self.pools = {}

    def prepare(self, template, place, chance):
        pool = self.pools.setdefault(template, [])
        # The reference is an undisturbed run; a few damaged caches serve all attempts.
        if len(pool) < 12:
            pool.append(self.damaged(template, place, chance, len(pool)))
        source, kept = chance.choice(pool)
        workplace = template.copy(source, place)
        return workplace, Attempt(["none.txt", "--allow-empty", "-q"], keys=kept)

    def damaged(self, template, place, chance, number):
        """A folder with a damaged cache, and the rows that an undisturbed run salvages."""
        workplace = template.copy(template.whole, place)
        database = workplace.cache / "prefetch.sqlite"
        if number % 3:
            (workplace.cache / "snapshot.sqlite").unlink()
        if number % 2:
            # Rows that are only in the log.
            connection = sqlite3.connect(database)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("UPDATE resource SET etag = '\"logged\"'")
            connection.execute("UPDATE host SET concurrency = 2")
            connection.commit()
            for suffix in ("", "-wal"):
                shutil.copy(f"{database}{suffix}", f"{workplace.folder}/kept{suffix}")
            connection.close()
            for suffix in ("", "-wal"):
                os.replace(f"{workplace.folder}/kept{suffix}", f"{database}{suffix}")
                os.chmod(f"{database}{suffix}", 0o600)
        data = bytearray(database.read_bytes())
        pages = chance.sample(range(1, len(data) // PAGE), 2)
        for page in pages:
            data[page * PAGE:(page + 1) * PAGE] = bytes(PAGE)
        database.write_bytes(data)
        (workplace.cache / "suspect").touch(mode=0o600)
        source = template.whole.parent / f"damaged-{number}"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(workplace.folder, source)
        status, error = workplace.run(["none.txt", "--allow-empty", "-q"])
        if status != 0:
            fail(f"the run that salvages ended with {status}: {error}")
        return source, keys_of(workplace)

    def verify_next(self, workplace, template, attempt):
        wrong = problems_of(workplace, ["none.txt", "--allow-empty", "-q"], "the next run")
        missing = attempt.keys - keys_of(workplace)
        if missing:
            wrong.append(f"{len(missing)} of {len(attempt.keys)} images were not salvaged")
        wrong += problems_of(workplace, ["verify", "--repair"], "verify --repair", (0, 1))
        return wrong + super().verify_next(workplace, template, attempt)


class Writer(Scenario):
    """A command that removes no image. Each file that it replaces is old or complete afterwards."""

    sizes = (20,)

    def __init__(self, name, arguments, before=(), files=(), starts_with="whole", old="", statuses=(0,)):
        self.name = name
        self.arguments = arguments
        # The commands that make the initial state.
        self.before = before
        # Files and folders that it writes, and the initial text of those that `before` does not make.
        self.files = files
        self.old = old
        self.starts_with = starts_with
        self.statuses = set(statuses)
        # By template: the names of files after an undisturbed command.
        self.names = {}

    def arguments_for(self, template, server, arguments):
        named = {"NEAR": template.near[0], "SINK": f"s3://b{server.folder}/{template.rows_each}", "SPARE": template.spare}
        options = [option for word in arguments if word == "RUN" for option in template.options]
        return [named.get(word, word) for word in arguments if word != "RUN"] + options

    def arrange(self, workplace, template):
        """Makes the initial state in a workplace."""
        for name in self.files if self.old else ():
            (workplace.folder / name).write_text(self.old)
        for arguments in self.before:
            status, error = workplace.run(self.arguments_for(template, self.server, arguments))
            if status not in (0, 1):
                fail(f"{' '.join(arguments)}: status {status}: {error}")
        return self.arguments_for(template, self.server, self.arguments)

    def prepare(self, template, place, chance):
        workplace = template.copy(getattr(template, self.starts_with), place)
        attempt = Attempt(self.arrange(workplace, template))
        if self.files and template not in self.names:
            workplace.run(attempt.arguments)
            self.names[template] = contents(workplace, self.files).keys()
            return self.prepare(template, place, chance)
        attempt.statuses = self.statuses
        attempt.kept = template.in_part if self.starts_with == "part" else set(template.urls)
        attempt.before = contents(workplace, self.files)
        return workplace, attempt

    def verify_next(self, workplace, template, attempt):
        before, found = attempt.before, contents(workplace, self.files)
        wrong = problems_of(workplace, attempt.arguments, "the next time", self.statuses)
        after = contents(workplace, self.files)
        for path in found.keys() & self.names.get(template, set()):
            # Pages name times; whole ones end alike.
            data = found[path]
            if data not in (before.get(path), after.get(path)) and data[-8:] != after.get(path, b"")[-8:]:
                wrong.append(f"{path} is neither old nor new: {data[:20]}, {len(data)} bytes")
        wrong += [f"{path} is left" for path in after.keys() - self.names.get(template, after.keys())][:3]
        wrong += [f"{path} is gone" for path in before.keys() & after.keys() - found.keys()]
        wrong += self.server.bucket.problems()
        return wrong + super().verify_next(workplace, template, attempt)


def contents(workplace, names):
    """The bytes of files, and of those in folders, by path."""
    paths = [path for name in names for path in [workplace.folder / name, *(workplace.folder / name).rglob("*")]]
    return {str(path.relative_to(workplace.folder)): path.read_bytes() for path in paths if path.is_file()}


def writers(server):
    other = ["run", "all.txt", "--cache-dir", "other", "-q"]
    into = ["--layout", "mirror"]
    sink = ["--sink", "SINK", "--sink-credentials", "none"]
    pages = ["page.html", "metrics.prom", "junit.xml"]
    missing = [["run", f"http://127.0.0.1:{server.port}/missing.png", "-q", "--retry", "0"]]
    found = [
        Writer("attr", ["attr", "set", "NEAR", "name", "value"]),
        Writer("config init", ["config", "init", "new.toml", "--force"], files=["new.toml"], old="[run]\n"),
        Writer("export", ["export", "out", "all.txt", *into], files=["out"]),
        Writer("export --update", ["export", "out", "all.txt", *into, "--update", "--delete"],
               [["export", "out", "near.txt", *into]], ["out"]),
        Writer("failed clear", ["failed", "clear"], missing),
        Writer("failed rm", ["failed", "rm", missing[0][1]], missing, statuses=(0, 1)),
        Writer("gallery", ["gallery", "-o", "gallery"], [["gallery", "-o", "gallery"], ["run", "all.txt", "RUN"]],
               ["gallery"], starts_with="part"),
        Writer("hosts clear", ["hosts", "clear"]),
        Writer("import", ["import", "out", "all.txt", *into],
               [other, ["export", "out", "all.txt", *into, "--cache-dir", "other"]], starts_with="part"),
        Writer("merge", ["merge", "cache", "other"], [other], starts_with="part"),
        Writer("placeholders", ["placeholders"], [["run", "all.txt", "RUN", "--no-placeholders"]], starts_with="empty"),
        Writer("plan", ["plan", "all.txt", "--shards", "2", "-o", "plan.json"], files=["plan.json"], old="{}"),
        Writer("pull", ["pull", *sink[1:]], [[*other, *sink]], starts_with="part"),
        Writer("report", ["run", "all.txt", "RUN", "--html", pages[0], "--prometheus", pages[1], "--junit", pages[2]],
               files=pages, old="old"),
        Writer("run --sink", ["run", "all.txt", "RUN", *sink]),
    ]
    for writer in found:
        writer.server = server
    return found


class PartOfList(Scenario):
    """Commands that remove unlisted images, with a list that is read in part: they remove nothing."""

    name = "part of a list"
    ways = 20
    sizes = (20,)

    def attempt(self, workplace, template, chance):
        half = template.size // 2
        lines = [json.dumps({"url": url}) for url in template.urls]
        rows = [f'{url},"x"' for url in template.urls]
        (workplace.folder / "cut.jsonl").write_text("\n".join(lines)[:len(lines[0]) * half + 5])
        (workplace.folder / "quote.csv").write_text("\n".join(["url,c", *rows[:half], rows[half][:-1], *rows[half + 1:]]))
        (workplace.folder / "index.xml").write_text(
            "<sitemapindex><sitemap><loc>http://127.0.0.1:1/a.xml</loc></sitemap></sitemapindex>")
        way = chance.choice([["cut.jsonl"], ["quote.csv"], ["all.txt", "--shard", "0/2"],
                             ["near.txt", "index.xml"]])
        size = ["--max-size", f"{half * PAGE}B", *template.options]
        command = chance.choice([["run", *way, *size], ["prune", "--unlisted", *way[:1]],
                                 ["export", "out", *(way[:1] if "--shard" in way else way), "--layout", "mirror",
                                  "--update", "--delete"]])
        if command[0] == "export":
            workplace.run(["export", "out", "all.txt", "--layout", "mirror"])
        return Attempt(
            command if command[0] != "prune" or len(way) == 1 else ["run", *way, *size],
            statuses={0, 1, 2, 64}, kept=set(template.urls),
            exported=contents(workplace, ["out"]).keys())

    def verify_next(self, workplace, template, attempt):
        gone = attempt.exported - contents(workplace, ["out"]).keys()
        return [f"exported files are gone: {sorted(gone)[:3]}"] * bool(gone) + super().verify_next(
            workplace, template, attempt)


def keys_of(workplace):
    """The stored keys, with the data from their origin."""
    return set(execute(
        f"file:{workplace.cache}/prefetch.sqlite?mode=ro",
        "SELECT key, etag, recipe, sha256 FROM resource JOIN variant ON id = resource_id"))


def scenarios(server, count=20):
    """The scenarios by name; the first run has `count` images."""
    found = [FirstRun(server, count), Run(), RunMaxSize(), RunPrune(), Prune(), Remove(), Put(server), Repair(), Chmod(),
             Snapshot(), Salvage(), PartOfList(), *writers(server)]
    return {scenario.name: scenario for scenario in found}


def templates(folder, server):
    """Returns a function that makes the initial caches on first use, for one worker."""
    return functools.cache(lambda size, has_variant: Template(
        folder / f"template-{size}-{int(has_variant)}", server, size, has_variant))

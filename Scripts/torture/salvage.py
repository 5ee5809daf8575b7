"""Damages the database of a cache at random, and compares what a run salvages with the original.

Kinds of damage, in turn: pages zeroed or partly filled with noise; flipped bits; a cut file; an
overwritten header or first page; exchanged pages, from the same database or from another cache with the
same images under other URLs; such a foreign page while the interior of the index is destroyed; the
same with rows in the log; a foreign log; a database of another program or another schema. Every fifth
URL has the same image. A quarter of the cases has a snapshot.

After each case a run must exit with 0 and leave a sound database in which every row was in the original
and has its file. A foreign database, or one of another schema, must give status 2 and stay unchanged.

Counted are images whose rows in `resource` and `variant` both lie on pages (of SQLite's `dbstat`) that are
unchanged and in their place: over all cases without a snapshot, 95 % of them must be salvaged. Exchanged
pages count as damaged. Cases with too many foreign pages to tell which image belongs to which URL are
not counted; none may be salvaged then. With a snapshot, all images must be salvaged.
"""

import hashlib
import os
import random
import shutil
import sqlite3
import tempfile
from pathlib import Path

from shared import PAGE, execute

LEAST_SHARE = 0.95
RECIPE = "same;q=85;strip=safe"
NOW = 1_790_000_000_000
TABLES = ("failure", "host", "attribute", "run", "variant_name")


def words(text):
    digest = hashlib.sha256(text.encode()).digest()
    return [int.from_bytes(digest[at:at + 8], "big") for at in (0, 8)]


def signed(word):
    return word - (1 << 64) if word >> 63 else word


class Cache:
    """A cache of made-up images: rows as a run writes them, and files of a few bytes."""

    def __init__(self, prefetch, path, order):
        self.path = path
        self.database = path / "prefetch.sqlite"
        empty = path.parent / "empty.txt"
        empty.write_text("")
        result = run(prefetch, path, empty)
        assert result.returncode == 0, result.stderr
        connection = self.connect()
        self.add(connection, order)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        self.read()

    def connect(self):
        connection = sqlite3.connect(self.database)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def add(self, connection, order, first=1):
        chance = random.Random(len(order))
        for number, content in enumerate(order, first):
            data = f"image {content} ".encode() * 8
            digest = hashlib.sha256(data).digest()
            folder = self.path / "content" / digest.hex()[:2]
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = folder / f"{digest.hex()}.png"
            file.write_bytes(data)
            file.chmod(0o600)
            url = f"https://host-{number % 50}.example.com/{'x' * chance.randrange(60)}/{number}.png"
            time, end = NOW + number, NOW * 2 + number
            connection.execute(
                "INSERT INTO resource (id, key, url, host, etag, date, fetched_at, validated_at, "
                "expires_at, source_bytes, source_format, source_sha256, source_width, source_height) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'png', ?, 7, 7)",
                (number, url, url, url.rsplit("/", 2)[0], f'"{number}"', time, time, time, end,
                 len(data), hashlib.sha256(url.encode()).digest()))
            connection.execute(
                "INSERT INTO variant (resource_id, recipe, sha256, format, width, height, bytes, "
                "created_at, last_access_at) VALUES (?, ?, ?, 'png', 7, 7, ?, ?, ?)",
                (number, RECIPE, digest, len(data), time + 3, time + 3))
            upper, lower = (key ^ recipe for key, recipe in zip(words(url), words(RECIPE)))
            connection.execute(
                "INSERT INTO freshness (fingerprint, fingerprint_low, resource_id, validated_at, "
                "expires_at) VALUES (?, ?, ?, ?, ?)",
                (signed(upper), signed(lower), number, time, end))
            connection.execute("INSERT INTO attribute VALUES (?, 'name', ?)",
                               (number, b"value %d" % number))
            if number % 5 == 0:
                connection.execute(
                    "INSERT INTO failure (key, url, host, reason, message, attempts, class, "
                    "runs_in_a_row, first_failed_at, last_failed_at) VALUES (?, ?, 'https://h', "
                    "'http-status', 'HTTP 404', 1, 'permanent', 1, ?, ?)", (url + "f", url + "f", time, time))
            if number % 30 == 0:
                connection.execute("INSERT INTO host (host, concurrency, failures_in_a_row, cooling_until, updated_at) VALUES (?, 2, 1, NULL, ?)",
                                   (f"https://host-{number}.example.com", time))
        connection.commit()

    def read(self):
        """Reads its contents, and the page of each row."""
        connection = self.connect()
        self.images = images(connection)
        self.rows = {table: rows(connection, table) for table in TABLES}
        self.pages = {table: self.locate(connection, table) for table in ("resource", "variant")}
        self.inside = [page for page, in connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'variant_sha256' AND pagetype = 'internal'")]
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        self.bytes = self.database.read_bytes()

    def locate(self, connection, table):
        """The page of each row, in the order of the rows."""
        found = connection.execute(
            "SELECT path, pageno, ncell, pagetype FROM dbstat WHERE name = ?", (table,)).fetchall()
        number = {path: page for path, page, _, _ in found}
        leaves = sorted((path, page, cells) for path, page, cells, kind in found if kind == "leaf")
        pages = []
        for index, (path, page, cells) in enumerate(leaves):
            pages += [page] * cells
            # A table without rowids has a row between each two leaves, on their parent page.
            if table == "variant" and index + 1 < len(leaves):
                above, after = path, leaves[index + 1][0]
                while not after.startswith(above):
                    above = above.rstrip("/").rpartition("/")[0] + "/"
                pages.append(number[above])
        ids = [row[0] for row in connection.execute(
            "SELECT id FROM resource ORDER BY id" if table == "resource" else
            "SELECT resource_id FROM variant ORDER BY resource_id, recipe")]
        assert len(ids) == len(pages), (table, len(ids), len(pages))
        return dict(zip(ids, pages))

    def intact(self, data):
        """The keys of images whose rows are on unchanged pages."""
        def whole(page):
            first = (page - 1) * PAGE
            return data[first:first + PAGE] == self.bytes[first:first + PAGE]
        good = {page for pages in self.pages.values() for page in set(pages.values()) if whole(page)}
        return {key for key, (id, _) in self.images.items()
                if all(pages[id] in good for pages in self.pages.values())}


def images(connection):
    """The number and the digest, by key."""
    return {key: (id, bytes(digest)) for key, id, digest in connection.execute(
        "SELECT key, id, sha256 FROM resource JOIN variant ON id = resource_id")}


def rows(connection, table):
    if table == "attribute":
        return set(connection.execute(
            "SELECT key, name, value FROM attribute JOIN resource ON id = resource_id"))
    # The run of this case updates the last use of a name.
    columns = "id, name, recipe" if table == "variant_name" else "*"
    return set(connection.execute(f"SELECT {columns} FROM {table}"))


def run(prefetch, cache, manifest):
    return prefetch("run", manifest, "--allow-empty", "--offline", cache=cache)


class Damages:
    """Ways to change the bytes of a database; each returns the result."""

    def __init__(self, cache, other):
        self.cache, self.other = cache, other

    @staticmethod
    def numbers(data, chance):
        return chance.sample(range(len(data) // PAGE), chance.choice((1, 1, 2, 4, 8)))

    def zeroed(self, data, chance):
        for page in self.numbers(data, chance):
            data[page * PAGE:(page + 1) * PAGE] = bytes(PAGE)

    def noise(self, data, chance):
        for page in self.numbers(data, chance):
            first = page * PAGE + chance.choice((0, 0, 8, PAGE // 2))
            last = min((page + 1) * PAGE, first + chance.choice((16, 512, PAGE)))
            data[first:last] = chance.randbytes(last - first)

    def flipped(self, data, chance):
        for _ in range(chance.choice((1, 4, 16, 64))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)

    def cut(self, data, chance):
        del data[chance.randrange(len(data)):]

    def header(self, data, chance):
        last = chance.choice((16, 100, PAGE))
        data[:last] = chance.choice((bytes, chance.randbytes))(last)

    def mixed(self, data, chance):
        other = self.other.bytes
        count = min(len(data), len(other)) // PAGE
        for page in chance.sample(range(count), chance.choice((1, 3, count // 10, count // 2))):
            data[page * PAGE:(page + 1) * PAGE] = other[page * PAGE:(page + 1) * PAGE]

    def exchanged(self, data, chance):
        count = len(data) // PAGE
        for _ in range(chance.choice((1, 3, 10))):
            first, second = chance.sample(range(count), 2)
            (data[first * PAGE:(first + 1) * PAGE], data[second * PAGE:(second + 1) * PAGE]) = (
                data[second * PAGE:(second + 1) * PAGE], data[first * PAGE:(first + 1) * PAGE])

    def hidden(self, data, chance):
        for page in self.cache.inside:
            data[(page - 1) * PAGE:page * PAGE] = chance.choice((bytes, chance.randbytes))(PAGE)
        page = chance.choice(sorted(set(self.cache.pages["variant"].values())
                                    & set(self.other.pages["variant"].values())))
        data[(page - 1) * PAGE:page * PAGE] = self.other.bytes[(page - 1) * PAGE:page * PAGE]

    CHANGES = (zeroed, noise, flipped, cut, header, mixed, exchanged, hidden)


KINDS = [change.__name__ for change in Damages.CHANGES] + [
    "log", "log cut", "foreign log", "foreign", "schema", "removed"]


class Salvage:
    """The cases, and the share of images on intact pages that were salvaged."""

    def __init__(self, arguments, prefetch, folder):
        self.arguments, self.prefetch, self.folder = arguments, prefetch, folder
        self.unbelieved = 0
        self.kept, self.expected = {}, {}
        count = arguments.images
        order = [0 if number % 5 == 0 else number for number in range(count)]
        self.cache = Cache(prefetch, folder / "cache", order)
        order = list(order)
        random.Random(5).shuffle(order)
        self.other = Cache(prefetch, folder / "other", order)
        self.damages = Damages(self.cache, self.other)
        # A log with a tenth of the images, beside a database with the others.
        self.logged = folder / "logged"
        source = Cache(prefetch, folder / "source", list(range(count * 9 // 10)))
        connection = source.connect()
        source.add(connection, list(range(count * 9 // 10, count)), count * 9 // 10 + 1)
        self.logged.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{source.database}{suffix}", self.logged / f"prefetch.sqlite{suffix}")
        connection.close()
        source.read()
        self.source = source

    def cases(self):
        return [(f"{number} {kind}", number) for number in range(self.arguments.cases)
                if self.arguments.only in (kind := KINDS[number % len(KINDS)])]

    def check(self, number):
        """The problems, as lines."""
        kind = KINDS[number % len(KINDS)]
        chance = random.Random(f"{self.arguments.seed} {number}")
        cache, base = self.cache, self.folder / f"case-{number}"
        path = base / "cache"
        base.mkdir()
        try:
            if kind in ("log", "log cut"):
                cache = self.source
            shutil.copytree(cache.path, path, copy_function=os.link,
                            ignore=shutil.ignore_patterns("prefetch.sqlite*", "lock"))
            (base / "empty.txt").write_text("")
            database = path / "prefetch.sqlite"
            has_snapshot = chance.random() < 0.25 and kind not in ("foreign", "schema")
            if has_snapshot:
                (path / "snapshot.sqlite").write_bytes(cache.bytes)
            data = self.damage(kind, database, cache, chance)
            # Databases of more than 1 MiB are checked after a command has found damage.
            (path / "suspect").touch(mode=0o600)
            before = database.read_bytes() if database.exists() else b""
            result = run(self.prefetch, path, base / "empty.txt")
            wrong, kept, expected = self.judge(
                kind, cache, path, result, before, data, has_snapshot)
            if not has_snapshot:
                self.kept[kind] = self.kept.get(kind, 0) + kept
                self.expected[kind] = self.expected.get(kind, 0) + expected
            return wrong
        finally:
            shutil.rmtree(base, ignore_errors=True)

    def damage(self, kind, database, cache, chance):
        """Returns the bytes that the database has with its log, if known."""
        if kind == "removed":
            return b""
        if kind in ("log", "log cut"):
            for suffix in ("", "-wal"):
                shutil.copy(self.logged / f"prefetch.sqlite{suffix}", f"{database}{suffix}")
            data = bytearray(database.read_bytes())
            # A page whose newest version is not in the log.
            self.damages.zeroed(data, chance)
            database.write_bytes(data)
            if kind == "log cut":
                os.truncate(f"{database}-wal", chance.randrange(os.path.getsize(f"{database}-wal")))
                return b""
            return bytes(data)
        data = bytearray(cache.bytes)
        if kind == "foreign":
            if chance.random() < 0.5:
                execute(database, "CREATE TABLE notes (a)", "INSERT INTO notes VALUES (1)")
                return b""
            database.write_bytes(self.foreign(
                "PRAGMA application_id = 7; CREATE TABLE resource (a, b)"))
            return b""
        database.write_bytes(data)
        if kind == "schema":
            execute(database, "PRAGMA user_version = 9999")
            return b""
        if kind == "foreign log":
            Path(f"{database}-wal").write_bytes(self.foreign(
                "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)", "-wal"))
            os.chmod(f"{database}-wal", 0o600)
            return bytes(data)
        getattr(self.damages, kind)(data, chance)
        database.write_bytes(data)
        return bytes(data)

    def foreign(self, script, suffix=""):
        # Cases run on several threads, so each makes its own.
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            connection = sqlite3.connect(f"{folder}/a")
            connection.executescript(script)
            data = Path(f"{folder}/a{suffix}").read_bytes()
            connection.close()
            return data

    def judge(self, kind, cache, path, result, before, data, has_snapshot):
        wrong = []
        database = path / "prefetch.sqlite"
        if kind in ("foreign", "schema"):
            if result.returncode != 2 or "hint: " not in result.stderr:
                wrong.append(f"status {result.returncode}: {result.stderr}")
            if database.read_bytes() != before:
                wrong.append("the database was changed")
            return wrong, 0, 0
        # A single bit may change the version of the schema; then the database stays.
        if result.returncode == 2 and "has schema version" in result.stderr:
            return wrong, 0, 0
        if result.returncode != 0:
            return [f"status {result.returncode}: {result.stderr}"], 0, 0
        connection = sqlite3.connect(database)
        try:
            finding = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if finding != "ok":
                wrong.append(finding)
            salvaged = images(connection)
            for key, (_, digest) in salvaged.items():
                # A flipped bit in a URL, in a database with unreadable indexes: no list requests that URL,
                # so no image is wrong.
                if kind == "flipped" and key not in cache.images:
                    continue
                if cache.images.get(key, (0, None))[1] != digest:
                    wrong.append(f"{key}: has the image {digest.hex()[:12]}")
                if not (path / f"content/{digest.hex()[:2]}/{digest.hex()}.png").exists():
                    wrong.append(f"{key}: has no file")
            for table in TABLES:
                added = rows(connection, table) - cache.rows[table]
                # The run of this case, and flipped bits that no check can detect.
                if kind == "flipped" or table == "run":
                    continue
                if kind == "mixed" and added <= self.other.rows[table]:
                    continue
                if added:
                    wrong.append(f"{table}: has {sorted(added, key=str)[:2]}")
            expected = set(cache.images)
            if "pages of another database" in result.stderr and not has_snapshot:
                self.unbelieved += 1
                if salvaged:
                    wrong.append("images were accepted anyway")
                return wrong, 0, 0
            if kind == "log cut" or (kind == "removed" and not has_snapshot):
                expected = set()
            elif kind == "log":
                expected = expected if has_snapshot else set()
            elif not has_snapshot:
                expected = cache.intact(data)
            kept = len(expected & set(salvaged))
            if has_snapshot and kept < len(expected):
                wrong.append(f"with a snapshot {kept} of {len(expected)}")
            if kind == "log" and not has_snapshot and not any(
                    id > self.arguments.images * 9 // 10 for id, _ in salvaged.values()):
                wrong.append("nothing of the log")
            return wrong, kept, len(expected)
        except sqlite3.Error as error:
            return wrong + [str(error)], 0, 0
        finally:
            connection.close()

    def conclude(self):
        """Prints the shares; returns the problems of all cases together."""
        for kind, wanted in self.expected.items():
            if wanted:
                print(f"{kind}: {self.kept[kind]} of {wanted} images on intact pages")
        print(f"cases with detected pages of another database, and no image accepted: "
              f"{self.unbelieved}")
        share = sum(self.kept.values()) / max(1, sum(self.expected.values()))
        print(f"salvaged images on intact pages: {100 * share:.2f} %")
        wrong = []
        if share < LEAST_SHARE and not self.arguments.only:
            wrong.append("too few images were salvaged")
        # The two foreign kinds, and damage that looks like them.
        if self.unbelieved > 2 + self.arguments.cases // 6 and not self.arguments.only:
            wrong.append("too many databases were taken for mixed ones")
        return wrong

"""Power cuts over the files that commands replace outside of the cache, for Scripts/torture/power-cut."""

import os
import random
import subprocess

from disk import Images, Victim
from shared import write_list

OLD = b"OLD\n"
JAR = b"# Netscape HTTP Cookie File\n# old\n\n127.0.0.1\tFALSE\t/\tFALSE\t0\told\tjar\n"


class Commands(Images):
    """Every command that replaces files, with a cache that is not on the disk under test."""

    def __init__(self, arguments, disk, server):
        super().__init__(arguments, disk, server, disk.folder / "cache", 0)
        self.report = disk.folder / "old.jsonl"
        self.next = arguments.images
        self.finish(self.list, "--encode", "original", "--report", self.report)

    def all(self, seed):
        """Each command in turn, in a folder of its own on the disk."""
        chance = random.Random(f"{self.disk.kind} {seed}")
        place = self.disk.mount / str(seed)
        place.mkdir()
        # A request, so that there are cookies to write.
        self.next += 1
        new = self.disk.folder / "new.txt"
        write_list(new, [self.server.url(self.next)])
        gallery = self.words("gallery", "-o", place / "gallery")
        # The old contents of the files that a command replaces.
        for name, words, old in (
                ("gallery", gallery, {}),
                ("run",
                 self.words(
                     self.list, new, "--encode", "original", "--html", place / "run.html",
                     "--prometheus", place / "run.prom", "--junit", place / "run.xml",
                     "--cookie-jar", place / "jar"),
                 {"run.html": OLD, "run.prom": OLD, "run.xml": OLD, "jar": JAR}),
                ("plan",
                 self.words("plan", self.list, "--shards", "2", "-o", place / "plan.json"),
                 {"plan.json": OLD}),
                ("export",
                 self.words("export", place / "out", "--layout", "mirror", "--map", place / "map.tsv",
                            "--map-json", place / "map.jsonl"),
                 {"map.tsv": OLD, "map.jsonl": OLD}),
                ("report",
                 [self.binary, "report", self.report, "-o", place / "report.html", "--cache-dir", self.cache],
                 {"report.html": OLD}),
                ("init",
                 [self.binary, "config", "init", place / "config.toml", "--force"],
                 {"config.toml": OLD}),
                # Has an image more.
                ("gallery again", gallery, {})):
            yield Replacement(name, words, self.disk, chance, place, old)


def contents(place):
    """The bytes of all files, by their paths. Temporary ones and those of an export do not count."""
    found = {}
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != "out"]
        for name in names:
            path = os.path.join(folder, name)
            if not name.startswith(".prefetch-"):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, place)] = file.read()
    return found


class Replacement(Victim):
    """A command that replaces files in a folder."""

    usual = 0.1

    def __init__(self, name, words, disk, chance, place, old):
        super().__init__(name, words, disk, chance)
        self.place, self.old = place, old
        for path, bytes in old.items():
            (place / path).write_bytes(bytes)
        if old:
            subprocess.run(["sync", "-f", place], check=True)
        self.before = contents(place)

    def write_back(self):
        """Flushes the journal, but not the data of files, as another program's fsync does at any time."""
        if self.chance.random() < 0.5:
            return
        with open(self.place / "other", "wb") as file:
            file.write(b"x")
            os.fsync(file.fileno())

    def cuts(self, count, typical):
        seconds = super().cuts(count, typical)
        self.new = {path: bytes for path, bytes in contents(self.place).items()
                    if path != "other" and bytes != self.before.get(path)}
        if not self.new or not self.old.keys() <= self.new.keys():
            raise SystemExit(f"power-cut: {self.name} replaced nothing")
        return seconds

    def wrong(self, mount, number):
        """The files of a clone that are neither old nor new, or not new after the end of the command."""
        found = contents(mount / self.place.name)
        is_done = number == len(self.clones) - 1
        problems = []
        for name, bytes in sorted(self.new.items()):
            held, old = found.get(name), self.before.get(name)
            if held == bytes or not is_done and held == old:
                continue
            state = "missing" if held is None else f"{len(held)} bytes, not {len(bytes)}" if held != old else "old"
            problems.append(f"{name}: {state}{' after the end' if is_done else ''}")
        return {"rows": sum(path in found for path in self.new)}, problems

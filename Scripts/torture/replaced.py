"""Power cuts over the files that commands replace outside of the cache, for Scripts/torture/power-cut."""

import os
import random
import subprocess
import time

OLD = b"OLD\n"
JAR = b"# Netscape HTTP Cookie File\n# old\n\n127.0.0.1\tFALSE\t/\tFALSE\t0\told\tjar\n"


class Commands:
    """Every command that replaces files, with a cache that is not on the disk under test."""

    def __init__(self, binary, folder, server, count):
        self.binary, self.folder, self.server = binary, folder, server
        self.cache = folder / "cache"
        self.list, self.report = folder / "all.txt", folder / "old.jsonl"
        self.urls = [f"http://127.0.0.1:{server.server_port}/{number}.png" for number in range(count)]
        self.next = count
        self.list.write_text("".join(url + "\n" for url in self.urls))
        self.finish(self.words(self.list, "--encode", "original", "--report", self.report))

    def words(self, *words):
        return [self.binary, *words, "--cache-dir", self.cache, "-q"]

    def finish(self, words):
        result = subprocess.run(words, capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"power-cut: {' '.join(map(str, words))}: {result.returncode}: {result.stderr}")

    def all(self, place):
        """The commands by name, each with the names of the files that it replaces, and what they were."""
        # A request, so that there are cookies to write.
        self.next += 1
        new = self.folder / "new.txt"
        new.write_text(f"http://127.0.0.1:{self.server.server_port}/{self.next}.png\n")
        gallery = (self.words("gallery", "-o", place / "gallery"), {})
        return {
            "gallery": gallery,
            "run": (
                self.words(
                    self.list, new, "--encode", "original", "--html", place / "run.html",
                    "--prometheus", place / "run.prom", "--junit", place / "run.xml",
                    "--cookie-jar", place / "jar"),
                {"run.html": OLD, "run.prom": OLD, "run.xml": OLD, "jar": JAR}),
            "plan": (
                self.words("plan", self.list, "--shards", "2", "-o", place / "plan.json"),
                {"plan.json": OLD}),
            "export": (
                self.words("export", place / "out", "--layout", "mirror", "--map", place / "map.tsv", "--map-json", place / "map.jsonl"),
                {"map.tsv": OLD, "map.jsonl": OLD}),
            "report": (
                [self.binary, "report", self.report, "-o", place / "report.html", "--cache-dir", self.cache],
                {"report.html": OLD}),
            "init": (
                [self.binary, "config", "init", place / "config.toml", "--force"],
                {"config.toml": OLD}),
            # Has an image more.
            "gallery again": gallery,
        }


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


def write_back(place, chance):
    """Flushes the journal, but not the data of files, as another program's fsync does at any time."""
    if chance.random() < 0.5:
        return
    with open(place / "other", "wb") as file:
        file.write(b"x")
        os.fsync(file.fileno())


def cuts(words, disk, place, chance, most, typical):
    """Clones the disk while a command works, and directly after it: the clones, and the duration."""
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    paths = []
    for moment in sorted(chance.uniform(0.1, 1.1) * typical for _ in range(most)):
        time.sleep(max(0, begin + moment - time.monotonic()))
        if process.poll() is not None:
            break
        write_back(place, chance)
        # The command may end here: then the clone has more than is asked for.
        paths.append(disk.cut(len(paths)))
    error = process.communicate()[1]
    seconds = time.monotonic() - begin
    if process.returncode != 0:
        raise SystemExit(f"power-cut: {' '.join(map(str, words))}: {process.returncode}: {error.decode()}")
    write_back(place, chance)
    paths.append(disk.cut(len(paths)))
    return paths, seconds


def wrong(old, new, is_done, found):
    """The files of a clone that are neither old nor new, or not new after the end of the command."""
    problems = []
    for name, bytes in sorted(new.items()):
        held = found.get(name)
        if held == bytes or not is_done and held == old.get(name):
            continue
        state = "missing" if held is None else f"{len(held)} bytes, not {len(bytes)}" if held != old.get(name) else "old"
        problems.append(f"{name}: {state}{' after the end' if is_done else ''}")
    return problems


def try_files(arguments, disk, server, folder):
    """Cuts the power of each command: the counts of cuts, of files that were seen, and of failed cuts."""
    commands = Commands(arguments.binary, folder, server, arguments.images)
    counts = {"cuts": 0, "rows": 0, "failed": 0}
    typical, seed = {}, arguments.seed
    while counts["cuts"] < arguments.cuts:
        chance = random.Random(f"{disk.kind} {seed}")
        place = disk.mount / str(seed)
        place.mkdir()
        for name, (words, old) in commands.all(place).items():
            for path, bytes in old.items():
                (place / path).write_bytes(bytes)
            if old:
                subprocess.run(["sync", "-f", place], check=True)
            before = contents(place)
            clones, typical[name] = cuts(words, disk, place, chance, arguments.cuts_a_run, typical.get(name, 0.1))
            new = {path: bytes for path, bytes in contents(place).items()
                   if path != "other" and bytes != before.get(path)}
            if not new or not old.keys() <= new.keys():
                raise SystemExit(f"power-cut: {name} replaced nothing")
            for number, clone in enumerate(clones):
                found = disk.look(clone, lambda mount: contents(mount / str(seed)), "")
                clone.unlink()
                problems = wrong(before, new, number == len(clones) - 1, found)
                counts["cuts"] += 1
                counts["rows"] += sum(path in found for path in new)
                if problems:
                    counts["failed"] += 1
                    print(f"cut {number} of {name} on {disk.kind}, seed {seed}: {len(problems)} wrong:\n  "
                          + "\n  ".join(problems[:5]), flush=True)
        seed += 1
    print(f"{disk.kind}: {counts['cuts']} cuts, {counts['rows']} files seen, {counts['failed']} cuts with faults", flush=True)
    return counts

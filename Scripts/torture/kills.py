"""`Scripts/torture/run kills`, `mixed` and `pairs`: SIGKILL at random moments, and commands at once."""

import collections
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import time
from pathlib import Path

from scenarios import scenarios, templates, writers
from shared import (
    PAGE, TIME_LIMIT, WORKERS, Findings, Workplace, run_all, fail, judge, print_statuses,
    served_folder, taken)

# Pictures on the server: enough for the largest cache, and some for `put`.
PICTURES = 330
# One in this many attempts is not killed, to measure the current duration.
MEASURED = 40
# Outcomes of stored images.
KEPT = ("fresh", "revalidated")
# Its own status is unknown then.
AT_THE_LAST_MOMENT = "ended"


class Durations:
    """The current durations of commands on this machine."""

    def __init__(self):
        self.taken = collections.defaultdict(lambda: collections.deque(maxlen=5))
        self.since_last = collections.Counter()
        # By command: the share of the duration from which moments are drawn. It adapts so that
        # most kills meet a live process, also on a busy machine.
        self.share = collections.defaultdict(lambda: 1.0)

    def is_due(self, key):
        self.since_last[key] += 1
        return len(self.taken[key]) < 2 or self.since_last[key] > MEASURED

    def note(self, key, seconds):
        self.taken[key].append(seconds)
        self.since_last[key] = 0

    def moment(self, key, startup, chance):
        """A random moment of the command's own work."""
        typical = statistics.median(self.taken[key])
        end = typical * self.share[key[0]]
        return chance.uniform(min(startup * 0.7, end * 0.5), end)

    def note_kill(self, key, was_alive):
        # Converges where about three of four are alive.
        share = self.share[key[0]] * (1.02 if was_alive else 0.94)
        self.share[key[0]] = min(1.2, max(0.1, share))


def kills(options):
    """Kills every command that changes a cache at a random moment; then the next run, and the judge."""
    findings = Findings()
    findings.done = collections.defaultdict(collections.Counter)
    left = list(reversed(range(options.kills)))
    with served_folder(PICTURES, ("png",), folder_of(options)) as (folder, server):
        chosen = scenarios(server)
        unknown = set(options.command_name or ()) - set(chosen)
        if unknown:
            fail(f"{', '.join(sorted(unknown))}: no such command; they are {', '.join(chosen)}")
        names = [name for name, scenario in chosen.items() for _ in range(scenario.weight)
                 if not options.command_name or name in options.command_name]

        def work(worker):
            # Each worker has its own, because commands change them.
            mine = scenarios(server)
            template_of = templates(folder / f"templates-{worker}", server)
            durations = Durations()
            startup = median_of(3, lambda: Workplace(folder).run(["--version"]))
            for number in taken(left):
                chance = random.Random(f"{options.seed} {number}")
                scenario = mine[names[number % len(names)]]
                sizes = scenario.sizes[:1] if options.small else scenario.sizes
                template = template_of(chance.choice(sizes), chance.random() < 0.3)
                key = scenario.name, template
                place = folder / f"worker-{worker}"
                while durations.is_due(key):
                    seconds, _ = suffer(scenario, template, place, chance, None, findings, number, options)
                    durations.note(key, seconds)
                _, was_alive = suffer(
                    scenario, template, place, chance, durations.moment(key, startup, chance), findings,
                    number, options)
                durations.note_kill(key, was_alive)

        run_all(work, options.workers or WORKERS)
    print_table(findings)
    return findings


def folder_of(options):
    """The folder for caches, in memory by default.

    A kill leaves its state in memory anyway, and other programs' writing does not delay it.
    """
    if options.folder:
        return options.folder
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def median_of(times, call):
    taken = []
    for _ in range(times):
        begin = time.monotonic()
        call()
        taken.append(time.monotonic() - begin)
    return statistics.median(taken)


def suffer(scenario, template, place, chance, moment, findings, number, options):
    """One attempt, killed after the given seconds unless None: its duration, and whether it was killed."""
    workplace, attempt = scenario.prepare(template, place, chance)
    name = f"{scenario.name}, {number}"
    before = lock_of(workplace)
    begin = time.monotonic()
    if moment is None:
        status = finish(workplace, attempt.arguments)
    elif attempt.landmark:
        status = kill_at_landmark(workplace, attempt, 0.1 * moment)
    else:
        status = kill_after(moment, workplace, attempt.arguments)
    seconds = time.monotonic() - begin
    is_killed = status == -signal.SIGKILL
    if status not in attempt.statuses | {AT_THE_LAST_MOMENT} and not (is_killed and moment is not None):
        error = (place / "victim.err").read_text(errors="replace")
        findings.problem(f"{name}: status {status}: {error.strip()[-400:]}")
    is_second_killed = False
    if moment is not None:
        is_at_work = is_killed and lock_of(workplace) != before and (
            attempt.landmark is None or attempt.landmark.exists())
        # The repairing run may be killed, too.
        if is_killed and chance.random() < 0.25:
            arguments = ["none.txt", "--allow-empty", *template.options]
            second = kill_after(chance.uniform(0.3, 1) * moment, workplace, arguments, "second")
            is_second_killed = second == -signal.SIGKILL
        with findings.lock:
            findings.done[scenario.name].update({
                "kills": 1, "alive": is_killed, "at work": is_at_work, "second": is_second_killed})
    wrong = scenario.verify_next(workplace, template, attempt)
    if wrong:
        findings.problem(f"{name} ({' '.join(attempt.arguments)[:200]}; {template.size} images"
                         f"{' and variants' * template.has_variant}; after {moment} s): {'; '.join(wrong)}")
        if options.keep:
            kept = Path(options.keep) / f"{scenario.name.replace(' ', '')}-{number}"
            shutil.copytree(place, kept, dirs_exist_ok=True)
    return seconds, is_killed


def kill_after(seconds, workplace, arguments, name="victim"):
    """Starts a separate program that kills, because this one is busy at such a moment."""
    status = workplace.start(
        arguments, name, ["/usr/bin/timeout", "--foreground", "--signal=KILL", f"{seconds:.6f}"]).wait()
    # 124: it ended before it was killed.
    return {128 + signal.SIGKILL: -signal.SIGKILL, 124: AT_THE_LAST_MOMENT}.get(status, status)


def finish(workplace, arguments):
    """The status; None after a time-out."""
    status = kill_after(TIME_LIMIT, workplace, arguments)
    return None if status == -signal.SIGKILL else status


def kill_at_landmark(workplace, attempt, seconds):
    """Kills some seconds after a short-lived state is seen."""
    process = workplace.start(attempt.arguments)
    while not attempt.landmark.exists() and process.poll() is None:
        time.sleep(0.0001)
    time.sleep(seconds)
    process.kill()
    return process.wait()


def lock_of(workplace):
    """The process that the lock file names."""
    try:
        return (workplace.cache / "lock").read_bytes()
    except OSError:
        return None


# Commands of the mixture: weight, arguments and permitted statuses. 75 means that another command
# holds the lock and the command does not wait, or not long enough.
WAYS_TO_WAIT = ([], ["--lock", "wait=200ms"], ["--lock", "wait"])


def mixture(template, server, chance):
    """Commands with their permitted statuses."""
    waiting = chance.choice(WAYS_TO_WAIT)
    # A command that waits without limit gets the lock.
    held = set() if waiting == ["--lock", "wait"] else {75}
    far = chance.choice(template.far)
    near = chance.choice(template.near)
    spare = server.folder / server.paths[-1 - chance.randrange(20)]
    size = f"{len(template.near) * 3 // 2 * PAGE}B"
    return [
        (["all.txt", "-q", "--report", "-", *waiting], {0} | held),
        (["near.txt", "-q", "--report", "-", *waiting], {0} | held),
        (["near.txt", "-q", "--report", "-", "--max-size", size, *waiting], {0, 1} | held),
        (["prune", "--unlisted", "near.txt", *waiting], {0} | held),
        (["prune", "--host", "localhost", "--history", "1d", *waiting], {0} | held),
        (["remove", far, *waiting], {0, 1} | held),
        (["remove", "--host", "localhost", *waiting], {0, 1} | held),
        (["put", far, str(spare), "--json", *waiting], {0} | held),
        (["verify", "--json"], {0, 1}),
        (["verify", "--repair", "--json", *waiting], {0, 1} | held),
        (["get", near], {0}),
        (["get", far], {0, 1}),
        (["list", "--json"], {0}),
        (["stats", "--json"], {0}),
    ]


def mixed(options):
    """Runs eight commands at a time over one cache, and kills a third; then the next run, and the judge."""
    findings = Findings()
    findings.done = collections.defaultdict(collections.Counter)
    killed = collections.Counter()
    with served_folder(PICTURES, ("png",), folder_of(options)) as (folder, server):
        template = templates(folder / "templates", server)(60, False)
        shared = template.copy(template.whole, folder / "shared")
        deadline = time.monotonic() + options.seconds

        def work(worker):
            chance = random.Random(f"{options.seed} {worker}")
            place = folder / f"worker-{worker}"
            template.copy(template.empty, place)
            workplace = Workplace(place)
            workplace.cache = shared.cache
            while time.monotonic() < deadline:
                arguments, statuses = chance.choice(mixture(template, server, chance))
                name = " ".join(word for word in arguments if "/" not in word)
                if chance.random() < 1 / 3:
                    status = kill_after(chance.uniform(0, 0.3), workplace, arguments)
                    with findings.lock:
                        killed["all"] += status == -signal.SIGKILL
                    statuses = statuses | {-signal.SIGKILL, AT_THE_LAST_MOMENT}
                else:
                    status = finish(workplace, arguments)
                findings.count(name, status)
                said = (place / "victim.err").read_text(errors="replace").strip()[-400:]
                if status not in statuses:
                    findings.problem(f"{name}: status {status}: {said}")
                if status in (0, 1):
                    for wrong in said_wrongly(workplace, arguments):
                        findings.problem(f"{name}: {wrong}")

        run_all(work, 8)
        for text in problems_after(shared, template, server):
            findings.problem(text)
        if findings.problems and options.keep:
            shutil.copytree(shared.folder, Path(options.keep) / "mixed", dirs_exist_ok=True)
    print_statuses(findings)
    print(f"torture: {killed['all']} of them were killed while working")
    return findings


def problems_after(shared, template, server, more=0):
    """The problems of the next run over a shared cache, and the judge's."""
    wrong, outcomes = scenarios(server)["run"].next_run(shared, template)
    # No command removes these.
    lost = [url for url in template.near if outcomes.get(url, {}).get("outcome") not in KEPT]
    wrong += [f"lost: {lost[:5]}"] * bool(lost)
    wrong += judge(shared, range(len(template.urls), len(template.urls) + more + 1))
    status, error = shared.run(["verify"])
    return wrong + [f"verify: status {status}: {error.strip()[-400:]}"] * (status != 0)


def pairs(options):
    """Runs each two commands at once, with a reader, over one cache and one folder."""
    findings = Findings()
    chance = random.Random(options.seed)
    with served_folder(PICTURES, ("png",), folder_of(options)) as (folder, server):
        template = templates(folder / "templates", server)(20, False)
        start = template.copy(template.whole, folder / "start")
        commands = [(writer.arrange(start, template), writer.statuses | {0, 1, 75})
                    for writer in writers(server) if writer.starts_with != "empty"]
        commands += [(command, statuses | {75}) for command, statuses in mixture(template, server, chance)
                     if command[0] not in ("get", "list", "stats")]
        queue = list(itertools.combinations_with_replacement(commands, 2))
        chance.shuffle(queue)
        queue = queue[:options.sample]

        def work(worker):
            for pair in taken(queue):
                place = template.copy(start.folder, folder / f"worker-{worker}")
                processes = [place.start(command, f"victim-{number}") for number, (command, _) in enumerate(pair)]
                wrong = []
                while any(process.poll() is None for process in processes):
                    status, error = place.run(["get", "--stale", chance.choice(template.near)])
                    wrong += [f"get: status {status}: {error.strip()}"] * (status != 0)
                for number, ((command, statuses), process) in enumerate(zip(pair, processes)):
                    name = f"{command[0]} {command[1]}"[:24]
                    findings.count(name, process.returncode)
                    if process.returncode not in statuses:
                        said = (place.folder / f"victim-{number}.err").read_text(errors="replace")[-400:]
                        wrong.append(f"{name}: status {process.returncode}: {said.strip()}")
                for text in wrong + problems_after(place, template, server, more=1):
                    findings.problem(f"{' '.join(pair[0][0])[:60]} & {' '.join(pair[1][0])[:60]}: {text}")

        run_all(work)
    print_statuses(findings)
    return findings


def said_wrongly(workplace, arguments):
    """Impossible output of a command."""
    output = (workplace.folder / "victim.out").read_text(errors="replace")
    if arguments[0] == "verify":
        # Files of a killed command may be orphaned until the next run.
        found = [json.loads(line) for line in output.splitlines()]
        return [str(finding) for finding in found
                if finding["type"] == "finding" and finding["kind"] != "orphan"]
    if arguments[0] == "get" and "localhost" not in arguments[1] and not Path(output.strip()).is_file():
        return [f"there is no {output.strip()}"]
    return []


def print_table(findings):
    print(f"  {'command':<18} {'kills':>6} {'alive':>6} {'held the lock':>14} {'and a second':>13}")
    total = collections.Counter()
    for name, done in findings.done.items():
        total.update(done)
    for name, done in [*sorted(findings.done.items()), ("all", total)]:
        print(f"  {name:<18} {done['kills']:>6} {done['alive']:>6} {done['at work']:>14} {done['second']:>13}")
        if name != "all":
            findings.statuses[name]["kills"] = done["kills"]

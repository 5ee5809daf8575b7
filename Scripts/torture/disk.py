"""Disks whose power is cut, pictures from a server, and commands, for Scripts/torture/power-cut."""

import contextlib
import fcntl
import http.server
import io
import os
import random
import subprocess
import threading
import time

from PIL import Image

from shared import write_list

FICLONE = 0x40049409
SIDE = 64


def picture(number):
    """A PNG of noise, about 12 kB, different for each number."""
    noise = random.Random(number).randbytes(3 * SIDE * SIDE)
    file = io.BytesIO()
    Image.frombytes("RGB", (SIDE, SIDE), noise).save(file, "png", compress_level=1)
    return file.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """Serves a picture for each number on loopback, and counts the requests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Pictures)
        self.lock = threading.Lock()
        self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, number):
        return f"http://127.0.0.1:{self.server_port}/{number}.png"

    def handle_error(self, request, address):
        pass  # a client that disconnected


class Pictures(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        with self.server.lock:
            self.server.asked += 1
        body = picture(int(self.path.strip("/").split(".")[0]))
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=86400")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class CannotMount(Exception):
    """The system has the devices but forbids their use."""


def call(*words):
    """Runs a quiet program; if it fails, its message ends this one."""
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        raise OSError(f"{' '.join(map(str, words))}: {result.stderr.strip()}")


def make_image(path, gigabytes):
    with open(path, "wb") as file:
        file.truncate(gigabytes << 30)


class Disk:
    """An ext4 or xfs in a file on an xfs, both mounted in this process's own mount namespace."""

    def __init__(self, folder, kind):
        self.folder, self.kind = folder, kind
        self.base, self.mount, self.clone_mount = (
            folder / "xfs", folder / "disk", folder / "clone")
        for path in (folder, self.base, self.mount, self.clone_mount):
            path.mkdir()
        outer, self.image = folder / "xfs.img", self.base / "disk.img"
        try:
            make_image(outer, 3)
            call("mkfs.xfs", "-q", "-m", "reflink=1", outer)
            call("mount", "-o", "loop", outer, self.base)
            make_image(self.image, 1)
            lazy = ["-E", "lazy_itable_init=0,lazy_journal_init=0"] if kind == "ext4" else []
            call(f"mkfs.{kind}", "-q", *lazy, self.image)
            call("mount", "-o", "loop", self.image, self.mount)
        except OSError as error:
            raise CannotMount(str(error)) from None

    def cut(self, number):
        """Clones the disk at this moment under its own name."""
        path = self.base / f"cut-{number}.img"
        with open(self.image, "rb") as source, open(path, "wb") as target:
            fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
        return path

    @contextlib.contextmanager
    def mounted(self, path):
        """The folder where a clone is mounted, which replays the journal; then removes the clone."""
        # The clone has the same identifier.
        call("mount", "-o", "loop" if self.kind == "ext4" else "loop,nouuid", path, self.clone_mount)
        try:
            yield self.clone_mount
        finally:
            call("umount", self.clone_mount)
        path.unlink()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for path in (self.mount, self.base):
            subprocess.run(["umount", path], capture_output=True)


class Images:
    """A cache, and a list of pictures for it."""

    def __init__(self, arguments, disk, server, cache, first):
        self.binary, self.disk, self.server, self.cache = arguments.binary, disk, server, cache
        self.urls = [server.url(number) for number in range(first, first + arguments.images)]
        self.list = disk.folder / "list.txt"
        write_list(self.list, self.urls)

    def words(self, *words):
        return [self.binary, *words, "--cache-dir", self.cache, "-q"]

    def finish(self, *words):
        result = subprocess.run(self.words(*words), capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"power-cut: {' '.join(map(str, words))}: {result.returncode}: {result.stderr}")


class Victim:
    """A command under which the power is cut."""

    status = 0
    # Its duration in seconds, until one is measured.
    usual = 0.2

    def __init__(self, name, words, disk, chance):
        self.name, self.words, self.disk, self.chance = name, words, disk, chance

    def moments(self, process, count, typical):
        """Waits for each of some moments of the command's usual duration."""
        begin = time.monotonic()
        for moment in sorted(self.chance.uniform(0.1, 1.1) * typical for _ in range(count)):
            time.sleep(max(0, begin + moment - time.monotonic()))
            yield

    def write_back(self):
        """Writes something to the disk, as the kernel may do at any time."""

    def cut(self):
        self.write_back()
        self.clones.append(self.disk.cut(len(self.clones)))

    def cuts(self, count, typical):
        """Clones the disk while the command works, and directly after it; the duration."""
        self.clones = []
        begin = time.monotonic()
        process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in self.moments(process, count, typical):
            if process.poll() is not None:
                break
            # The command may end here: then the clone has more than is required.
            self.cut()
        error = process.communicate()[1]
        seconds = time.monotonic() - begin
        if process.returncode != self.status:
            raise SystemExit(f"power-cut: {self.name} ended with {process.returncode}: {error}")
        # Its reported results are complete.
        self.cut()
        return seconds


def write_back(path):
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    os.fdatasync(file)
    os.close(file)

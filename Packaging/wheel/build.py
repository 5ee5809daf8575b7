"""Builds the wheel: the Python package with the command as a script.

Usage: build.py BINARY VERSION FOLDER [TREE]

TREE is a folder with `libexec` and `share`, which pip puts next to the `bin` of the command. It
leaves out `lib` with `--target`.

The platform tag is that of the binary's architecture and glibc 2.34, the oldest one that the
command starts with. $SOURCE_DATE_EPOCH dates the files, so that a repeated build writes the same
bytes. Only the standard library is used: building needs no network.
"""

import base64
import hashlib
import os
import platform
import sys
import time
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# The name `prefetch` belongs to another project on PyPI.
NAME = "prefetch_images"
METADATA = """\
Metadata-Version: 2.1
Name: prefetch-images
Version: {version}
Summary: Keep an on-disk cache of images warm
License: MIT
Requires-Python: >=3.9
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
License-File: LICENSE
Provides-Extra: spark
Requires-Dist: pyspark[sql]>=3.5; extra == "spark"
Description-Content-Type: text/markdown

"""


def main():
    binary, version, folder, *trees = sys.argv[1:]
    tag = f"py3-none-manylinux_2_34_{platform.machine()}"
    info = f"{NAME}-{version}.dist-info"
    metadata = METADATA.format(version=version) + (FOLDER / "README.md").read_text()
    wheel = f"Wheel-Version: 1.0\nGenerator: prefetch\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = [
        *((f"prefetch/{file.name}", file.read_bytes(), 0o644)
          for file in sorted((FOLDER / "prefetch").iterdir()) if file.is_file()),
        (f"{NAME}-{version}.data/scripts/prefetch", Path(binary).read_bytes(), 0o755),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
        (f"{info}/LICENSE", (FOLDER.parent.parent / "LICENSE").read_bytes(), 0o644),
        *((f"{NAME}-{version}.data/data/{file.relative_to(tree)}", file.read_bytes(), 0o644)
          for tree in trees for top in ("libexec", "share")
          for file in sorted(Path(tree, top).rglob("*")) if file.is_file()),
    ]
    record = "".join(
        f"{name},sha256={digest(content)},{len(content)}\n" for name, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    date = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))[:6]
    path = Path(folder) / f"{NAME}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    print(path)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


main()

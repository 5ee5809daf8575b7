#!/usr/bin/env python3
"""Programs that show the frames of a GIF, each if it is installed.

Usage: gif_readers.py FOLDER

The folder has pairs of files: NAME.gif, and NAME.rgba with the frames that it should show, 4 bytes a pixel. Prints a
line for each reader with the number of GIFs that it read, and one for each GIF that it shows otherwise. Colours of
transparent pixels do not count.
"""

import io
import pathlib
import shutil
import subprocess
import sys

from PIL import Image, ImageSequence


def by_pillow(file):
    with Image.open(file) as image:
        return [frame.convert("RGBA") for frame in ImageSequence.Iterator(image)]


def by_vips(path):
    import pyvips

    pages = pyvips.Image.new_from_file(str(path), n=-1)
    height = pages.get("page-height") if pages.get_typeof("page-height") else pages.height
    pages = pages.colourspace("srgb")
    rows = (pages if pages.bands == 4 else pages.bandjoin(255)).cast("uchar").write_to_memory()
    size, length = (pages.width, height), 4 * pages.width * height
    return [Image.frombytes("RGBA", size, rows[at : at + length]) for at in range(0, len(rows), length)]


def by_tool(*command):
    return by_pillow(io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout))


def by_imagemagick(path):
    return by_tool("convert", path, "-coalesce", "-type", "TrueColorAlpha", "tiff:-")


def by_gifsicle(path):
    return by_tool("gifsicle", "--unoptimize", path)


def installed():
    """{name: reader}, and the names of those that are not installed."""
    readers, missing = {"pillow": by_pillow}, []
    try:
        import pyvips  # noqa: F401

        readers["vips"] = by_vips
    except (ImportError, OSError):
        missing.append("vips")
    for name, program, reader in [
        ("imagemagick", "convert", by_imagemagick), ("gifsicle", "gifsicle", by_gifsicle),
    ]:  # fmt: skip
        if shutil.which(program):
            readers[name] = reader
        else:
            missing.append(name)
    return readers, missing


def shown(frames):
    """The samples of all frames, where transparent pixels are zero."""
    rows = []
    for frame in frames:
        clear = Image.new("RGBA", frame.size)
        opaque = frame.getchannel("A").point(lambda alpha: 255 if alpha else 0)
        rows.append(Image.composite(frame, clear, opaque).tobytes())
    return b"".join(rows)


def main():
    readers, missing = installed()
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.gif"))
    for name, read in readers.items():
        for file in files:
            try:
                if shown(read(file)) != file.with_suffix(".rgba").read_bytes():
                    print(f"{name} {file.name} differs")
            except Exception as error:  # noqa: BLE001 - any failure of a reader is its verdict
                print(f"{name} {file.name} fails: {error}".replace("\n", " "))
        print(f"{name} read {len(files)}")
    for name in missing:
        print(f"{name} is not installed")


if __name__ == "__main__":
    main()

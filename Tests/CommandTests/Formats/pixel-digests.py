"""Prints for every picture named on standard input what `EXPECT.tsv` of the shared data calls
`rgba8_sha256`: the first 32 hexadecimal digits of the SHA-256 of its RGBA bytes.

The reference was made with a later version of Pillow than Debian's. The two differ where a pixel's
index is beyond the palette (opaque black in the later one) and in transparency of one bit a pixel;
both are done by hand here.
"""

import hashlib
import sys

from PIL import Image


def palette_to_rgba(picture):
    colours = picture.getpalette("RGB") or []
    alpha = picture.info.get("transparency", b"")
    if isinstance(alpha, int):
        alpha = b"\xff" * alpha + b"\0"
    entries = [
        bytes(colours[3 * i:3 * i + 3] if 3 * i + 2 < len(colours) else (0, 0, 0))
        + bytes((alpha[i] if i < len(alpha) else 255,)) for i in range(256)]
    return b"".join(entries[index] for index in picture.tobytes())


def rgba(path):
    picture = Image.open(path)
    picture.load()
    transparent = picture.info.get("transparency")
    if picture.mode == "P":
        return palette_to_rgba(picture)
    if picture.mode == "1" and transparent is not None:
        grey = picture.convert("L")
        clear = 255 if transparent else 0
        alpha = grey.point(lambda value: 0 if value == clear else 255)
        return Image.merge("RGBA", (grey, grey, grey, alpha)).tobytes()
    return picture.convert("RGBA").tobytes()


for line in sys.stdin:
    print(hashlib.sha256(rgba(line.rstrip("\n"))).hexdigest()[:32])

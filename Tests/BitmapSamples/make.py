#!/usr/bin/python3
"""Makes the bitmaps of this folder, byte by byte, and EXPECT.tsv: what Pillow says of each.

Usage: python3 make.py. The files are committed; their names say what they have. A picture is 13×9 pixels, so that
rows of every depth have bits and bytes to fill up.

EXPECT.tsv: name, verdict of Pillow (ok, error), width, height, the first 32 hexadecimal digits of the SHA-256 of the
RGBA bytes, and those of what was drawn here, where Pillow rounds down samples of fewer bits than 8 or does not take the file.
"""

import hashlib
import io
import struct
import warnings
from pathlib import Path

from PIL import Image, ImageCms, ImageFile

FOLDER = Path(__file__).resolve().parent
WIDTH, HEIGHT = 13, 9
made = {}
# RGBA of what was drawn, by name.
drawn = {}


def rgb(x, y):
    return (x * 19 + 7, y * 28 + 3, (x * y * 5 + 40) & 255)


def rows_of(bits, value, width=WIDTH, height=HEIGHT):
    """From the bottom, each filled up to 32 bits."""
    out = b""
    for y in reversed(range(height)):
        number, count = 0, 0
        row = bytearray()
        for x in range(width):
            sample = value(x, y)
            if bits >= 8:
                row += sample.to_bytes(bits // 8, "little")
                continue
            number, count = number << bits | sample, count + bits
            if count == 8:
                row.append(number)
                number, count = 0, 0
        if count:
            row.append(number << 8 - count)
        out += bytes(row) + b"\0" * (-len(row) % 4)
    return out


def header(bits, size=40, method=0, colours=0, width=WIDTH, height=HEIGHT, length=0, extra=b""):
    if size == 12:
        return struct.pack("<IHHHH", 12, width, height, 1, bits)
    full = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, method, length, 2835, 2835, colours, 0)
    full += extra
    return (full + b"\0" * size)[:size]


def file(head, rest, data, offset=None, length=None):
    start = 14 + len(head) + len(rest)
    body = head + rest + data
    offset = start if offset is None else offset
    length = 14 + len(body) if length is None else length
    return b"BM" + struct.pack("<IHHI", length & 0xFFFFFFFF, 0, 0, offset) + body


def palette(count, entry=4, grey=False):
    out = b""
    for index in range(count):
        if grey:
            level = index * 255 // max(count - 1, 1)
            colour = (level, level, level)
        else:
            colour = (index * 37 & 255, 255 - index * 11 & 255, index * 91 + 5 & 255)
        out += bytes(reversed(colour)) + b"\0" * (entry - 3)
    return out


def index(most):
    return lambda x, y: (x * 3 + y * 5) % most


def whole(x, y):
    red, green, blue = rgb(x, y)
    return red << 16 | green << 8 | blue


def with_alpha(x, y):
    return ((x * 20 + y) & 255) << 24 | whole(x, y)


def packed(red, green, blue):
    def value(x, y):
        samples = rgb(x, y)
        number = 0
        for sample, mask in zip(samples, (red, green, blue)):
            if mask:
                shift = (mask & -mask).bit_length() - 1
                number |= sample * (mask >> shift) // 255 << shift
        return number
    return value


def picture(value, *masks_of_channels):
    """What a pixel's samples come to, rounded to 8 bits; opaque without a fourth mask."""
    out = bytearray()
    for y in range(HEIGHT):
        for x in range(WIDTH):
            pixel = []
            for mask in masks_of_channels:
                if mask == 0:
                    pixel.append(0)
                    continue
                shift = (mask & -mask).bit_length() - 1
                most = mask >> shift
                pixel.append(((value(x, y) & mask) >> shift) * 510 // most + 1 >> 1)
            out += bytes(pixel + [255] * (4 - len(pixel)))
    return bytes(out)


def masks(*values):
    return struct.pack(f"<{len(values)}I", *values)


# What is common.
for bits in (1, 4, 8):
    made[f"{bits}-bit"] = file(header(bits), palette(1 << bits), rows_of(bits, index(1 << bits)))
    made[f"{bits}-bit-os2"] = file(header(bits, 12), palette(1 << bits, 3), rows_of(bits, index(1 << bits)))
    made[f"{bits}-bit-grey"] = file(header(bits), palette(1 << bits, grey=True), rows_of(bits, index(1 << bits)))
made["8-bit-of-few-colours"] = file(header(8, colours=20), palette(20), rows_of(8, index(20)))
made["8-bit-os2-2"] = file(header(8, 64), palette(256), rows_of(8, index(256)))
made["8-bit-os2-2-short"] = file(header(8, 16), palette(256), rows_of(8, index(256)))
made["16-bit"] = file(header(16), b"", rows_of(16, packed(0x7C00, 0x3E0, 0x1F)))
made["16-bit-565"] = file(header(16, method=3), masks(0xF800, 0x7E0, 0x1F), rows_of(16, packed(0xF800, 0x7E0, 0x1F)))
made["16-bit-444"] = file(header(16, method=3), masks(0xF00, 0xF0, 0xF), rows_of(16, packed(0xF00, 0xF0, 0xF)))
made["24-bit"] = file(header(24), b"", rows_of(24, whole))
made["24-bit-os2"] = file(header(24, 12), b"", rows_of(24, whole))
made["24-bit-palette-unused"] = file(header(24, colours=16), palette(16), rows_of(24, whole))
made["32-bit"] = file(header(32), b"", rows_of(32, with_alpha))
made["32-bit-masks"] = file(header(32, method=3), masks(0xFF000000, 0xFF0000, 0xFF00), rows_of(32, lambda x, y: whole(x, y) << 8))
made["32-bit-10-bits-a-sample"] = file(header(32, method=3), masks(0x3FF00000, 0xFFC00, 0x3FF), rows_of(32, packed(0x3FF00000, 0xFFC00, 0x3FF)))
made["32-bit-no-blue"] = file(header(32, method=3), masks(0xFF0000, 0xFF00, 0), rows_of(32, packed(0xFF0000, 0xFF00, 0)))
made["32-bit-version-3"] = file(header(32, 56, 3, extra=masks(0xFF0000, 0xFF00, 0xFF, 0xFF000000)), b"", rows_of(32, with_alpha))
made["24-bit-version-4"] = file(header(24, 108), b"", rows_of(24, whole))
made["32-bit-version-4-alpha"] = file(header(32, 108, 3, extra=masks(0xFF0000, 0xFF00, 0xFF, 0xFF000000)), b"", rows_of(32, with_alpha))
made["16-bit-version-4-alpha"] = file(
    header(16, 108, 3, extra=masks(0x7C00, 0x3E0, 0x1F, 0x8000)), b"",
    rows_of(16, lambda x, y: packed(0x7C00, 0x3E0, 0x1F)(x, y) | (x + y) % 2 << 15))
made["32-bit-version-5-alpha"] = file(header(32, 124, 3, extra=masks(0xFF0000, 0xFF00, 0xFF, 0xFF000000)), b"", rows_of(32, with_alpha))
made["32-bit-alpha-masks"] = file(header(32, method=6), masks(0xFF0000, 0xFF00, 0xFF, 0xFF000000), rows_of(32, with_alpha))
made["24-bit-masks"] = file(header(24, method=3), masks(0xFF0000, 0xFF00, 0xFF), rows_of(24, whole))
top_down = b"".join(reversed([rows_of(24, whole)[40 * row:40 * row + 40] for row in range(HEIGHT)]))
made["24-bit-from-the-top"] = file(header(24, height=-HEIGHT), b"", top_down)

profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
profile = bytearray(profile)
data = rows_of(24, whole)
five = bytearray(header(24, 124))
struct.pack_into("<I", five, 56, 0x4D424544)
struct.pack_into("<II", five, 112, 124 + len(data), len(profile))
made["24-bit-profile-of-srgb"] = file(bytes(five), b"", data + bytes(profile))
struct.pack_into("<II", five, 112, 124 + len(data), 0xFFFFFFF0)
made["24-bit-profile-beyond-the-end"] = file(bytes(five), b"", data)


for name, values in {"16-bit": (0x7C00, 0x3E0, 0x1F), "16-bit-565": (0xF800, 0x7E0, 0x1F), "16-bit-444": (0xF00, 0xF0, 0xF),
                     "32-bit-10-bits-a-sample": (0x3FF00000, 0xFFC00, 0x3FF),
                     "32-bit-no-blue": (0xFF0000, 0xFF00, 0)}.items():
    drawn[name] = picture(packed(*values), *values)
fifteen = packed(0x7C00, 0x3E0, 0x1F)
drawn["16-bit-version-4-alpha"] = picture(lambda x, y: fifteen(x, y) | (x + y) % 2 << 15, 0x7C00, 0x3E0, 0x1F, 0x8000)
for name in ("32-bit-version-3", "32-bit-alpha-masks"):
    drawn[name] = picture(with_alpha, 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
for name, entries in {"8-bit-os2-2-short": 256, "lie-colours-huge": 256}.items():
    colours = palette(256)
    drawn[name] = b"".join(
        bytes([colours[4 * i + 2], colours[4 * i + 1], colours[4 * i], 255])
        for y in range(HEIGHT) for x in range(WIDTH) for i in [index(entries)(x, y)])
few = palette(4) + b"\0" * 4 * 252
drawn["index-beyond-palette"] = b"".join(
    bytes([few[4 * i + 2], few[4 * i + 1], few[4 * i], 255])
    for y in range(HEIGHT) for x in range(WIDTH) for i in [index(256)(x, y)])
cells = [[0] * WIDTH for _ in range(HEIGHT)]
cells[0][0:3], cells[2][7:9], cells[8][0:13] = [5] * 3, [9] * 2, [7] * 13
drawn["8-bit-steps"] = b"".join(
    bytes([palette(256)[4 * i + 2], palette(256)[4 * i + 1], palette(256)[4 * i], 255])
    for row in reversed(cells) for i in row)
first, seventh = (bytes([palette(256)[4 * i + c] for c in (2, 1, 0)]) + b"\xFF" for i in (0, 7))
drawn["8-bit-runs-end-early"] = first * WIDTH * (HEIGHT - 1) + seventh * WIDTH


# Runs.
def runs8(value, ends=True):
    out = b""
    for y in reversed(range(HEIGHT)):
        x = 0
        while x < WIDTH:
            count = 1
            while x + count < WIDTH and value(x + count, y) == value(x, y):
                count += 1
            out += bytes([count, value(x, y)])
            x += count
        out += b"\0\0" if y or ends else b""
    return out + (b"\0\1" if ends else b"")


def coarse(x, y):
    return (x // 4 + y * 2) % 16


made["8-bit-runs"] = file(header(8, method=1), palette(256), runs8(coarse))
made["8-bit-runs-no-end"] = file(header(8, method=1), palette(256), runs8(coarse, False))
four = b""
for y in reversed(range(HEIGHT)):
    four += bytes([7, coarse(1, y) << 4 | coarse(9, y)]) + bytes([0, 6, 0x12, 0x34, 0x56, 0]) + b"\0\0"
made["4-bit-runs"] = file(header(4, method=2), palette(16), four + b"\0\1")
absolute = b"".join(
    bytes([0, WIDTH]) + bytes(coarse(x, y) for x in range(WIDTH)) + b"\0" + b"\0\0" for y in reversed(range(HEIGHT)))
made["8-bit-pixels-one-by-one"] = file(header(8, method=1), palette(256), absolute + b"\0\1")
steps = bytes([3, 5, 0, 2, 4, 2, 2, 9, 0, 0]) + b"\0\0" * 5 + bytes([13, 7]) + b"\0\1"
made["8-bit-steps"] = file(header(8, method=1), palette(256), steps)
made["8-bit-runs-end-early"] = file(header(8, method=1), palette(256), bytes([13, 7, 0, 0, 0, 1]))
made["8-bit-run-too-long"] = file(header(8, method=1), palette(256), bytes([14, 7, 0, 0]) + runs8(coarse)[4:])
made["8-bit-runs-cut"] = file(header(8, method=1), palette(256), runs8(coarse)[:30])
made["8-bit-pixels-cut"] = file(header(8, method=1), palette(256), bytes([0, 13, 1, 2, 3]))
made["8-bit-step-beyond"] = file(header(8, method=1), palette(256), bytes([0, 2, 200, 200, 0, 1]))
made["8-bit-too-many-rows"] = file(header(8, method=1), palette(256), b"\0\0" * (HEIGHT + 2) + b"\0\1")
made["8-bit-runs-from-the-top"] = file(header(8, method=1, height=-HEIGHT), palette(256), runs8(coarse))

# Lies and damage.
eight = rows_of(8, index(256))
made["lie-file-length-zero"] = file(header(24), b"", rows_of(24, whole), length=0)
made["lie-file-length-huge"] = file(header(24), b"", rows_of(24, whole), length=0xFFFFFFFF)
made["lie-pixel-length"] = file(header(24, length=5), b"", rows_of(24, whole))
made["lie-offset-zero"] = file(header(8), palette(256), eight, offset=0)
made["lie-offset-of-palette"] = file(header(8), palette(256), eight, offset=54)
made["lie-colours-huge"] = file(header(8, colours=0xFFFFFFFF), palette(256), eight)
made["lie-planes"] = bytes(made["24-bit"][:26]) + b"\x09\x00" + made["24-bit"][28:]
made["index-beyond-palette"] = file(header(8, colours=4), palette(4), rows_of(8, index(256)))
made["gap-before-pixels"] = file(header(24), b"", b"\xEE" * 10 + rows_of(24, whole), offset=64)
made["last-row-not-filled-up"] = file(header(24), b"", rows_of(24, whole)[:-1])
made["cut"] = file(header(24), b"", rows_of(24, whole)[:-9])
made["cut-in-palette"] = file(header(8), palette(100), b"", offset=54 + 1024)
made["cut-in-header"] = file(header(24), b"", b"")[:40]
made["offset-beyond-end"] = file(header(24), b"", rows_of(24, whole), offset=0x7FFFFFFF)
made["no-width"] = file(header(24, width=0), b"", rows_of(24, whole))
made["negative-width"] = file(header(24, width=-WIDTH), b"", rows_of(24, whole))
made["no-height"] = file(header(24, height=0), b"", rows_of(24, whole))
made["lowest-height"] = file(header(24, height=-(1 << 31)), b"", rows_of(24, whole))
made["bomb"] = file(header(32, width=0x7FFFFFFF, height=0x7FFFFFFF), b"", b"\0" * 64)
made["declares-9000-by-9000"] = file(header(1, width=9000, height=9000), palette(2), b"\0" * 64)
made["2-bit"] = file(header(2), palette(4), rows_of(2, index(4)))
made["64-bit"] = file(header(64), b"", rows_of(64, lambda x, y: 0))
made["0-bit-jpeg"] = file(header(0, method=4), b"", b"\xFF\xD8\xFF")
made["0-bit-png"] = file(header(0, method=5), b"", b"\x89PNG")
made["method-unknown"] = file(header(24, method=9), b"", rows_of(24, whole))
made["os2-huffman"] = file(header(1, 64, 3), palette(2), rows_of(1, index(2)))
made["os2-24-bit-runs"] = file(header(24, 64, 4), b"", rows_of(24, whole))
made["runs-of-24-bit"] = file(header(24, method=1), b"", rows_of(24, whole))
made["masks-of-8-bit"] = file(header(8, method=3), masks(7, 56, 192) + palette(256), eight)
made["masks-with-gap"] = file(header(32, method=3), masks(0xFF00FF00, 0xFF, 0xFF0000), rows_of(32, whole))
made["masks-empty"] = file(header(32, method=3), masks(0, 0, 0), rows_of(32, with_alpha))


def digest(rgba):
    return hashlib.sha256(rgba).hexdigest()[:32] if rgba else ""


def verdict(data):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as image:
                image.load()
                rgba = image.convert("RGBA").tobytes()
                return "ok", image.width, image.height, digest(rgba)
    except Exception:
        return "error", 0, 0, ""


if __name__ == "__main__":
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    lines = ["name\tpillow\twidth\theight\trgba8_sha256\tdrawn_sha256"]
    for name, data in sorted(made.items()):
        (FOLDER / f"{name}.bmp").write_bytes(data)
        lines.append("\t".join(str(field) for field in (name, *verdict(data), digest(drawn.get(name)))))
    (FOLDER / "EXPECT.tsv").write_text("\n".join(lines) + "\n")

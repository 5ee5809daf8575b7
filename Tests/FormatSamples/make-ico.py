#!/usr/bin/python3
"""Makes the icons of ico/, byte by byte, and ico/EXPECT.tsv.

Usage: python3 make-ico.py. The second decoder is icotool, which extracts the largest picture. The files are committed.
"""

import io
import struct
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from common import by_pillow, picture, write

made, drawn = {}, {}


def png(image, **options):
    out = io.BytesIO()
    image.save(out, "PNG", **options)
    return out.getvalue()


def mask_rows(width, height, is_clear):
    out = b""
    for y in reversed(range(height)):
        bits = "".join("1" if is_clear(x, y) else "0" for x in range(width))
        bits += "0" * (-len(bits) % 32)
        out += int(bits, 2).to_bytes(len(bits) // 8, "big")
    return out


def dib(image, bits, is_clear=None, mask=True, alpha=True, method=0, size=40):
    width, height = image.size
    head = struct.pack("<IiiHHIIiiII", size, width, height * 2, 1, bits, method, 0, 0, 0, 0, 0)
    rows, palette = b"", b""
    if bits <= 8:
        indexed = image.convert("RGB").quantize(1 << bits)
        colours = indexed.getpalette()[:3 << bits]
        colours += [0] * ((3 << bits) - len(colours))
        palette = b"".join(bytes(reversed(colours[3 * i:3 * i + 3])) + b"\0" for i in range(1 << bits))
        image = indexed
    for y in reversed(range(height)):
        row, text = b"", ""
        for x in range(width):
            pixel = image.getpixel((x, y))
            if bits <= 8:
                text += format(pixel, f"0{bits}b")
            elif bits == 24:
                row += bytes(reversed(pixel[:3]))
            else:
                row += bytes(reversed(pixel[:3])) + bytes((pixel[3] if alpha else 0,))
        if text:
            text += "0" * (-len(text) % 8)
            row = int(text, 2).to_bytes(len(text) // 8, "big")
        rows += row + b"\0" * (-len(row) % 4)
    return head + palette + rows + (mask_rows(width, height, is_clear or (lambda x, y: False)) if mask else b"")


def icon(*pictures, kind=1, count=None, gap=b""):
    count = len(pictures) if count is None else count
    out, body = struct.pack("<HHH", 0, kind, count), b""
    start = 6 + 16 * len(pictures) + len(gap)
    for (width, height), data in pictures:
        bits = 32 if data.startswith(b"\x89PNG") else struct.unpack_from("<H", data, 14)[0]
        out += struct.pack("<BBBBHHII", width & 255, height & 255, 0, 0, 1, bits, len(data), start + len(body))
        body += data
    return out + gap + body


def corner(x, y):
    return x < 5 and y < 6


def shown(image, is_clear):
    result = image.convert("RGBA")
    for y in range(image.size[1]):
        for x in range(image.size[0]):
            if is_clear(x, y):
                result.putpixel((x, y), result.getpixel((x, y))[:3] + (0,))
    return result


small, clear = picture(16, 12), picture(16, 12, alpha=True)
large = picture(40, 30, alpha=True)
made["png"] = icon(((40, 30), png(large)))
made["png-palette"] = icon(((16, 12), png(small.quantize(16))))
made["png-grey"] = icon(((16, 12), png(small.convert("L"))))
made["png-interlaced"] = icon(((16, 12), png(small, compress_level=1)))
made["png-and-bitmaps"] = icon(((16, 12), dib(small, 8)), ((40, 30), png(large)), ((16, 12), dib(clear, 32)))
made["png-of-256"] = icon(((0, 0), png(picture(256, 256))))
made["png-of-another-size"] = icon(((16, 16), png(large)))
made["32-bit"] = icon(((16, 12), dib(clear, 32)))
made["32-bit-no-mask"] = icon(((16, 12), dib(clear, 32, mask=False)))
made["32-bit-no-alpha"] = icon(((16, 12), dib(clear, 32, corner, alpha=False)))
drawn["32-bit-no-alpha"] = shown(small, corner)
made["24-bit"] = icon(((16, 12), dib(small, 24)))
made["24-bit-mask"] = icon(((16, 12), dib(small, 24, corner)))
made["24-bit-odd-width"] = icon(((21, 15), dib(picture(21, 15), 24, corner)))
# Pillow and icotool read rows that are filled up in two other ways.
drawn["24-bit-odd-width"] = shown(picture(21, 15), corner)
made["8-bit"] = icon(((16, 12), dib(small, 8, corner)))
made["4-bit"] = icon(((16, 12), dib(small, 4, corner)))
made["1-bit"] = icon(((16, 12), dib(small, 1, corner)))
made["cursor"] = icon(((16, 12), dib(small, 8, corner)), kind=2)
# Pillow leaves the mask out.
drawn["cursor"] = shown(small, corner)
made["several"] = icon(((8, 6), dib(picture(8, 6), 24)), ((21, 15), dib(picture(21, 15), 24)), ((16, 12), dib(small, 4)))
made["gap-before-pictures"] = icon(((16, 12), dib(small, 8)), gap=b"twelve bytes")
made["trailing-bytes"] = icon(((16, 12), dib(small, 8))) + b"and more of them"

# Damage.
good = icon(((16, 12), dib(small, 24, corner)))
made["broken-cut"] = good[:300]
made["broken-no-picture"] = icon(((16, 12), b"\0" * 60))
made["broken-mask-cut"] = icon(((16, 12), dib(small, 24, corner)[:-8]))
made["broken-more-announced"] = icon(((16, 12), dib(small, 8)), count=2)
made["broken-beyond-the-end"] = good[:14] + struct.pack("<I", len(good)) + good[18:]
made["broken-png"] = icon(((16, 12), png(small)[:-40] + b"\0" * 40))
made["broken-smaller-picture"] = icon(((40, 30), png(large)), ((16, 12), png(small)[:-40] + b"\0" * 40))
made["broken-width"] = icon(((16, 12), dib(small, 24)[:4] + struct.pack("<i", -16) + dib(small, 24)[8:]))
made["runs"] = icon(((16, 12), dib(small, 8)[:16] + struct.pack("<I", 1) + dib(small, 8)[20:]))

# Bombs.
huge = png(Image.new("L", (1, 1)))
huge = huge[:16] + struct.pack(">II", 60000, 60000) + huge[24:]
made["bomb-png"] = icon(((0, 0), huge))
made["bomb-bitmap"] = icon(((0, 0), dib(small, 24)[:4] + struct.pack("<ii", 1 << 30, 1 << 30) + dib(small, 24)[12:]))
flat = png(Image.new("1", (3000, 3000)))
body = icon(((0, 0), flat))
made["bomb-one-picture-many-times"] = struct.pack("<HHH", 0, 1, 60) + struct.pack(
    "<BBBBHHII", 0, 0, 0, 0, 1, 1, len(flat), 6 + 60 * 16) * 60 + flat


def icotool(data):
    with tempfile.TemporaryDirectory() as folder:
        begin = Path(folder, "in.ico")
        begin.write_bytes(data)
        done = subprocess.run(
            ["icotool", "-x", "-o", folder, str(begin)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        images = []
        for path in sorted(Path(folder).glob("*.png")):
            # A PNG is taken out as it is, damaged or not.
            verdict = by_pillow(path.read_bytes())
            images.append((verdict[1] * verdict[2], verdict))
        if done.returncode != 0 or not images or any(verdict[0] == "error" for _, verdict in images):
            return "error", 0, 0, ""
        return max(images)[1]


write("ico", "ico", made, icotool, drawn)

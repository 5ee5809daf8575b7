#!/usr/bin/python3
"""Makes the WebP files of webp/ with libwebp's tools, some of them changed by hand afterwards, and webp/EXPECT.tsv.

Usage: python3 make-webp.py. The second decoder is dwebp, which refuses animations; for those it is `webpmux -info`,
which reads the container alone. The files are committed.
"""

import struct

from PIL import Image, ImageCms

from common import by_tool, by_verdict, made_by, picture, write

made = {}


def cwebp(image, *options):
    return made_by("cwebp", "-quiet", *options, "{in}", "-o", "{out}", source=image, out=".webp")


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def riff(*chunks, length=None):
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if length is None else length) + body


def chunks_of(data):
    result, offset = [], 12
    while offset + 8 <= len(data):
        size = struct.unpack_from("<I", data, offset + 4)[0]
        result.append((data[offset:offset + 4], data[offset + 8:offset + 8 + size]))
        offset += 8 + size + size % 2
    return result


def vp8x(flags, width, height):
    return chunk(b"VP8X", struct.pack("<I", flags) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def tiff(orientation):
    return b"MM\0*\0\0\0\x08\0\x02" + struct.pack(">HHIHxx", 0x112, 3, 1, orientation) \
        + struct.pack(">HHI4s", 0x10F, 2, 4, b"cam\0") + b"\0\0\0\0"


def frame(data, x, y, width, height, flags=0):
    inner = b"".join(chunk(name, body) for name, body in chunks_of(data) if name in (b"VP8 ", b"VP8L", b"ALPH"))
    head = b"".join(value.to_bytes(3, "little") for value in (x // 2, y // 2, width - 1, height - 1, 100))
    return chunk(b"ANMF", head + bytes([flags]) + inner)


ANIM = chunk(b"ANIM", struct.pack("<IH", 0xFFFFFFFF, 0))
image, clear = picture(), picture(alpha=True)
lossy, lossless = cwebp(image, "-q", "70"), cwebp(image, "-lossless", "-exact")
alpha, clear_lossless = cwebp(clear, "-q", "70"), cwebp(clear, "-lossless", "-exact")
made["lossy"], made["lossless"] = lossy, lossless
made["lossy-alpha"], made["lossless-alpha"] = alpha, clear_lossless
made["lossy-alpha-raw"] = cwebp(clear, "-q", "70", "-alpha_method", "0")
made["lossy-four-partitions"] = cwebp(picture(160, 120), "-q", "60", "-partition_limit", "0", "-segments", "4", "-m", "6")
made["lossless-palette"] = cwebp(image.quantize(12).convert("RGB"), "-lossless", "-exact")
made["lossless-large"] = cwebp(picture(300, 220), "-lossless", "-exact", "-m", "6")
made["one-pixel"] = cwebp(Image.new("RGB", (1, 1), (9, 200, 30)), "-lossless")
made["widest"] = cwebp(Image.new("RGB", (16383, 1), (9, 200, 30)), "-lossless")

(vp8,) = [body for name, body in chunks_of(lossy) if name == b"VP8 "]
(vp8l,) = [body for name, body in chunks_of(lossless) if name == b"VP8L"]
srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
# The red colorant is moved: another space.
other = bytearray(srgb)
tag = other.index(b"rXYZ", 128)
other[struct.unpack_from(">I", other, tag + 4)[0] + 8 + 2] ^= 0x40
xmp = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"
picture_chunk = chunk(b"VP8 ", vp8)
made["metadata"] = riff(
    vp8x(0x2C, 21, 15), chunk(b"ICCP", bytes(other)), picture_chunk, chunk(b"EXIF", tiff(1)),
    chunk(b"XMP ", xmp), chunk(b"note", b"of nobody"))
made["profile-of-srgb"] = riff(vp8x(0x20, 21, 15), chunk(b"ICCP", srgb), picture_chunk)
made["profile-cut"] = riff(vp8x(0x20, 21, 15), chunk(b"ICCP", bytes(other)[:200]), picture_chunk)
for orientation in range(2, 9):
    made[f"orientation-{orientation}"] = riff(
        vp8x(0x08, 21, 15), chunk(b"VP8L", vp8l), chunk(b"EXIF", b"Exif\0\0" * (orientation % 2) + tiff(orientation)))
made["trailing-bytes"] = lossy + b"and more of them"
made["odd-chunk-not-filled-up"] = riff(vp8x(0x04, 21, 15), picture_chunk, chunk(b"XMP ", b"odd")[:-1])
made["unknown-chunk-in-front"] = riff(vp8x(0, 21, 15), chunk(b"abcd", b"12345"), picture_chunk)

second, third = cwebp(picture(10, 8, alpha=True), "-lossless", "-exact"), cwebp(picture(12, 9), "-q", "50")
made["animation"] = riff(
    vp8x(0x12, 21, 15), ANIM, frame(lossless, 0, 0, 21, 15), frame(second, 4, 2, 10, 8), frame(third, 8, 6, 12, 9))
made["animation-first-frame-small"] = riff(
    vp8x(0x12, 21, 15), ANIM, frame(second, 4, 2, 10, 8), frame(lossless, 0, 0, 21, 15))
made["animation-of-one-frame"] = riff(vp8x(0x02, 21, 15), ANIM, frame(lossless, 0, 0, 21, 15))
made["animation-with-metadata"] = riff(
    vp8x(0x3E, 21, 15), chunk(b"ICCP", bytes(other)), ANIM, frame(alpha, 0, 0, 21, 15), frame(second, 4, 2, 10, 8),
    chunk(b"EXIF", tiff(1)), chunk(b"XMP ", xmp))
made["animation-by-img2webp"] = made_by(
    "img2webp", "-lossless", "{in}", "-d", "80", "-lossy", "{in}", "-o", "{out}", source=image, out=".webp")

# Damage.
made["broken-no-picture"] = riff(vp8x(0, 21, 15), chunk(b"XMP ", xmp))
made["broken-canvas-of-another-size"] = riff(vp8x(0, 22, 15), picture_chunk)
made["broken-length-beyond-the-end"] = lossy[:4] + struct.pack("<I", len(lossy) + 40) + lossy[8:]
made["broken-animation-without-frames"] = riff(vp8x(0x02, 21, 15), ANIM)
made["broken-animation-without-description"] = riff(vp8x(0x02, 21, 15), frame(lossless, 0, 0, 21, 15))
made["broken-frame-beyond-canvas"] = riff(
    vp8x(0x02, 21, 15), ANIM, frame(lossless, 0, 0, 21, 15), frame(third, 14, 6, 12, 9))
made["broken-frame-of-another-size"] = riff(
    vp8x(0x02, 21, 15), ANIM, frame(lossless, 0, 0, 21, 15), frame(third, 0, 0, 11, 9))
damaged = bytearray(made["animation"])
at = bytes(damaged).rindex(b"VP8 ")
made["broken-last-frame"] = bytes(damaged[:at + 8]) + b"\0" * 10 + bytes(damaged[at + 18:])
made["broken-lossless-transform-twice"] = lossless[:25] + bytes([lossless[25] | 0x0F]) + lossless[26:]
made["broken-cut"] = lossy[:len(lossy) // 2]
made["broken-lossy-signature"] = lossy[:23] + b"\0" + lossy[24:]

# Bombs: sides that say much, and bytes that say little.
made["bomb-canvas"] = riff(vp8x(0x02, 1 << 24, 255), ANIM, frame(lossless, 0, 0, 21, 15))
made["large-flat"] = cwebp(Image.new("RGB", (6000, 5000), (1, 2, 3)), "-lossless")
flat = cwebp(Image.new("RGB", (2000, 2000), (1, 2, 3)), "-lossless")
made["bomb-frames"] = riff(vp8x(0x02, 2000, 2000), ANIM, *[frame(flat, 0, 0, 2000, 2000)] * 90)


def other_decoder(data):
    if data[12:16] == b"VP8X" and data[20] & 2:
        return by_verdict("webpmux", "-info", "{in}", data=data, suffix=".webp")
    return by_tool("dwebp", "{in}", "-o", "{out}", data=data, suffix=".webp")


write("webp", "webp", made, other_decoder)

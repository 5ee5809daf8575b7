#!/usr/bin/python3
"""Makes the AVIF files of avif/ with avifenc, some of them changed by hand afterwards, and avif/EXPECT.tsv.

Usage: python3 make-avif.py. The decoders are avifdec (in the columns of Pillow, which in Debian 12 does not read AVIF) and
libheif's heif-convert, for verdict and size alone: it converts colours in its own way, and turns the picture. The files
are committed.
"""

import struct
import subprocess
import tempfile
from pathlib import Path

from PIL import Image, ImageCms

import common
from common import by_tool, made_by, picture, write

made = {}


def avifenc(image, *options):
    return made_by("avifenc", "--speed", "8", "--jobs", "1", *options, "{in}", "{out}", source=image, out=".avif")


def boxes(data, start=0, end=None):
    end = len(data) if end is None else end
    while start + 8 <= end:
        size = struct.unpack_from(">I", data, start)[0] or end - start
        yield data[start + 4:start + 8], start, start + size
        start += size


image, clear = picture(32, 24), picture(32, 24, alpha=True)
made["lossy"] = avifenc(image, "--min", "20", "--max", "30")
made["lossless"] = avifenc(image, "--lossless")
made["444"] = avifenc(image, "--yuv", "444", "--min", "10", "--max", "20")
made["422"] = avifenc(image, "--yuv", "422", "--min", "10", "--max", "20")
made["grey"] = avifenc(image.convert("L"), "--yuv", "400", "--min", "10", "--max", "20")
made["limited-range"] = avifenc(image, "--range", "limited", "--min", "10", "--max", "20")
made["alpha"] = avifenc(clear, "--min", "10", "--max", "20")
made["alpha-premultiplied"] = avifenc(clear, "--premultiply", "--min", "10", "--max", "20")
made["10-bit"] = avifenc(image, "--depth", "10", "--min", "10", "--max", "20")
made["12-bit-alpha"] = avifenc(clear, "--depth", "12", "--yuv", "444", "--min", "10", "--max", "20")
made["odd-size"] = avifenc(picture(21, 15), "--min", "10", "--max", "20")
made["one-pixel"] = avifenc(Image.new("RGB", (1, 1), (9, 200, 30)))
made["grid"] = made_by(
    "avifenc", "--speed", "8", "--jobs", "1", "--grid", "2x2", "{in}", "{in}", "{in}", "{in}", "{out}",
    source=picture(64, 64), out=".avif")
for angle in range(4):
    for mirror in (None, 0, 1):
        if angle or mirror is not None:
            options = ["--irot", str(angle)] if angle else []
            options += ["--imir", str(mirror)] if mirror is not None else []
            made[f"turned-{angle}-{'no' if mirror is None else mirror}"] = avifenc(
                picture(21, 15), *options, "--lossless")
made["aperture"] = avifenc(image, "--yuv", "444", "--crop", "4,2,20,16", "--min", "10", "--max", "20")
srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
other = bytearray(srgb)
tag = other.index(b"rXYZ", 128)
other[struct.unpack_from(">I", other, tag + 4)[0] + 8 + 2] ^= 0x40
exif = b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHI4s", 0x10F, 2, 4, b"cam\0") + b"\0\0\0\0"
xmp = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"
with tempfile.TemporaryDirectory() as folder:
    for name, data in (("icc", bytes(other)), ("exif", exif), ("xmp", xmp)):
        Path(folder, name).write_bytes(data)
    made["metadata"] = avifenc(
        image, "--icc", folder + "/icc", "--exif", folder + "/exif", "--xmp", folder + "/xmp")
made["sequence"] = made_by(
    "avifenc", "--speed", "8", "--jobs", "1", "{in}", "{in}", "{in}", "{out}", source=image, out=".avif")
made["trailing-bytes"] = made["lossy"] + struct.pack(">I4s", 20, b"free") + b"bytes of one"

# Damage.
lossy = made["lossy"]
(mdat,) = [start for name, start, _ in boxes(lossy) if name == b"mdat"]
made["broken-cut"] = lossy[:-40]
made["broken-data"] = lossy[:mdat + 8] + b"\xff" * 12 + lossy[mdat + 20:]
made["broken-no-properties"] = lossy.replace(b"iprp", b"free")
made["broken-no-primary-item"] = lossy.replace(b"pitm", b"free")
made["size-of-another-picture"] = lossy.replace(
    struct.pack(">4sIII", b"ispe", 0, 32, 24), struct.pack(">4sIII", b"ispe", 0, 48, 24))
made["size-of-another-picture-alpha"] = made["alpha"].replace(
    struct.pack(">4sIII", b"ispe", 0, 32, 24), struct.pack(">4sIII", b"ispe", 0, 32, 16))
made["broken-no-metadata-box"] = lossy.replace(b"meta", b"free", 1)
made["broken-last-frame"] = made["sequence"][:-30] + b"\xff" * 30

# Bombs, by what they say of themselves.
made["bomb-size"] = lossy.replace(
    struct.pack(">4sIII", b"ispe", 0, 32, 24), struct.pack(">4sIII", b"ispe", 0, 60000, 60000))
made["bomb-16384"] = lossy.replace(
    struct.pack(">4sIII", b"ispe", 0, 32, 24), struct.pack(">4sIII", b"ispe", 0, 16384, 16384))


# In the columns of the other decoder; what is turned has other sides there.
def heif_convert(data):
    verdict = by_tool("heif-convert", "{in}", "{out}", data=data, suffix=".avif")
    return verdict[0], 0, 0, ""


def avifdec(data):
    return by_tool("avifdec", "--jobs", "1", "--index", "0", "{in}", "{out}", data=data, suffix=".avif")


# avifdec leaves the aperture to others.
with tempfile.TemporaryDirectory() as folder:
    begin, end = Path(folder, "in.avif"), Path(folder, "out.png")
    begin.write_bytes(made["aperture"])
    subprocess.run(["avifdec", str(begin), str(end)], check=True, capture_output=True)
    drawn = {"aperture": Image.open(end).crop((4, 2, 24, 18))}
common.by_pillow = avifdec
write("avif", "avif", made, heif_convert, drawn)

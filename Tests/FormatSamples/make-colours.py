#!/usr/bin/python3
"""Makes the pictures with profiles of colours/, and what Little CMS makes of them.

Usage: python3 make-colours.py. `NAME` has the profile; `NAME.srgb.png` is the picture in sRGB, by the
perceptual intent, as Pillow's ImageCms converts it. The profiles are made here, so they are free. The files are
committed.
"""

import io
import struct
import warnings
from pathlib import Path

from PIL import Image, ImageCms

from common import FOLDER, picture

warnings.simplefilter("ignore")
SRGB = ImageCms.createProfile("sRGB")
OUT = FOLDER / "colours"

P3 = [(0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407)]
ADOBE = [(0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457)]


def fixed(value):
    return struct.pack(">i", round(value * 65536))


def xyz(values):
    return b"XYZ \0\0\0\0" + b"".join(map(fixed, values))


def power(exponent):
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(exponent * 256)) + b"\0\0"


def profile(space, tags, connection=b"XYZ ", device=b"mntr"):
    tags = [(b"wtpt", xyz((0.9642, 1, 0.8249)))] + tags
    table, data = struct.pack(">I", len(tags)), b""
    for name, body in tags:
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(data), len(body))
        data += body + b"\0" * (-len(body) % 4)
    header = bytearray(128)
    header[0:4] = struct.pack(">I", 128 + len(table) + len(data))
    header[8:12] = b"\x02\x10\0\0"
    header[12:24] = device + space + connection
    header[36:40] = b"acsp"
    header[68:80] = fixed(0.9642) + fixed(1) + fixed(0.8249)
    return bytes(header) + table + data


def matrix(colorants, exponent):
    names = (b"r", b"g", b"b")
    return profile(
        b"RGB ", [(n + b"XYZ", xyz(c)) for n, c in zip(names, colorants)] + [(n + b"TRC", power(exponent)) for n in names])


def table(inputs, grid, lab):
    """A table of 16 bits (`mft2`) from device to Lab, without curves; `lab` maps values from 0 to 1."""
    body = b"mft2\0\0\0\0" + bytes([inputs, 3, grid, 0]) + b"".join(fixed(x) for x in (1, 0, 0, 0, 1, 0, 0, 0, 1))
    body += struct.pack(">HH", 2, 2) + struct.pack(">HH", 0, 65535) * inputs
    for index in range(grid ** inputs):
        place = [index // grid ** (inputs - 1 - n) % grid / (grid - 1) for n in range(inputs)]
        light, a, b = lab(*place)
        body += struct.pack(">HHH", round(light * 652.8), round((a + 128) * 256), round((b + 128) * 256))
    return body + struct.pack(">HH", 0, 65535) * 3


def ink_lab(cyan, magenta, yellow, black):
    rest = 1 - black
    light = rest * (100 - 35 * cyan - 45 * magenta - 8 * yellow) + 12 * black
    return max(light, 0), rest * (-30 * cyan + 70 * magenta - 5 * yellow), rest * (-45 * cyan - 5 * magenta + 85 * yellow)


def colour_lab(red, green, blue):
    return 100 * (0.3 * red + 0.6 * green + 0.1 * blue), 70 * (red - green), 60 * (green - blue)


PROFILES = {
    "p3": matrix(P3, 2.2),
    "adobe": matrix(ADOBE, 563 / 256),
    "grey": profile(b"GRAY", [(b"kTRC", power(1.0))]),
    "grey-18": profile(b"GRAY", [(b"kTRC", power(1.8))]),
    "inks": profile(b"CMYK", [(b"A2B0", table(4, 5, ink_lab))], b"Lab ", b"prtr"),
    "table": profile(b"RGB ", [(b"A2B0", table(3, 6, colour_lab))], b"Lab ", b"scnr"),
}


def inks():
    image = Image.new("CMYK", (24, 18))
    for y in range(18):
        for x in range(24):
            image.putpixel((x, y), (x * 11, y * 15, (x + y) * 6, (x * y) % 7 * 30))
    return image


def write(name, image, icc, **options):
    path = OUT / name
    image.save(path, icc_profile=PROFILES[icc], **options)
    read = Image.open(path)
    read.load()
    alpha = read.getchannel("A") if read.mode in ("RGBA", "LA") else None
    plain = read.convert("RGB") if read.mode in ("RGBA", "P") else read.convert("L") if read.mode == "LA" else read
    made = ImageCms.profileToProfile(
        plain, ImageCms.ImageCmsProfile(io.BytesIO(PROFILES[icc])), SRGB, renderingIntent=0, outputMode="RGB")
    if alpha is not None:
        made.putalpha(alpha)
    made.save(OUT / (name + ".srgb.png"))


OUT.mkdir(exist_ok=True)
write("inks.jpg", inks(), "inks", quality=95)
write("p3.jpg", picture(24, 18), "p3", quality=95)
write("p3.png", picture(24, 18), "p3")
write("p3-alpha.png", picture(24, 18, alpha=True), "p3")
write("p3-palette.png", picture(24, 18).quantize(32), "p3")
write("adobe.png", picture(24, 18), "adobe")
write("table.png", picture(24, 18), "table")
write("grey.png", picture(24, 18).convert("L"), "grey")
write("grey-alpha.png", picture(24, 18, alpha=True).convert("LA"), "grey-18")
write("grey.jpg", picture(24, 18).convert("L"), "grey-18", quality=95)

#!/usr/bin/python3
"""Makes the GIF files of gif/, byte by byte or with Pillow, and gif/EXPECT.tsv.

Usage: python3 make-gif.py. The second decoder is giftext, which reads all codes and says whether the file is good. The
files are committed. Pillow lays the first frame over the background's colour, browsers and this program over nothing.
"""

import io
import struct

from PIL import Image

from common import by_verdict, picture, write

made = {}
WIDTH, HEIGHT = 21, 15


def header(width=WIDTH, height=HEIGHT, bits=3, colours=None, version=b"GIF89a", background=0):
    colours = colours if colours is not None else b"".join(
        bytes((index * 37 & 255, 255 - index * 31 & 255, index * 91 + 5 & 255)) for index in range(1 << bits))
    flags = 0x80 | bits - 1 | 0x70 if colours else 0x70
    return version + struct.pack("<HHBBB", width, height, flags, background, 0) + colours


def parts(data, size=255):
    out = b""
    for start in range(0, len(data), size):
        piece = data[start:start + size]
        out += bytes([len(piece)]) + piece
    return out + b"\0"


def codes(indices, bits):
    """LZW: variable codes of up to 12 bits, from the low bits on."""
    clear, end = 1 << bits, (1 << bits) + 1
    width, out, number, count = bits + 1, bytearray(), 0, 0

    def put(code):
        nonlocal number, count
        number |= code << count
        count += width
        while count >= 8:
            out.append(number & 255)
            number >>= 8
            count -= 8

    put(clear)
    # By the code of all but the last index, and that one.
    table, free, word = {}, end + 1, None
    for index in indices:
        if word is None:
            word = index
        elif (word, index) in table:
            word = table[word, index]
        else:
            put(word)
            if free < 4096:
                table[word, index] = free
                free += 1
                if free > 1 << width and width < 12:
                    width += 1
            else:
                put(clear)
                table, free, width = {}, end + 1, bits + 1
            word = index
    put(word)
    put(end)
    if count:
        out.append(number & 255)
    return bytes(out)


def frame(x=0, y=0, width=WIDTH, height=HEIGHT, bits=3, value=None, interlaced=False, palette=b"", data=None, size=255):
    value = value or (lambda px, py: (px * 3 + py * 5) % (1 << bits))
    order = range(height)
    if interlaced:
        order = [*range(0, height, 8), *range(4, height, 8), *range(2, height, 4), *range(1, height, 2)]
    indices = [] if data is not None else [value(px, py) for py in order for px in range(width)]
    flags = (0x40 if interlaced else 0) | (0x80 | bits - 1 if palette else 0)
    packed = codes(indices, max(bits, 2)) if data is None else data
    return b"," + struct.pack("<HHHHB", x, y, width, height, flags) + palette + bytes([max(bits, 2)]) + parts(packed, size)


def control(transparent=None, delay=10, disposal=0):
    return b"!\xf9\x04" + struct.pack(
        "<BHBB", disposal << 2 | (transparent is not None), delay, transparent or 0, 0)


def application(name, *blocks):
    return b"!\xff\x0b" + name + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


LOOP = application(b"NETSCAPE2.0", b"\x01\0\0")
COMMENT = b"!\xfe" + parts(b"made by hand, and longer than what is needed " * 8)
TEXT = b"!\x01" + bytes([12]) + struct.pack("<HHHHBBBB", 0, 0, 8, 8, 8, 8, 1, 0) + parts(b"text")
XMP = b"!\xff\x0bXMP DataXMP<x:xmpmeta/>\x01" + bytes(range(255, -1, -1)) + b"\0"
END = b";"

made["plain"] = header() + frame() + END
made["version-87"] = header(version=b"GIF87a") + frame() + END
made["interlaced"] = header() + frame(interlaced=True) + END
made["interlaced-of-one-row"] = header(height=1) + frame(height=1, interlaced=True) + END
made["interlaced-of-three-rows"] = header(height=3) + frame(height=3, interlaced=True) + END
made["1-bit"] = header(bits=1) + frame(bits=1) + END
made["8-bit"] = header(bits=8) + frame(bits=8, value=lambda x, y: x * 12 + y & 255) + END
made["own-palette"] = header(colours=b"") + frame(bits=2, palette=bytes(range(0, 240, 20))) + END
made["two-palettes"] = header() + frame(bits=2, palette=bytes(range(0, 240, 20))) + END
made["transparent"] = header() + control(transparent=2) + frame() + END
made["transparent-index-unused"] = header() + control(transparent=7) + frame(value=lambda x, y: (x + y) % 5) + END
made["large-tables"] = header(200, 160, bits=8) + frame(
    width=200, height=160, bits=8, value=lambda x, y: (x * x * 7 + y * y * 13 + x * y) >> 2 & 255) + END
made["parts-of-one-byte"] = header() + frame(size=1) + END
made["comments"] = header() + COMMENT + frame() + COMMENT + END
made["text"] = header() + control() + TEXT + control(transparent=1) + frame() + END
made["xmp"] = header() + XMP + frame() + END
made["trailing-bytes"] = header() + frame() + END + b"and more of them"
made["by-pillow"] = (lambda out: (picture().quantize(16).save(out, "GIF"), out.getvalue())[1])(io.BytesIO())
made["first-frame-small"] = header() + frame(4, 3, 10, 8) + END
made["first-frame-small-transparent"] = header(background=3) + control(transparent=1) + frame(4, 3, 10, 8) + END
made["first-frame-larger-than-screen"] = header(10, 10) + frame() + END
made["screen-of-nothing"] = header(0, 0) + frame() + END
made["palette-missing"] = header(colours=b"") + frame() + END
made["index-beyond-palette"] = header(bits=2) + frame(bits=3) + END
made["animation"] = header() + LOOP + control() + frame() + control(transparent=1, disposal=2) + frame(4, 3, 10, 8) + END
made["animation-comments"] = header() + COMMENT + LOOP + XMP + control() + frame() + COMMENT + control() + frame() + END
made["animation-beyond-screen"] = header() + LOOP + control() + frame() + control() + frame(18, 3, 10, 8) + END
made["animation-interlaced"] = header() + LOOP + control() + frame(interlaced=True) + control() + frame(interlaced=True) + END

# Damage.
made["broken-no-end"] = header() + frame()
made["broken-no-frame"] = header() + COMMENT + END
made["broken-second-frame"] = header() + frame() + frame(data=codes([1, 2, 3], 3)) + END
made["broken-too-few-codes"] = header() + frame(data=codes([0] * 200, 3)) + END
made["broken-code-beyond-table"] = header() + frame(data=b"\xf8\xff\xff\xff") + END
made["broken-no-codes"] = header() + frame(data=b"") + END
made["broken-first-code-of-13-bits"] = header() + frame()[:10] + b"\x0d" + frame()[11:] + END
made["broken-unknown-block"] = header() + frame() + b"\x99\x01\x02\0" + END
made["broken-frame-without-pixels"] = header() + frame() + frame(width=0, height=0, data=codes([1], 3)) + END
made["broken-cut"] = (header() + frame())[:90]
made["too-many-codes"] = header() + frame(data=codes([1] * (WIDTH * HEIGHT + 40), 3)) + END

# Bombs, by what they say of themselves.
made["bomb-screen"] = header(65535, 65535) + frame(width=1, height=1) + END
large = frame(width=4000, height=4000, data=codes([0] * 60000, 3))
made["bomb-frames"] = header(4000, 4000) + large * 80 + END
made["bomb-frame-beyond-screen"] = header(4, 4) + frame(width=4, height=4) + frame(
    width=65535, height=65535, data=codes([0] * 60000, 3)) + END


# What browsers show, and this program: nothing where no frame is, and black beyond the colours.
drawn = {}


def draw(name, colour, x=0, y=0, width=WIDTH, height=HEIGHT, transparent=None):
    image = Image.new("RGBA", (WIDTH, HEIGHT))
    for py in range(height):
        for px in range(width):
            index = (px * 3 + py * 5) % 8
            if index != transparent:
                image.putpixel((x + px, y + py), colour(index) + (255,))
    drawn[name] = image


def usual(index):
    return (index * 37 & 255, 255 - index * 31 & 255, index * 91 + 5 & 255)


draw("first-frame-small", usual, 4, 3, 10, 8)
draw("first-frame-small-transparent", usual, 4, 3, 10, 8, transparent=1)
# Under full transparency Pillow keeps the palette's colour.
draw("transparent", usual, transparent=2)
draw("text", usual, transparent=1)
draw("animation-beyond-screen", usual)
draw("palette-missing", lambda index: (0, 0, 0))
draw("index-beyond-palette", lambda index: usual(index) if index < 4 else (0, 0, 0))
write("gif", "gif", made, lambda data: by_verdict("giftext", "{in}", data=data, suffix=".gif"), drawn)

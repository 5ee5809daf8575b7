"""Prints for every picture named on standard input its ThumbHash in hexadecimal digits and its size in pixels: by
Pillow, upright, reduced to fit 100 by 100 pixels, and by the format's description alone
(https://evanw.github.io/thumbhash/), in doubles, without a line in common with ours."""

import math
import sys

from PIL import Image, ImageOps


def channel(samples, width, height, nx, ny):
    across = [[math.cos(math.pi / width * k * (x + 0.5)) for x in range(width)] for k in range(nx)]
    down = [[math.cos(math.pi / height * k * (y + 0.5)) for y in range(height)] for k in range(ny)]
    lines = [
        [sum(a * b for a, b in zip(samples[y * width:(y + 1) * width], across[k])) for k in range(nx)]
        for y in range(height)]
    terms = []
    for cy in range(ny):
        for cx in range(nx):
            if cx * ny < nx * (ny - cy):
                terms.append(sum(lines[y][cx] * down[cy][y] for y in range(height)) / (width * height))
    mean, rest = terms[0], terms[1:]
    scale = max(map(abs, rest))
    return mean, [0.5 + 0.5 / scale * value if scale else 0 for value in rest], scale


def rounded(value):
    return math.floor(value + 0.5)


def thumbhash(width, height, rgba):
    pixels = [rgba[i:i + 4] for i in range(0, len(rgba), 4)]
    whole = sum(p[3] for p in pixels)
    means = [sum(p[c] * p[3] for p in pixels) / (255 * whole) if whole else 0 for c in range(3)]
    is_opaque = whole == 255 * len(pixels)
    planes = [[], [], [], []]
    for p in pixels:
        alpha = p[3] / 255
        r, g, b = (means[c] * (1 - alpha) + alpha * p[c] / 255 for c in range(3))
        for plane, value in zip(planes, ((r + g + b) / 3, (r + g) / 2 - b, r - g, alpha)):
            plane.append(value)
    most = 7 if is_opaque else 5
    lx, ly = (max(1, rounded(most * side / max(width, height))) for side in (width, height))
    l = channel(planes[0], width, height, max(3, lx), max(3, ly))
    p, q = (channel(planes[c], width, height, 3, 3) for c in (1, 2))
    a = None if is_opaque else channel(planes[3], width, height, 5, 5)
    is_landscape = width > height
    head = (rounded(63 * l[0]) | rounded(31.5 + 31.5 * p[0]) << 6 | rounded(31.5 + 31.5 * q[0]) << 12
            | rounded(31 * l[2]) << 18 | (not is_opaque) << 23)
    tail = (ly if is_landscape else lx) | rounded(63 * p[2]) << 3 | rounded(63 * q[2]) << 9 | is_landscape << 15
    out = bytearray(head.to_bytes(3, "little") + tail.to_bytes(2, "little"))
    nibbles = []
    if a:
        nibbles += [rounded(15 * a[0]), rounded(15 * a[2])]
    start = len(nibbles)
    for part in (l, p, q) + ((a,) if a else ()):
        nibbles += [rounded(15 * value) for value in part[1]]
    nibbles += [0] * (len(nibbles) % 2)
    for low, high in zip(nibbles[::2], nibbles[1::2]):
        out.append(low | high << 4)
    return bytes(out)


def main():
    for line in sys.stdin:
        picture = ImageOps.exif_transpose(Image.open(line.rstrip("\n"))).convert("RGBA")
        size = picture.size
        if max(size) > 100:
            # Premultiplied, so that the colours of what is transparent do not show.
            scale = 100 / max(size)
            small = tuple(max(1, round(side * scale)) for side in size)
            picture = picture.convert("RGBa").resize(small, Image.BOX).convert("RGBA")
        print(thumbhash(*picture.size, picture.tobytes()).hex(), *size, flush=True)


if __name__ == "__main__":
    main()

"""Writes ThumbHashVectors.tsv: what the reference implementation makes of pictures that we do not reduce.

The reference is Evan Wallace's crate `thumbhash` 0.1.0, by its binding for Python: `pip install fast-thumbhash==1.0.0`.

Usage: python3 Tests/CodecsTests/Placeholders/thumbhash-vectors.py > Tests/CodecsTests/Placeholders/ThumbHashVectors.tsv
"""

from fast_thumbhash.fast_thumbhash import rgba_to_thumb_hash

SIZES = [
    (1, 1), (2, 1), (1, 2), (3, 5), (8, 8), (9, 16), (16, 9), (31, 32), (48, 48), (48, 15), (16, 48), (48, 36),
    (36, 48), (48, 1), (1, 48), (47, 48)]


def noise(width, height, seed):
    """A linear congruential generator's upper bytes, a byte a sample."""
    state, out = seed, bytearray()
    for _ in range(4 * width * height):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        out.append(state >> 16 & 255)
    return out


def slope(width, height, seed):
    """Straight slopes, which wrap around."""
    out = bytearray()
    for y in range(height):
        for x in range(width):
            out += bytes((
                (x * 255 // width + 40 * seed) & 255, (y * 255 // height) & 255, (3 * (x + y) + 70 * seed) & 255,
                (5 * x * y + seed) & 255))
    return out


def grey(width, height, seed):
    """A slope without colour."""
    return bytearray(b"".join(
        bytes(((x * 200 // width + y * 50 // height + seed) & 255,)) * 3 + b"\xff"
        for y in range(height) for x in range(width)))


for name, make, alphas in (("noise", noise, (False, True)), ("slope", slope, (False, True)), ("grey", grey, (False,))):
    for width, height in SIZES:
        for has_alpha in alphas:
            for seed in (1, 2):
                pixels = make(width, height, seed)
                if not has_alpha:
                    pixels[3::4] = b"\xff" * (width * height)
                hash = bytes(rgba_to_thumb_hash(width, height, bytes(pixels)))
                print(name, width, height, "alpha" if has_alpha else "opaque", seed, hash.hex(), sep="\t")

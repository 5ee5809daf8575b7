"""Draws the pictures of this folder. Run with Debian's python3-pil: /usr/bin/python3 make.py"""

import os
from PIL import Image

here = os.path.dirname(os.path.abspath(__file__))


def gradient(mode, width, height):
    picture = Image.new("RGB", (width, height))
    for y in range(height):
        for x in range(width):
            picture.putpixel((x, y), (x * 255 // width, y * 255 // height, (x * y) % 256))
    return picture.convert(mode)


def save(name, picture, **options):
    picture.save(os.path.join(here, name), **options)


save("baseline.jpg", gradient("RGB", 16, 12), quality=75, optimize=True)
save("progressive.jpg", gradient("RGB", 16, 12), quality=75, optimize=True, progressive=True)
save("grey.jpg", gradient("L", 16, 12), quality=75, optimize=True)
save("larger.jpg", gradient("RGB", 48, 32), quality=90, optimize=True)
save("still.gif", gradient("P", 8, 8))
save("still.webp", gradient("RGB", 8, 8), lossless=True)
save(
    "animated.png", gradient("RGB", 8, 8), save_all=True, duration=100,
    append_images=[gradient("RGB", 8, 8).rotate(90)])

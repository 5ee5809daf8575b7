"""What make-*.py of this folder have in common: pictures, and the verdicts of other decoders.

EXPECT.tsv of each folder: name, the digest of what was drawn where the others draw something else; then for each of two decoders its verdict (ok, error), width, height and the first 32
hexadecimal digits of the SHA-256 of the RGBA bytes (of an animation the first frame). A decoder that only says whether
the file is good has no digest.
"""

import hashlib
import io
import subprocess
import tempfile
import warnings
from pathlib import Path

from PIL import Image, ImageFile

FOLDER = Path(__file__).resolve().parent
warnings.simplefilter("ignore")
ImageFile.LOAD_TRUNCATED_IMAGES = False
Image.MAX_IMAGE_PIXELS = None


def picture(width=21, height=15, alpha=False):
    """Colours that follow from the place, smooth enough to be compressed."""
    image = Image.new("RGBA" if alpha else "RGB", (width, height))
    for y in range(height):
        for x in range(width):
            colour = (x * 11 + 7 & 255, y * 16 + 3 & 255, (x + y) * 6 + 20 & 255)
            image.putpixel((x, y), colour + ((x * 12 & 255),) if alpha else colour)
    return image


def digest(image):
    return hashlib.sha256(image.convert("RGBA").tobytes()).hexdigest()[:32]


def made_by(*command, source, suffix=".png", out):
    """The output of a tool that reads and writes files; `{in}` and `{out}` stand for them."""
    with tempfile.TemporaryDirectory() as folder:
        begin, end = Path(folder, "in" + suffix), Path(folder, "out" + out)
        if isinstance(source, Image.Image):
            source.save(begin)
        else:
            begin.write_bytes(source)
        command = [part.replace("{in}", str(begin)).replace("{out}", str(end)) for part in command]
        subprocess.run(command, check=True, capture_output=True)
        return end.read_bytes()


def by_pillow(data):
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.size[0] * image.size[1] > 1 << 26:
                return "error", 0, 0, ""
            frames = getattr(image, "n_frames", 1)
            image.load()
            result = digest(image)
            for index in range(1, frames):
                image.seek(index)
                image.load()
            image.seek(0)
            return "ok", image.size[0], image.size[1], result
    except Exception:
        return "error", 0, 0, ""


def by_tool(*command, data, suffix, out=".png"):
    """A decoder that writes a picture that Pillow reads."""
    with tempfile.TemporaryDirectory() as folder:
        begin, end = Path(folder, "in" + suffix), Path(folder, "out" + out)
        begin.write_bytes(data)
        command = [part.replace("{in}", str(begin)).replace("{out}", str(end)) for part in command]
        done = subprocess.run(command, capture_output=True, timeout=120)
        if done.returncode != 0 or not end.exists():
            return "error", 0, 0, ""
        with Image.open(end) as image:
            return "ok", image.size[0], image.size[1], digest(image)


def by_verdict(*command, data, suffix):
    """A tool whose status says whether the file is good."""
    with tempfile.TemporaryDirectory() as folder:
        begin = Path(folder, "in" + suffix)
        begin.write_bytes(data)
        command = [part.replace("{in}", str(begin)) for part in command]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        return ("ok" if done.returncode == 0 else "error"), 0, 0, ""


def write(format, suffix, made, second, drawn={}):
    """Writes the files, and the table of what Pillow and the other decoder say; `second` takes bytes.

    `drawn` has the pictures, by name, of files that this program shows in another way.
    """
    folder = FOLDER / format
    for old in folder.glob("*." + suffix):
        old.unlink()
    lines = ["name\tdrawn\tpillow\twidth\theight\trgba8\tother\twidth\theight\trgba8"]
    for name, data in sorted(made.items()):
        (folder / (name + "." + suffix)).write_bytes(data)
        fields = (name, digest(drawn[name]) if name in drawn else "") + by_pillow(data) + second(data)
        lines.append("\t".join(str(field) for field in fields))
    (folder / "EXPECT.tsv").write_text("\n".join(lines) + "\n")

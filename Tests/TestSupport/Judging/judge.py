"""Judges a cache directory without any code of the program that wrote it.

    judge.py DIRECTORY [--source KEY FILE]... [--variants NAME,...]

The checks, by folder and table:

- Every row names a complete file with the row's hash, size, format and dimensions that Pillow can
  decode. Every content file has a row. The directory contains nothing else.
- Other users have no access, except as the property `file_mode` allows.
- The table `freshness` has exactly one row for every variant, with the values of its resource.
- Rows of `attribute`, `failure` and `host` are within their limits.
- Every row of `partial` names a file in `tmp` of its size and hash; `tmp` contains nothing else.
- A resource has at most one variant in use by each name. With --variants it has one for each of
  these names, stored under the name or under the name's recipe.
- With --source the stored picture of KEY shows the picture in FILE: PNG exactly, JPEG within a mean
  difference of 8 of 255 a sample (a second quantisation at quality 85 of noisy gradients stays
  below 6).

Prints one line per problem, then `rows=N files=N`. Exit status: 0 clean, 1 problems, 2 usage error.
"""

import hashlib
import io
import os
import re
import sqlite3
import stat
import subprocess
import sys
import tempfile
import urllib.parse

from PIL import Image, ImageChops, ImageCms, ImageFile, ImageOps, ImageStat

ImageFile.LOAD_TRUNCATED_IMAGES = False
Image.MAX_IMAGE_PIXELS = None

EXTENSIONS = {kind: kind for kind in
              ("png", "webp", "gif", "bmp", "tiff", "avif", "jxl", "jp2", "ico", "svg", "pdf")}
EXTENSIONS |= {"jpeg": "jpg", "heif": "heic"}
TOP_LEVEL = {"CACHEDIR.TAG", "lock", "crashes", "unlogged", "content", "tmp", "snapshot.sqlite",
             "lists", "status"} | {
    "prefetch.sqlite" + suffix for suffix in ("", "-wal", "-shm")
}
SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"

problems = []


def problem(text):
    problems.append(text)


def decoded(data, name):
    """The picture in `data`, decoded to its last pixel, or None."""
    try:
        for matches, command, suffix, format in TOOLS:
            if matches(data):
                return decoded_by(command, suffix, format, data)
        picture = Image.open(io.BytesIO(data))
        picture.load()
        # Unlike browsers, Pillow reads the orientation from XMP.
        picture.info.pop("XML:com.adobe.xmp", None)
        return picture
    except Exception as error:  # any error of a decoder means a damaged file
        problem(f"{name}: does not decode: {error}")
        return None


# Formats that Debian's Pillow does not read: a test, a command, a file's suffix and Pillow's name.
TOOLS = [
    (lambda data: data[4:8] == b"ftyp" and b"avi" in data[8:64], ["avifdec", "--jobs", "1"], "avif", "AVIF"),
    (lambda data: data[4:8] == b"ftyp", ["heif-convert"], "heic", "HEIF"),
    (lambda data: data[:2] == b"\xff\x0a" or data[4:8] == b"JXL ", ["djxl"], "jxl", "JXL"),
]


def decoded_by(command, suffix, format, data):
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in." + suffix), os.path.join(folder, "out.png")
        with open(source, "wb") as file:
            file.write(data)
        subprocess.run(
            command + [source, target], stdin=subprocess.DEVNULL, check=True, capture_output=True)
        picture = Image.open(target)
        picture.load()
        picture.format = format
        return picture


def check_jpeg(path, name):
    """Reports libjpeg's warnings about damaged data: Pillow hides them, djpeg prints them."""
    result = subprocess.run(
        ["djpeg", "-outfile", "/dev/null", path], stdin=subprocess.DEVNULL, capture_output=True)
    if result.returncode != 0 or result.stderr:
        problem(f"{name}: djpeg: {result.stderr.decode(errors='replace').strip()}")


def lacks_only_end_chunk(data):
    """Whether a PNG is cut inside or before its end chunk, or in the two checksums before it."""
    offset, kind = 8, b""
    while offset + 12 <= len(data):
        kind = data[offset + 4:offset + 8]
        offset += 12 + int.from_bytes(data[offset:offset + 4], "big")
    if offset > len(data):
        return kind == b"IDAT" and offset - len(data) <= 8
    return b"IDAT" in data and END_CHUNK.startswith(data[offset:])


END_CHUNK = b"\0\0\0\0IEND\xaeB`\x82"


def check_end(data, kind, name):
    # If all metadata is kept, data may follow.
    if kind == "png" and END_CHUNK not in data and not lacks_only_end_chunk(data):
        problem(f"{name}: has no end chunk")
    if kind == "jpeg" and b"\xff\xd9" not in data[2:]:
        problem(f"{name}: has no end-of-image marker")


def check_row(directory, row, files, pictures):
    digest, kind, width, height, size, _, is_decoded, source, source_kind, orientation = row
    if isinstance(digest, bytes):
        digest = digest.hex()
    if kind not in EXTENSIONS:
        return problem(f"row {digest}: unknown format {kind!r}")
    path = f"content/{digest[:2]}/{digest}.{EXTENSIONS[kind]}"
    if not is_decoded:
        return check_as_it_came(directory, path, files, row, source, source_kind)
    if path in pictures:
        data, picture = pictures[path]
    elif path not in files:
        return problem(f"row {digest}: {path} is missing")
    else:
        with open(os.path.join(directory, path), "rb") as file:
            data = file.read()
        if hashlib.sha256(data).hexdigest() != digest:
            problem(f"{path}: its SHA-256 is another")
        check_end(data, kind, path)
        if kind == "jpeg":
            check_jpeg(os.path.join(directory, path), path)
        picture = decoded(data, path)
        pictures[path] = (data, picture)
    if len(data) != size:
        problem(f"{path}: has {len(data)} bytes, its row says {size}")
    if picture is None:
        return
    # Pillow calls a JPEG followed by further pictures MPO.
    if picture.format.lower().replace("mpo", "jpeg").replace("jpeg2000", "jp2") != kind:
        problem(f"{path}: is {picture.format}, its row says {kind}")
    # avifdec applies neither irot nor imir, heif-convert both.
    tag = orientation if kind in ("avif", "heif") else picture.getexif().get(0x0112, 1)
    if orientation != (tag if tag in range(1, 9) else 1):
        problem(f"{path}: has orientation {tag}, its row says {orientation}")
    shown = picture.size[::-1] if orientation >= 5 and kind != "heif" else picture.size
    if (width, height) != shown:
        problem(f"{path}: shows {shown}, its row says {width}x{height}")


def comparable(picture):
    """The picture as 8-bit RGBA with the EXIF orientation applied. Pillow has 16 bits only for grey."""
    picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith("I"):
        key = picture.info.get("transparency")
        alpha = Image.new("L", picture.size, 255)
        if key is not None:
            alpha.putdata([0 if value == key else 255 for value in picture.getdata()])
        picture = picture.point(lambda value: value * (1 / 256)).convert("L")
        picture.putalpha(alpha)
    return picture.convert("RGBA")


def in_srgb(picture, pixels, has_profile):
    """The RGBA pixels of a picture with its PNG gamma, and its profile unless the result `has_profile`, applied.

    None for primaries other than sRGB's.
    """
    info = picture.info
    if "icc_profile" in info and not has_profile:
        try:
            profile = ImageCms.ImageCmsProfile(io.BytesIO(info["icc_profile"]))
        except OSError:
            return pixels  # a broken profile is ignored
        mode = "L" if profile.profile.xcolor_space.strip() == "GRAY" else "RGB"
        made = ImageCms.profileToProfile(
            pixels.convert(mode), profile, ImageCms.createProfile("sRGB"), outputMode="RGB")
        made.putalpha(pixels.getchannel("A"))
        return made
    if picture.format != "PNG" or "srgb" in info or "icc_profile" in info:
        return pixels
    srgb = (0.3127, 0.3290, 0.64, 0.33, 0.30, 0.60, 0.15, 0.06)
    if any(abs(x - y) > 0.01 for x, y in zip(info.get("chromaticity", srgb), srgb)):
        return None
    if "gamma" not in info:
        return pixels
    light = [(value / 255) ** (1 / info["gamma"]) for value in range(256)]
    table = [round(255 * (12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055)) for x in light]
    return pixels.point(table * 3 + list(range(256)))


def has_chunk(data, name):
    """Whether a PNG has the chunk before its image data."""
    return data.startswith(b"\x89PNG") and name in data[: data.find(b"IDAT")]


def compare(key, source, path, pictures):
    with open(source, "rb") as file:
        data = file.read()
    wanted = decoded(data, source)
    stored = pictures.get(path, (None, None))[1]
    if wanted is None or stored is None:
        return problem(f"{key}: cannot be compared with {source}")
    is_exact = stored.format == "PNG" and wanted.format == "PNG"
    described, has_profile = wanted, "icc_profile" in stored.info
    stored, wanted = comparable(stored), comparable(wanted)
    if stored.size != wanted.size:
        return problem(f"{key}: shows {stored.size}, its source {wanted.size}")
    if not is_exact:
        # Pillow reads no code points.
        wanted = None if has_chunk(data, b"cICP") else in_srgb(described, wanted, has_profile)
        if wanted is None:
            return None
        # A JPEG shows white in place of transparency, by default; a WebP drops invisible colours.
        ground = Image.new("RGBA", wanted.size, "white")
        stored, wanted = Image.alpha_composite(ground, stored), Image.alpha_composite(ground, wanted)
    difference = ImageChops.difference(stored, wanted)
    if is_exact:
        if any(high for _, high in difference.getextrema()):
            problem(f"{key}: its pixels differ from its source's")
    # At the default quality, an icon of 16 by 16 strong colours differs by 9, a wrong picture by 30 or more.
    elif max(ImageStat.Stat(difference).mean[:3]) > 11:
        problem(f"{key}: its pixels are far from its source's")


def check_as_it_came(directory, path, files, row, source, source_kind):
    """Checks a source stored unchanged, which need not be decodable."""
    if path not in files:
        return problem(f"{path} is missing")
    with open(os.path.join(directory, path), "rb") as file:
        data = file.read()
    if hashlib.sha256(data).digest() != source:
        problem(f"{path}: is not decoded, and not the source's bytes")
    if len(data) != row[4] or row[1] != source_kind:
        problem(f"{path}: its row says {row[1]} of {row[4]} bytes, its source is {source_kind}")


def check_modes(directory, mode):
    """Other users have at most the permissions of the cache's `mode`; None means 0600."""
    of_files = mode or 0o600
    of_folders = of_files | (of_files & 0o444) >> 2
    for parent, folders, names in os.walk(directory):
        for path in [parent] + [os.path.join(parent, name) for name in names + folders]:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                problem(f"{path}: is a symbolic link")
            elif status.st_mode & 0o077 & ~(of_files if stat.S_ISREG(status.st_mode) else of_folders):
                problem(f"{path}: has the mode {status.st_mode & 0o7777:o}")


def remembered_mode(directory):
    try:
        connection = sqlite3.connect(
            f"file:{os.path.join(directory, 'prefetch.sqlite')}?mode=ro", uri=True)
        row = connection.execute("SELECT value FROM property WHERE name = 'file_mode'").fetchone()
        connection.close()
    except sqlite3.Error:
        return None  # no database, or damage that other checks report
    return row[0] if row else None


def check_layout(directory):
    """Returns the content files as paths relative to the directory."""
    # Damaged databases that a run has set aside are allowed.
    names = {name for name in os.listdir(directory)
             if not name.startswith("prefetch.sqlite.damaged-")}
    for name in sorted(names - TOP_LEVEL):
        problem(f"{name}: does not belong in a cache")
    tag = os.path.join(directory, "CACHEDIR.TAG")
    if not os.path.isfile(tag) or not open(tag, "rb").read().startswith(SIGNATURE):
        problem("CACHEDIR.TAG: is missing or has another signature")
    files = set()
    for parent, _, names in os.walk(os.path.join(directory, "content")):
        files |= {os.path.relpath(os.path.join(parent, name), directory) for name in names}
    return files


def words(text):
    """The two leading 64-bit numbers of a text's SHA-256."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")


def signed(word):
    return word - (1 << 64) if word >> 63 else word


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(~([2-9]|[1-5][0-9]|6[0-4]))?")


def check_names(connection, wanted):
    """A resource has at most one variant in use per name, and one for each of `wanted`."""
    noted = {}
    for identifier, name, recipe in connection.execute("SELECT id, name, recipe FROM variant_name"):
        noted[identifier] = name, recipe
        if not NAME.fullmatch(name) or not recipe or (identifier == 0) != (name == "main"):
            problem(f"variant_name {identifier}: is called {name!r} for {recipe!r}")
    if 0 not in noted:
        problem("variant_name: has no main")
    recipes = dict(noted.values())
    for name in sorted(wanted - set(recipes)):
        problem(f"variant_name: has no {name}")
    used = {resource: [] for resource, in connection.execute("SELECT id FROM resource")}
    for resource, recipe, identifier, superseded in connection.execute(
            "SELECT resource_id, recipe, name, superseded FROM variant"):
        if superseded not in (0, 1) or identifier not in noted:
            problem(f"variant {recipe} of {resource}: has the name {identifier}, "
                f"superseded {superseded}")
        elif not superseded and resource in used:
            used[resource].append((noted[identifier][0], recipe))
    for resource, variants in used.items():
        names = [name for name, _ in variants]
        if len(set(names)) != len(names):
            problem(f"resource {resource}: several variants in use by one name: {variants}")
        made = {recipe for _, recipe in variants}
        for name in sorted(wanted):
            if name not in names and recipes.get(name) not in made:
                problem(f"resource {resource}: no variant in use as {name}: {variants}")


def check_marks(connection):
    """Compares the marks in `freshness`; of two variants with one fingerprint, one has no row."""
    marks = {row[:2]: row[2] for row in connection.execute(
        "SELECT fingerprint, fingerprint_low, superseded FROM freshness")}
    for key, recipe, name, superseded in connection.execute(
            "SELECT key, recipe, name, superseded FROM variant JOIN resource ON id = resource_id"):
        fingerprint = tuple(signed(mine ^ other) for mine, other in zip(words(key), words(recipe)))
        mark = 1 if superseded else 2 if name else 0
        if marks.get(fingerprint, mark) != mark:
            problem(f"freshness of {key} {recipe}: has the mark {marks[fingerprint]}, not {mark}")


def check_freshness(connection):
    """Two variants with the same first number share a row."""
    wanted = {}
    for key, vary, recipe, *rest in connection.execute(
            "SELECT key, vary, recipe, r.id, validated_at, expires_at FROM variant v "
            "JOIN resource r ON r.id = v.resource_id"):
        (key_high, key_low), (recipe_high, recipe_low) = words(key), words(recipe)
        vary = None if vary is None else signed(words(vary)[0])
        wanted.setdefault(signed(key_high ^ recipe_high), []).append(
            (key, recipe, (signed(key_low ^ recipe_low), *rest, vary)))
    rows = connection.execute("SELECT fingerprint, fingerprint_low, resource_id, validated_at, "
        "expires_at, vary FROM freshness").fetchall()
    for fingerprint, *row in rows:
        candidates = wanted.pop(fingerprint, None)
        if candidates is None:
            problem(f"freshness {fingerprint}: belongs to no variant")
        elif tuple(row) not in [values for _, _, values in candidates]:
            key, recipe, values = candidates[0]
            problem(f"freshness of {key} {recipe}: is {tuple(row)}, should be {values}")
    for candidates in wanted.values():
        problem(f"{candidates[0][0]} {candidates[0][1]}: has no row in freshness")


def columns_of(connection, table):
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def is_plain(url):
    """Whether it is a web address without user information."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and "@" not in parts.netloc


def check_resources(connection):
    if "permanent_url" in columns_of(connection, "resource"):
        # The stored redirect was followed, so the final URL differs.
        for key, url, final, permanent in connection.execute("SELECT key, url, final_url, "
                "permanent_url FROM resource WHERE permanent_url IS NOT NULL"):
            if not is_plain(permanent) or permanent == url or final is None:
                problem(f"resource {key}: goes from {url} for good to {permanent}, in all to {final}")
    for key, url, host, tag, vary in connection.execute(
            "SELECT key, url, host, etag, vary FROM resource"):
        parts = urllib.parse.urlsplit(url)
        if "@" in parts.netloc or host != f"{parts.scheme}://{parts.netloc}":
            problem(f"resource {key}: has the URL {url} at {host}")
        if tag == "" or vary == "":
            problem(f"resource {key}: has ETag {tag!r}, Vary {vary!r}")


def check_attributes(connection):
    if "thumbhash" in {row[1] for row in connection.execute("PRAGMA table_info(resource)")}:
        check_placeholders(connection)
    for resource, name, size in connection.execute(
            "SELECT resource_id, name, length(value) FROM attribute WHERE "
            "length(CAST(name AS BLOB)) NOT BETWEEN 1 AND 255 OR length(value) > 65536 "
            "OR typeof(value) <> 'blob' "
            "OR NOT EXISTS (SELECT 1 FROM resource WHERE id = resource_id)"):
        problem(f"attribute {name} of {resource}: is not as it should be, {size} bytes")


def check_placeholders(connection):
    for key, in connection.execute(
            "SELECT key FROM resource WHERE length(thumbhash) NOT BETWEEN 5 AND 25 "
            "OR color NOT BETWEEN 0 AND 0xFFFFFF OR (thumbhash IS NULL AND color IS NOT NULL)"):
        problem(f"resource {key}: has no such placeholder")
    for resource, name in connection.execute(
            "SELECT resource_id, name FROM attribute WHERE name >= 'prefetch.' AND name < 'prefetch/'"):
        problem(f"attribute {name} of {resource}: is reserved")


REASONS = set("""unsupported-scheme dns connect tls timeout stalled interrupted redirect http-status
    too-large not-an-image corrupt-image too-many-pixels unsupported-image uncacheable other-format
    min-size max-aspect min-bytes disk""".split())


def check_failures(connection):
    """Failures for local reasons have no row or do not count. A row's run exists."""
    last_run, = connection.execute("SELECT max(id) FROM run").fetchone()
    conditions = "conditions" if "conditions" in columns_of(connection, "failure") else "NULL"
    for row in connection.execute("SELECT key, host, reason, http_status, attempts, class, "
            "runs_in_a_row, first_failed_at, last_failed_at, blacklisted_until, run_id, "
            f"{conditions} FROM failure"):
        key, host, reason, status, attempts, kind, runs, _, last, until, run, stored = row
        # The user's statuses are in force instead of the usual ones.
        usual = "blacklist-status=" not in (stored or "").replace("blacklist-status=-", "")
        wrong = [
            reason not in REASONS,
            (reason == "http-status") and status is None,
            # An image whose refresh found no room below --max-size.
            reason == "disk" and (runs, until) != (0, None),
            reason == "http-status" and status in (401, 403, 407) and usual
            and (runs, until, run) != (0, None, None),
            # A recipe that a stored original does not support fails without a request, as does a
            # new variant without room.
            attempts < (0 if reason in ("unsupported-image", "disk") else 1),
            runs < 0,
            # Blacklisted only by finished runs, and for at most 30 days. A host's fault is no URL's.
            until is not None and "host=fault" not in (stored or "")
            and runs < (5 if kind == "transient" else 1),
            until is not None and not 0 < until - last <= 30 * 86400 * 1000,
            run is not None and run > last_run,
            not host.startswith(("http", "data:", "file:")),
        ]
        if any(wrong):
            problem(f"failure of {key}: is not as it should be: {row}")


WEEK = 7 * 86400 * 1000


def check_hosts(connection):
    present = {name for _, name, *_ in connection.execute("PRAGMA table_info(host)")}
    # Older caches lack the pace.
    pace = ", ".join(
        name if name in present else "NULL" for name in ("interval_us", "latency_us", "limited_by"))
    for row in connection.execute(
            "SELECT host, concurrency, failures_in_a_row, cooling_until, updated_at, "
            f"{pace} FROM host"):
        host, concurrency, failures, until, updated, interval, latency, limit = row
        parts = urllib.parse.urlsplit(host)
        wrong = [
            not is_plain(host) or host != f"{parts.scheme}://{parts.netloc}",
            concurrency is not None and concurrency < 1,
            failures < 0,
            updated <= 0,
            until is not None and not 0 < until <= updated + WEEK,
            interval is not None and interval < 1,
            latency is not None and latency < 1,
            limit not in (None, "settings", "latency", "refusals"),
            # A host with normal state has no row.
            concurrency is None and interval is None and failures == 0
            and (until is None or until <= updated),
        ]
        if any(wrong):
            problem(f"host {host}: is not as it should be: {row}")


def check_partials(directory, connection):
    """Returns the names of the files in `tmp` that rows name."""
    names, size_in_all = set(), 0
    for row in connection.execute(
            "SELECT key, url, etag, last_modified, bytes, sha256, total, created_at FROM partial"):
        key, url, tag, modified, size, digest, total, created = row
        name = hashlib.sha256(key.encode()).hexdigest() + ".partial"
        names.add(name)
        size_in_all += size
        wrong = [
            not is_plain(url),
            (tag is None) == (modified is None),
            tag is not None and (len(tag) < 2 or tag[0] != '"' or tag[-1] != '"'),
            size <= 1 << 20,
            total is not None and size >= total,
            created <= 0,
        ]
        if any(wrong):
            problem(f"partial {key}: is not as it should be: {row}")
        path = os.path.join(directory, "tmp", name)
        if not os.path.isfile(path):
            problem(f"partial {key}: tmp/{name} is missing")
            continue
        with open(path, "rb") as file:
            data = file.read()
        if len(data) != size or hashlib.sha256(data).digest() != digest:
            problem(f"partial {key}: tmp/{name} holds other bytes than its row says")
    if size_in_all > 256 << 20:
        problem(f"partial: {size_in_all} bytes in all")
    return names


def check_temporaries(directory, named):
    folder = os.path.join(directory, "tmp")
    for name in sorted(set(os.listdir(folder)) - named) if os.path.isdir(folder) else []:
        problem(f"tmp/{name}: was left behind")


def check_tables(connection, wanted):
    """Checks the other tables. Handmade caches may lack them."""
    checks = {"freshness": check_freshness, "attribute": check_attributes,
        "failure": check_failures}
    tables = {name for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "host" in tables:
        check_hosts(connection)
    if "variant_name" in tables:
        check_names(connection, wanted)
        check_marks(connection)
    elif wanted:
        problem("prefetch.sqlite: has no table variant_name")
    present = tables & set(checks)
    if not present:
        return
    for name in sorted(set(checks) - present):
        problem(f"prefetch.sqlite: has no table {name}")
    for name in present:
        checks[name](connection)
    check_resources(connection)


def check_totals(connection):
    """The maintained totals equal those of a scan."""
    if not columns_of(connection, "usage"):
        return
    kept = connection.execute(
        "SELECT resources, source_bytes, files, file_bytes, blocks FROM usage").fetchall()
    summed = connection.execute(
        "SELECT (SELECT count(*) FROM resource), "
        "(SELECT coalesce(sum(source_bytes), 0) FROM resource), count(*), "
        "coalesce(sum(bytes), 0), coalesce(sum((bytes + 4095) / 4096), 0) "
        "FROM (SELECT max(bytes) AS bytes FROM variant GROUP BY sha256)").fetchall()
    if kept != summed:
        problem(f"usage: is {kept}, but the sums are {summed}")
    kept = connection.execute(
        "SELECT host, format, name, superseded, variants, bytes FROM total "
        "WHERE variants <> 0 OR bytes <> 0 ORDER BY 1, 2, 3, 4").fetchall()
    summed = connection.execute(
        "SELECT host, format, name, superseded, count(*), sum(bytes) "
        "FROM variant JOIN resource ON id = resource_id GROUP BY 1, 2, 3, 4 "
        "ORDER BY 1, 2, 3, 4").fetchall()
    if kept != summed:
        problem(f"total: is {kept[:5]}, but the sums are {summed[:5]}")


def main(arguments):
    options = ("--source", "--variants")
    if not arguments or any(a.startswith("--") and a not in options for a in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    problems.clear()
    directory, sources, wanted = arguments[0], {}, set()
    rest = arguments[1:]
    while rest:
        option, value, *rest = rest
        if option == "--variants":
            wanted = set(value.split(","))
        else:
            sources[value], *rest = rest
    if not os.path.isdir(directory):
        print("rows=0 files=0")
        return 1 if sources else 0
    files = check_layout(directory)
    check_modes(directory, remembered_mode(directory))
    rows, paths, named, partials = [], {}, set(), set()
    database = os.path.join(directory, "prefetch.sqlite")
    if os.path.isfile(database):
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        for (verdict,) in connection.execute("PRAGMA integrity_check"):
            if verdict != "ok":
                problem(f"prefetch.sqlite: {verdict}")
        for violation in connection.execute("PRAGMA foreign_key_check"):
            problem(f"prefetch.sqlite: a row without its parent: {violation}")
        columns = columns_of(connection, "variant")
        resource = next(
            (c for c in ("resource_id", "resource", "resourceID", "key") if c in columns), None
        )
        if resource is None:
            problem(f"prefetch.sqlite: variant names no resource: {sorted(columns)}")
            resource = "rowid"
        identity = "key" if resource == "key" else "rowid"
        decoded = ("v.decoded, r.source_sha256, r.source_format, v.orientation"
                   if "decoded" in columns else "1, NULL, NULL, 1")
        rows = connection.execute(
            f"SELECT v.sha256, v.format, v.width, v.height, v.bytes, r.key, {decoded} "
            "FROM variant v "
            f"LEFT JOIN resource r ON r.{identity} = v.{resource}"
        ).fetchall()
        check_tables(connection, wanted)
        check_totals(connection)
        if columns_of(connection, "partial"):
            partials = check_partials(directory, connection)
        connection.close()
    elif files:
        problem("prefetch.sqlite: is missing, but there are content files")
    check_temporaries(directory, partials)
    pictures = {}
    for row in rows:
        check_row(directory, row, files, pictures)
        digest = row[0].hex() if isinstance(row[0], bytes) else row[0]
        path = f"content/{digest[:2]}/{digest}.{EXTENSIONS.get(row[1], '?')}"
        if row[5] is None:
            problem(f"row {digest}: has no resource")
        paths[row[5]] = path
        named.add(path)
    for path in sorted(files - named):
        problem(f"{path}: no row names it")
    for key, source in sources.items():
        if key not in paths:
            problem(f"{key}: is not stored")
        else:
            compare(key, source, paths[key], pictures)
    for text in problems:
        print(text)
    print(f"rows={len(rows)} files={len(files)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Random caches, and the rules of `prefetch merge` in another language.

make FOLDER COUNT SEED   fills caches 0 to COUNT-1 below FOLDER, copies of FOLDER/empty, at random
expect FOLDER NAME...    prints what their merge must hold
dump CACHE               prints what a cache holds, without identifiers

Sources change with time in one direction only, unless SEED ends with `r`: a picture may return then.
"""

import hashlib
import json
import os
import random
import shutil
import sqlite3
import struct
import sys
import zlib
from pathlib import Path

# The mode of caches.
os.umask(0o077)

KEYS = 40
RECIPES = ["same;q=85;strip=safe", "webp;q=60;strip=safe", "jpeg;q=50;strip=safe"]
START = 1_790_000_000_000


def digest(*parts):
    return hashlib.sha256(repr(parts).encode()).digest()


def png(*parts):
    """A grey picture of 8 by 8 pixels."""
    pixels = digest(*parts) * 2
    rows = b"".join(b"\0" + pixels[row * 8:row * 8 + 8] for row in range(8))

    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data
                + struct.pack(">I", zlib.crc32(name + data)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def open_cache(path):
    connection = sqlite3.connect(path / "prefetch.sqlite")
    connection.row_factory = sqlite3.Row
    return connection


def insert(connection, table, row):
    names = ", ".join(row)
    connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def fill(cache, dice, returns):
    connection = open_cache(cache)
    connection.execute("DELETE FROM run")
    names = {"main": 0}
    connection.execute("DELETE FROM variant_name")
    for name in ["main"] + dice.sample(["thumb", "web"], dice.randrange(3)):
        number = 0 if name == "main" else 1 + dice.randrange(1000) * 2 + (name == "web")
        names[name] = number
        insert(connection, "variant_name", dict(
            id=number, name=name, recipe=dice.choice(RECIPES),
            used_at=dice.choice([None, START + dice.randrange(9)])))
    chosen = dice.sample(range(KEYS), dice.randrange(KEYS))
    listed = []
    for number in chosen:
        key = f"https://h{number % 5}.example/{number}.png"
        host = key[:key.index("/", 8)]
        if dice.random() < 0.25:
            time = START + dice.randrange(9)
            insert(connection, "failure", dict(
                key=key, url=key, host=host, reason=dice.choice(["http-status", "timeout"]),
                http_status=dice.choice([404, None]), curl_code=None, message=f"m{dice.randrange(3)}",
                attempts=dice.randrange(1, 4), **{"class": dice.choice(["permanent", "transient"])},
                runs_in_a_row=dice.randrange(3), first_failed_at=START, last_failed_at=time,
                blacklisted_until=dice.choice([None, time + dice.randrange(99)]), run_id=None,
                conditions=dice.choice([None, "a=1", "z=1"]), former=None))
        if dice.random() < 0.1:
            continue
        time = START + dice.randrange(9)
        picture = dice.randrange(2) if returns else time // 5
        identifier = 1 + dice.randrange(10**6)
        listed.append(identifier)
        insert(connection, "resource", dict(
            id=identifier, key=key, url=key, host=host, etag=dice.choice([None, '"a"', '"b"']),
            vary=dice.choice([None, "accept: image/*"]), fetched_at=time - dice.randrange(3),
            validated_at=time, expires_at=time + dice.randrange(3), source_bytes=100 + picture,
            source_format="png", source_sha256=digest(key, picture), source_width=8,
            source_height=8, thumbhash=dice.choice([None, digest(picture)[:9]]),
            color=None))
        current = set()
        for recipe in dice.sample(RECIPES, dice.randrange(1, 4)):
            name = dice.choice(list(names))
            superseded = int(name in current or dice.random() < 0.2)
            if not superseded:
                current.add(name)
            # Equal pictures of several keys share a file.
            body = png(number % 30, picture, recipe)
            sha = hashlib.sha256(body).digest()
            insert(connection, "variant", dict(
                resource_id=identifier, recipe=recipe, sha256=sha, format="png", width=8, height=8,
                bytes=len(body), created_at=START + dice.randrange(5),
                last_access_at=START + dice.randrange(9), superseded=superseded, name=names[name]))
            path = cache / "content" / sha.hex()[:2] / f"{sha.hex()}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        for name in dice.sample(["a", "b", "c"], dice.randrange(4)):
            insert(connection, "attribute", dict(
                resource_id=identifier, name=name, value=bytes([dice.randrange(256)])))
    for number in range(5):
        if dice.random() < 0.5:
            insert(connection, "host", dict(
                host=f"https://h{number}.example", concurrency=dice.choice([None, 1, 5, 9]),
                failures_in_a_row=dice.randrange(3),
                cooling_until=dice.choice([None, START + dice.randrange(99)]),
                updated_at=START + dice.randrange(9), interval_us=dice.choice([None, 7, 9]),
                latency_us=dice.choice([None, 100, 200]),
                limited_by=dice.choice([None, "settings", "latency", "refusals"])))
    for _ in range(dice.randrange(3)):
        time = START + dice.randrange(4)
        insert(connection, "run", dict(
            started_at=time, ended_at=dice.choice([None, time + 1]), manifest="m", exit_status=0,
            counters='{"entries":1}', boot_id=None, files_synced=1))
    connection.commit()
    connection.close()


def dump(cache):
    connection = open_cache(cache)

    def rows(table, order):
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}")]

    keys = {row["id"]: row["key"] for row in rows("resource", "id")}
    names = {row["id"]: row["name"] for row in rows("variant_name", "id")}
    images = {}
    for row in rows("resource", "key"):
        row.pop("id")
        images[row["key"]] = dict(resource=row, variants={}, attributes={})
    for row in rows("variant", "resource_id, recipe"):
        row["name"] = names[row["name"]]
        images[keys[row.pop("resource_id")]]["variants"][row["recipe"]] = row
    for row in rows("attribute", "resource_id, name"):
        images[keys[row["resource_id"]]]["attributes"][row["name"]] = row["value"]
    return dict(
        images=images, failures={row["key"]: row for row in rows("failure", "key")},
        hosts={row["host"]: row for row in rows("host", "host")},
        names={row["name"]: [row["recipe"], row["used_at"]] for row in rows("variant_name", "name")},
        runs=sorted({json.dumps(row) for row in (
            {name: value for name, value in row.items() if name != "id"}
            for row in rows("run", "id")) if row["ended_at"] is not None}))


def order(value):
    """SQLite's order: NULL, numbers, texts, BLOBs."""
    rank = {type(None): 0, int: 1, str: 2, bytes: 3}[type(value)]
    return rank, value if value is not None else 0


def united(dumps):
    result = dict(images={}, failures={}, hosts={}, names={}, runs=set())
    for key in sorted({key for one in dumps for key in one["images"]}):
        images = [one["images"][key] for one in dumps if key in one["images"]]
        images.sort(key=lambda image: [
            order(image["resource"][name]) for name in
            ["validated_at", "fetched_at", "expires_at", "source_sha256"]
            + [name for name in image["resource"]]], reverse=True)
        newest = dict(images[0]["resource"])
        alike = [image for image in images
                 if image["resource"]["source_sha256"] == newest["source_sha256"]]
        for image in alike:
            if newest["thumbhash"] is None:
                newest["thumbhash"] = image["resource"]["thumbhash"]
        variants = {}
        for image in alike:
            for recipe, row in image["variants"].items():
                variants.setdefault(recipe, []).append(row)
        for recipe, rows in variants.items():
            kept = dict(max(rows, key=lambda row: row["created_at"]))
            kept["last_access_at"] = max(row["last_access_at"] for row in rows)
            kept["name"] = min((row["name"] for row in rows), key=lambda name: (name != "main", name))
            kept["superseded"] = min(
                row["superseded"] for row in rows if row["name"] == kept["name"])
            variants[recipe] = kept
        for name in {row["name"] for row in variants.values()}:
            current = [row for row in variants.values()
                       if row["name"] == name and not row["superseded"]]
            current.sort(key=lambda row: (row["created_at"], row["recipe"]))
            for row in current[:-1]:
                row["superseded"] = 1
        attributes = {}
        for image in images:
            for name, value in image["attributes"].items():
                attributes.setdefault(name, value)
        result["images"][key] = dict(resource=newest, variants=variants, attributes=attributes)
    for key in {key for one in dumps for key in one["failures"]}:
        rows = [one["failures"][key] for one in dumps if key in one["failures"]]
        kept = dict(max(rows, key=lambda row: [
            order(value) for value in [row["last_failed_at"], *(
                value for name, value in row.items() if name != "blacklisted_until")]]))
        ends = [row["blacklisted_until"] for row in rows]
        kept["blacklisted_until"] = max(ends, key=order)
        image = result["images"].get(key)
        if image is None or image["resource"]["validated_at"] < kept["last_failed_at"]:
            result["failures"][key] = kept
    for host in {host for one in dumps for host in one["hosts"]}:
        rows = [one["hosts"][host] for one in dumps if host in one["hosts"]]

        def known(name):
            return [row[name] for row in rows if row[name] is not None]
        limits = known("limited_by")
        result["hosts"][host] = dict(
            host=host, concurrency=min(known("concurrency"), default=None),
            failures_in_a_row=max(known("failures_in_a_row")),
            cooling_until=max(known("cooling_until"), default=None),
            updated_at=max(known("updated_at")), interval_us=max(known("interval_us"), default=None),
            latency_us=min(known("latency_us"), default=None),
            limited_by="refusals" if "refusals" in limits else min(limits, default=None))
    for one in dumps:
        for name, row in one["names"].items():
            known = result["names"].get(name)
            if known is None or [order(row[1]), row[0]] > [order(known[1]), known[0]]:
                result["names"][name] = row
        result["runs"] |= set(one["runs"])
    result["runs"] = sorted(result["runs"])
    return result


def show(value):
    print(json.dumps(value, sort_keys=True, indent=0, default=lambda bytes: bytes.hex()))


def main():
    folder = Path(sys.argv[2])
    if sys.argv[1] == "make":
        for number in range(int(sys.argv[3])):
            cache = folder / str(number)
            shutil.copytree(folder / "empty", cache)
            fill(cache, random.Random(f"{sys.argv[4]} {number}"), sys.argv[4].endswith("r"))
    elif sys.argv[1] == "expect":
        show(united([dump(folder / name) for name in sys.argv[3:]]))
    else:
        show(dump(folder))


main()

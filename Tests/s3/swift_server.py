"""OpenStack Swift with its S3 interface in one process, for `servers`.

Prints its port. Its data are in a temporary folder, whose file system must support extended
attributes. Ends when standard input closes. Exits 3 if Swift is missing (Debian: python3-swift).
"""

import logging
import os
import sys
import tempfile
from pathlib import Path
from time import monotonic

try:
    # Patches come before Swift's modules copy what they replace.
    import eventlet
    import eventlet.tpool
    import eventlet.wsgi
    eventlet.monkey_patch(all=False, socket=True, select=True, thread=True)
    from swift.common import utils, wsgi
    from swift.common.http_protocol import SwiftHttpProtocol
    from swift.common.ring import RingBuilder
except ImportError:
    sys.exit(3)

USER, KEY = "test:tester", "testing"
REGION = "us-east-1"

SWIFT = """[swift-hash]
swift_hash_path_suffix = tests
"""
STORAGE = """[DEFAULT]
swift_dir = {folder}
devices = {folder}
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
log_level = ERROR
[pipeline:main]
pipeline = {name}
[app:{name}]
use = egg:swift#{name}
# The server answers a PUT once listings show the object, or after this time.
container_update_timeout = 30
"""
PROXY = """[DEFAULT]
swift_dir = {folder}
log_level = ERROR
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats s3api tempauth bulk slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
node_timeout = 30
conn_timeout = 10
[filter:s3api]
use = egg:swift#s3api
location = {region}
storage_domain = localhost
[filter:tempauth]
use = egg:swift#tempauth
user_{user} = {key} .admin
"""
FILTERS = ("catch_errors", "gatekeeper", "listing_formats", "bulk", "slo")


class Cache:
    """Takes memcached's place, which the S3 interface requires."""

    def __init__(self):
        self.values = {}

    def get(self, key, raise_on_error=False):
        deadline, value = self.values.get(key, (0, None))
        return value if monotonic() < deadline else None

    def set(self, key, value, time=0, **settings):
        self.values[key] = (monotonic() + (time or float("inf")), value)

    def delete(self, key, **settings):
        self.values.pop(key, None)


def serve(folder):
    utils.ThreadSafeSysLogHandler = lambda **settings: logging.StreamHandler()
    # Nothing outlives this process.
    os.fsync = os.fdatasync = utils.fsync = utils.fdatasync = lambda descriptor: None
    (folder / "swift.conf").write_text(SWIFT)
    utils.set_swift_dir(str(folder))
    (folder / "device").mkdir()
    sockets = {
        name: eventlet.listen(("127.0.0.1", 0), backlog=1024)
        for name in ("account", "container", "object", "proxy")}
    ports = {name: socket.getsockname()[1] for name, socket in sockets.items()}
    for name in ("account", "container", "object"):
        ring = RingBuilder(part_power=2, replicas=1, min_part_hours=0)
        ring.add_dev({
            "region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "port": ports[name],
            "device": "device"})
        ring.rebalance()
        ring.get_ring().save(str(folder / f"{name}.ring.gz"))
        (folder / f"{name}.conf").write_text(STORAGE.format(folder=folder, name=name))
    (folder / "proxy.conf").write_text(
        PROXY.format(folder=folder, user=USER.replace(":", "_"), key=KEY, region=REGION)
        + "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n" for name in FILTERS))

    cache = Cache()

    def with_cache(application):
        def answer(environment, start_response):
            environment["swift.cache"] = cache
            return application(environment, start_response)
        return answer

    for name, socket in sockets.items():
        application = wsgi.loadapp(str(folder / f"{name}.conf"), {"log_name": name})
        eventlet.spawn(
            eventlet.wsgi.server, socket, with_cache(application), utils.NullLogger(),
            protocol=SwiftHttpProtocol, capitalize_response_headers=False)
    print(ports["proxy"], flush=True)
    eventlet.tpool.execute(sys.stdin.read)


def main():
    with tempfile.TemporaryDirectory(prefix="prefetch-swift.") as folder:
        serve(Path(folder))
    # The servers would wait for more requests.
    os._exit(0)


main()

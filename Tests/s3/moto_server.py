"""Moto's S3 in memory, for `servers`.

Prints its port. Ends when standard input closes. Exits 3 if moto is missing.
"""

import os
import sys
import threading

try:
    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server
except ImportError:
    sys.exit(3)


class Handler(MotoRequestHandler):
    """Logs no requests."""

    def log(self, *arguments):
        pass


def main():
    server = make_server(
        "127.0.0.1", 0, create_backend_app("s3"), threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()
    os._exit(0)


main()

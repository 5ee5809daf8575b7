"""Runs a program in a network where one web server listens on every address.

Usage: unshare -rn python3 everywhere.py LOG PICTURE PROGRAM [ARGUMENT...]

In the network namespace all unicast addresses, IPv4 and IPv6, lead to this server, at port 80. It
redirects `/to?URL` to the unchanged URL (302), answers other requests with the picture, and exits
with the program. It appends to LOG a line `connection ADDRESS` per connection and `request ADDRESS
TARGET` per request, where ADDRESS is the one that the client connected to.
"""

import http.server
import os
import socket
import subprocess
import sys
import time
from threading import Thread


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    request_queue_size = 1024
    daemon_threads = True

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.bind(self.server_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        name = self.connection.getsockname()[0]
        is_ipv4 = name.startswith("::ffff:") and "." in name
        self.address = name.removeprefix("::ffff:") if is_ipv4 else name
        note(f"connection {self.address}")

    def do_GET(self):
        note(f"request {self.address} {self.path}")
        if self.path.startswith("/to?"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to?"))
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.send_header("Content-Length", str(len(picture)))
            self.send_header("Cache-Control", "max-age=3600")
            self.end_headers()
            self.wfile.write(picture)

    def log_message(self, *arguments):
        pass


def note(line):
    """Appends a line in one write, so that lines of several threads do not mix."""
    os.write(log, (line + "\n").encode())


def serve(server, parent):
    """Serves until the program exits; does not keep the program's output streams open."""
    for stream in (1, 2):
        os.dup2(log, stream)
    Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(0.05)
    os._exit(0)


log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
with open(sys.argv[2], "rb") as file:
    picture = file.read()
for command in (
    "link set lo up",
    "-4 route add local default dev lo",
    "-6 route add local default dev lo",
):
    subprocess.run(["/bin/ip", *command.split()], check=True)
listener = Server(("::", 80), Handler)
parent = os.getpid()
if os.fork() == 0:
    serve(listener, parent)
os.execv(sys.argv[3], sys.argv[3:])

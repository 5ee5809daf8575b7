"""Running scripts with their control, for the tests of this folder."""

import http.client
import json
import subprocess
import sys
import unittest
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
MISSING = 3


class Script:
    """A running script of this folder. `values` are those that it printed."""

    def __init__(self, name, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, HERE / name, *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.communicate()
            if self.process.returncode == MISSING:
                raise unittest.SkipTest(" ".join([*arguments, "is not installed"]))
            raise RuntimeError(f"{name}: exit status {self.process.returncode}")
        self.values = json.loads(line)
        self.address = urlsplit(self.values["endpoint"]).netloc

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=20)
        self.process.stdout.close()
        if status:
            raise RuntimeError(f"exit status {status}")

    def request(self, method, path, body=None, headers={}, **settings):
        """Sends a request on a connection of its own; returns the answer and its body."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request(method, path, body, headers, **settings)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def control(self, method="GET", **settings):
        body = json.dumps(settings) if settings else None
        answer, report = self.request(method, "/_control", body)
        if answer.status != 200:
            raise ValueError(report.decode())
        return json.loads(report)

    def fault(self, kind, **settings):
        """Puts one fault into the next requests, for one request unless `times` says otherwise."""
        self.control("POST", faults=[{"kind": kind, "times": 1} | settings])

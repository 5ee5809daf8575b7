"""Tests of the shards of URLs.

Usage: python -m unittest discover -s Packaging/wheel/tests -p test_domains.py
"""

import hashlib
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import prefetch
from prefetch.domains import Domains, _library


class DomainTests(unittest.TestCase):
    HOSTS = {
        "http://a.example.com/x": "example.com",
        "http://x.example.com./": "example.com",
        "HTTPS://u:p@B.Example.CO.UK:80": "example.co.uk",
        "http://www.bücher.example/": "xn--bcher-kva.example",
        "http://xn--bcher-kva.example": "xn--bcher-kva.example",
        " http://a.x.com?q\t\r\n": "x.com",
        "http:/x.com/": "x.com",
        "http://co.uk/": "co.uk",
        "http://localhost/": "localhost",
        "http://127.1/": "127.0.0.1",
        "http://%31.1/": "1.0.0.1",
        "http://[::FFFF:1.2.3.4]:8/": "[::ffff:1.2.3.4]",
        "http://[FE80::1%25eth0]/": "[fe80::1%25eth0]",
    }
    INVALID = ["ftp://x.com/", "x.com", "", "http://a b.com/", "http://x.com/\v",
               "http://x.com\\y/", "http:///", "http://x%25y.com/", "mailto:a@b.c"]

    def test_the_rule(self):
        domains = Domains()
        for url, domain in self.HOSTS.items():
            number = int.from_bytes(hashlib.sha256(domain.encode()).digest()[:8], "big")
            self.assertEqual(domains.shard(url, 1_000_003), number % 1_000_003, url)
        for url in [*self.INVALID, None]:
            self.assertEqual(domains.shard(url, 1_000_003), 0, url)

    def test_the_command_has_the_same_rule(self):
        program = prefetch._program()
        usage = subprocess.run([program, "run", "--help"], capture_output=True)
        if b"--shard" not in usage.stdout:
            self.skipTest("the command has no --shard")
        urls = [*self.HOSTS, *self.INVALID, *(f"http://h{n}.d{n}.com/" for n in range(200))]
        lines = "".join(json.dumps({"url": url}) + "\n" for url in urls)
        domains = Domains()
        with tempfile.TemporaryDirectory() as folder:
            for number in range(7):
                report = Path(folder, f"{number}.jsonl")
                subprocess.run(
                    [program, "run", "-", "--format=jsonl", "--offline", "--summary=none",
                     f"--cache-dir={folder}/cache", f"--report={report}", f"--shard={number}/7"],
                    input=lines.encode(), capture_output=True)
                entries = map(json.loads, report.read_text().splitlines())
                found = {entry["line"] - 1 for entry in entries if entry["type"] == "result"}
                self.assertEqual(
                    found,
                    {line for line, url in enumerate(urls) if domains.shard(url, 7) == number})

    def test_a_missing_library_is_named(self):
        with self.assertRaisesRegex(prefetch.PrefetchError, "libnone.so.1 is missing .*\n"
                                    "hint: Debian: apt install libnone1; Fedora: dnf install none"):
            _library("libnone.so.1", "libnone1", "none")


if __name__ == "__main__":
    unittest.main()

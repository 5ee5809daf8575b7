"""Finds the shard of a URL, as `prefetch run --shard` does.

A shard has all URLs of its registrable domains: the number of a domain is the first eight bytes of
its SHA-256, modulo the number of shards. A host without a registrable domain stands for itself: an
IP address, `localhost`, a public suffix.

libcurl parses the URL and libpsl knows the suffixes, as in the command.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import socket
from typing import Dict, Optional, Tuple

from prefetch import PrefetchError

__all__ = ["Domains"]

# Of curl/urlapi.h.
_CURLUPART_URL, _CURLUPART_HOST, _CURLUPART_ZONEID = 0, 5, 10
_CURLU_URLENCODE, _CURLU_PUNYCODE = 1 << 7, 1 << 12


class Domains:
    """Finds registrable domains. Not shared between threads."""

    PLAIN = re.compile(r"https?://([^/?#\x00-\x20\x7f]+)(?:[/?#][^\x00-\x1f\x7f]*)?")
    NAME = re.compile(r"[a-z0-9._~-]+")
    NUMBERS = re.compile(r"[0-9.-]*[0-9]")
    ZONE = re.compile(r"[A-Za-z0-9._~-]*")

    def __init__(self) -> None:
        self.curl = _library("libcurl.so.4", "libcurl4", "libcurl")
        self.psl = _library("libpsl.so.5", "libpsl5", "libpsl")
        self.curl.curl_url.restype = self.psl.psl_builtin.restype = ctypes.c_void_p
        self.psl.psl_registrable_domain.restype = ctypes.c_char_p
        self.list = ctypes.c_void_p(self.psl.psl_builtin())
        if not self.list:
            raise PrefetchError("libpsl.so.5 has no list of suffixes", None, 2)
        self.known: Dict[str, int] = {}
        # libidn2 reads names in the locale's encoding, and an executor may run in the C locale.
        self.libc = ctypes.CDLL(None)
        self.libc.newlocale.restype = self.libc.uselocale.restype = ctypes.c_void_p
        self.locale = ctypes.c_void_p(self.libc.newlocale(1 << 0, b"C.UTF-8", None))

    def shard(self, url: Optional[str], n: int) -> int:
        """The shard of a URL among `n`, from 0; 0 also for text that is no URL."""
        return self._hash(url) % n

    def _hash(self, url: Optional[str]) -> int:
        url = (url or "").strip(" \t\r\n")
        match = self.PLAIN.fullmatch(url)
        if match is None:
            return self._host_hash(self.host(url))
        found = self.known.get(match[1])
        if found is None:
            found = self._host_hash(self.host(f"http://{match[1]}/"))
            self.known[match[1]] = found
        return found

    def _host_hash(self, host: Optional[str]) -> int:
        if host is None:
            return 0
        text = host[:-1] if host.endswith(".") else host
        name = text.encode()
        if host[0] != "[" and self.NUMBERS.fullmatch(text) is None:
            name = self.psl.psl_registrable_domain(self.list, name) or name
        return int.from_bytes(hashlib.sha256(name).digest()[:8], "big")

    def host(self, url: str) -> Optional[str]:
        """The host as the command normalises it; None for text that is no URL."""
        if re.match(r"https?:", url, re.IGNORECASE) is None or re.search(r"[\x00-\x1f\x7f]", url):
            return None
        before = None
        # libcurl decodes escapes in a host, and what they hide is read at the next turn.
        for _ in range(5):
            host, zone = self._parse(url)
            if host.startswith("[") and self.ZONE.fullmatch(zone):
                address = socket.inet_pton(socket.AF_INET6, host[1:-1])
                zone = f"%25{zone}" if zone else ""
                return f"[{socket.inet_ntop(socket.AF_INET6, address)}{zone}]"
            if self.NAME.fullmatch(host) is None:
                return None
            if host == before:
                return host
            before, url = host, f"http://{host}/"
        return None

    def _parse(self, url: str) -> Tuple[str, str]:
        """The host of a URL and its IPv6 zone, or nothing."""
        handle = ctypes.c_void_p(self.curl.curl_url())
        previous = self.libc.uselocale(self.locale)
        try:
            if self.curl.curl_url_set(handle, _CURLUPART_URL, url.encode(), _CURLU_URLENCODE):
                return "", ""
            host = self._part(handle, _CURLUPART_HOST)
            return host.lower(), self._part(handle, _CURLUPART_ZONEID)
        finally:
            self.libc.uselocale(ctypes.c_void_p(previous))
            self.curl.curl_url_cleanup(handle)

    def _part(self, handle: ctypes.c_void_p, part: int) -> str:
        text = ctypes.c_char_p()
        if self.curl.curl_url_get(handle, part, ctypes.byref(text), _CURLU_PUNYCODE):
            return ""
        try:
            return (text.value or b"").decode(errors="replace")
        finally:
            self.curl.curl_free(text)


def _library(name: str, debian: str, fedora: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise PrefetchError(
            f"{name} is missing on {socket.gethostname()}: {error}",
            f"Debian: apt install {debian}; Fedora: dnf install {fedora}", 2) from None

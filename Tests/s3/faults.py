"""Faults that the proxy puts into S3 requests."""

import re

# Each kind with its own settings and their defaults.
KINDS = {
    "status": {"status": 503, "code": "SlowDown", "headers": {}},
    "status-early": {"status": 503, "code": "SlowDown", "headers": {}},
    "cut": {"at": "body"},
    "lost": {},
    "stall": {"seconds": 60},
}
MATCHERS = {"method": None, "key": "", "query": "", "skip": 0, "times": None}


class Fault:
    """A kind of fault, and the requests that it hits."""

    def __init__(self, kind, **settings):
        if kind not in KINDS:
            raise ValueError(f"{kind} is no kind of fault: {', '.join(KINDS)}")
        known = MATCHERS | KINDS[kind]
        if unknown := settings.keys() - known.keys():
            raise ValueError(f"{kind} has no {', '.join(sorted(unknown))}")
        self.kind = kind
        self.settings = known | settings
        if self.settings.get("at", "head") not in ("head", "body"):
            raise ValueError("at is head or body")
        self.key, self.query = re.compile(self["key"]), re.compile(self["query"])
        self.seen = self.hits = 0

    def __getitem__(self, name):
        return self.settings[name]

    def takes(self, method, key, query):
        """Whether the request is hit. Counts it if it matches."""
        if self["method"] not in (None, method):
            return False
        if not (self.key.search(key) and self.query.search(query)):
            return False
        if self["times"] is not None and self.hits >= self["times"]:
            return False
        self.seen += 1
        if self.seen <= self["skip"]:
            return False
        self.hits += 1
        return True


def first_fault(faults, method, key, query):
    """The first fault that takes the request; those after it do not count the request."""
    return next((fault for fault in faults if fault.takes(method, key, query)), None)

#!/usr/bin/python3
"""Checks an HTML page of prefetch with Python's own parser, and prints each complaint.

Usage: page.py FILE

A page is at most 2 MB, valid under its content security policy, without scripts, links to other
sites and inline styles, balanced, and accessible: language, title, headings in order, captions,
headers with a scope, texts for images and charts, and enough contrast in both colour schemes.
"""

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "img", "br", "hr", "rect", "image"}
KNOWN = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "nav",
    "h1", "h2", "h3", "p", "span", "b", "code", "div", "ul", "li", "a", "details", "summary",
    "table", "caption", "thead", "tbody", "tr", "th", "td", "img", "svg", "rect",
    "image",
}
ATTRIBUTES = {
    "xmlns", "lang", "charset", "http-equiv", "content", "name", "class", "viewbox",
    "preserveaspectratio", "role", "aria-label", "aria-hidden", "aria-current", "x", "y", "width",
    "height", "scope", "tabindex", "src", "alt", "loading", "decoding", "href",
    "data-title",
}
SOURCE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/]+=*|thumbnails/[0-9a-f]{64}\.jpg")
LINK = re.compile(r"index\.html|page-[0-9]+\.html")
POLICY = re.compile(
    r"default-src 'none'; style-src 'sha256-([A-Za-z0-9+/]{43}=)'; "
    r"img-src ('self' )?data:; base-uri 'none'; form-action 'none'")


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.complaints, self.headings = [], [], []
        self.style, self.policy, self.title = "", None, ""
        self.captions = 0
        self.tables = 0

    def complain(self, text):
        self.complaints.append(f"{self.getpos()[0]}: {text}")

    def handle_startendtag(self, tag, attributes):
        self.start(tag, dict(attributes), isEmpty=True)

    def handle_starttag(self, tag, attributes):
        self.start(tag, dict(attributes), isEmpty=False)

    def start(self, tag, attributes, isEmpty):
        if tag not in KNOWN:
            self.complain(f"element {tag}")
        for name in attributes:
            if name not in ATTRIBUTES:
                self.complain(f"attribute {name} of {tag}")
        parent = self.open[-1] if self.open else None
        if tag == "html" and attributes.get("lang") != "en":
            self.complain("no language")
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes.get("content")
        if tag == "image" and not SOURCE.fullmatch(attributes.get("href", "")):
            self.complain(f"image of {attributes.get('href', '')[:80]}")
        if tag == "img":
            if not SOURCE.fullmatch(attributes.get("src", "")):
                self.complain(f"image of {attributes.get('src', '')[:80]}")
            if "alt" not in attributes:
                self.complain("image without a text")
        if tag == "a" and not LINK.fullmatch(attributes.get("href", "")):
            self.complain(f"link to {attributes.get('href')}")
        if tag == "svg" and attributes.get("aria-hidden") != "true":
            if attributes.get("role") != "img" or not attributes.get("aria-label"):
                self.complain("chart without a text")
        if tag == "th" and attributes.get("scope") not in ("col", "row"):
            self.complain("header without a scope")
        if tag == "table":
            self.tables += 1
        if tag == "caption":
            self.captions += 1
            if parent != "table":
                self.complain("caption outside of a table")
        if re.fullmatch("h[1-6]", tag):
            level = int(tag[1])
            if level > (self.headings[-1] if self.headings else 0) + 1:
                self.complain(f"{tag} after h{self.headings[-1] if self.headings else 0}")
            self.headings.append(level)
        if not isEmpty:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.complain(f"end of {tag}")

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data
        if self.open[-2:] == ["head", "title"]:
            self.title += data
        if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", data):
            self.complain("control character")

    def handle_comment(self, data):
        self.complain("comment")

    def unknown_decl(self, data):
        self.complain("declaration")

    def handle_pi(self, data):
        self.complain("instruction")


def luminance(colour):
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def scheme_complaints(style):
    """Texts need 4.5:1, parts of charts 3:1 (WCAG 2.2, 1.4.3 and 1.4.11)."""
    schemes = [
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)]
    if len(schemes) != 2 or schemes[0].keys() != schemes[1].keys():
        return ["not two colour schemes"]
    complaints = []
    for number, scheme in enumerate(schemes):
        for names, least in ((("text", "muted", "info"), 4.5), (("good", "bad", "warn", "idle"), 3)):
            for name in names:
                for ground in ("page", "card"):
                    value = contrast(scheme[name], scheme[ground])
                    if value < least:
                        complaints.append(f"scheme {number}: {name} on {ground}: {value:.2f}")
    return complaints


def complaints(data):
    found = []
    if len(data) > 2_000_000:
        found.append(f"{len(data)} bytes")
    text = data.decode("utf-8")
    if not text.startswith("<!DOCTYPE html>\n"):
        found.append("no doctype")
    page = Page()
    page.feed(text)
    page.close()
    found += page.complaints
    if page.open:
        found.append(f"open at the end: {page.open}")
    if page.captions != page.tables:
        found.append(f"{page.captions} captions of {page.tables} tables")
    if not page.title.strip():
        found.append("no title")
    if page.headings.count(1) != 1:
        found.append("not one h1")
    policy = POLICY.fullmatch(page.policy or "")
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    if not policy or policy[1] != digest:
        found.append(f"policy {page.policy}, style sha256-{digest}")
    return found + scheme_complaints(page.style)


if __name__ == "__main__":
    lines = complaints(Path(sys.argv[1]).read_bytes())
    print("\n".join(lines), end="")
    sys.exit(1 if lines else 0)

"""HTTP/1.1 messages on asyncio streams (RFC 9112)."""

import asyncio

BLOCK = 1 << 16
# A proxy must not forward these fields.
CONNECTION_FIELDS = ("connection", "keep-alive", "proxy-connection")


class Head:
    """A start line and fields. `fields` are pairs of strings."""

    def __init__(self, start, fields):
        self.start, self.fields = start, fields

    @classmethod
    async def read(cls, reader):
        """Reads a head; raises IncompleteReadError at the end of the stream."""
        data = await reader.readuntil(b"\r\n\r\n")
        start, *lines = data[:-4].decode("latin-1").split("\r\n")
        fields = []
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise ValueError(f"{line!r} is no field")
            fields.append((name, value.strip()))
        return cls(start, fields)

    def get(self, name):
        """The first value of a field by its lowercase name, or an empty string."""
        return next((value for field, value in self.fields if field.lower() == name), "")

    def without(self, *names):
        return [field for field in self.fields if field[0].lower() not in names]

    def data(self):
        lines = [self.start, *(f"{name}: {value}" for name, value in self.fields)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    @property
    def closes(self):
        return "close" in self.get("connection").lower()

    def length(self, default):
        """The body's length in bytes, "chunked", or the default."""
        if "chunked" in self.get("transfer-encoding").lower():
            return "chunked"
        length = self.get("content-length")
        return int(length) if length else default


async def blocks(reader, length):
    """Yields the blocks of a body as pairs: the bytes on the wire, and those of the content.

    The length is one of `Head.length`, or infinite for a body that ends with the connection.
    """
    if length == "chunked":
        async for block in chunks(reader):
            yield block
        return
    while length:
        data = await reader.read(min(length, BLOCK))
        if not data:
            if length == float("inf"):
                return
            raise asyncio.IncompleteReadError(b"", length)
        length -= len(data)
        yield data, data


async def chunks(reader):
    size = 1
    while size:
        line = await reader.readuntil(b"\n")
        size = int(line.partition(b";")[0], 16)
        yield line, b""
        if size:
            async for block in blocks(reader, size):
                yield block
            yield await reader.readexactly(2), b""
    # The trailer section ends with an empty line.
    while line.strip():
        line = await reader.readuntil(b"\n")
        yield line, b""

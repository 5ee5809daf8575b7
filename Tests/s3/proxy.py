"""A proxy before an S3 server that counts requests and puts faults into them.

Connections stay open and bodies are streamed. With a verifier, the proxy refuses requests that S3
would refuse, so bodies reach the server only after their digests were checked.
"""

import asyncio
import collections
import hashlib
import http.client
import json
import re
import tempfile
from urllib.parse import unquote
from xml.sax.saxutils import escape

from faults import first_fault, Fault
from messages import BLOCK, blocks, CONNECTION_FIELDS, Head
from sigv4 import Refusal

CONTROL = "/_control"
REMEMBERED_REQUESTS = 10_000
# Larger bodies are put into a file until they are verified.
LARGEST_IN_MEMORY = 8 << 20
CLOSE = {"Connection": "close"}


class Request:
    """A request with the connection that it came on."""

    def __init__(self, head, reader, writer):
        self.head, self.reader, self.writer = head, reader, writer
        self.method, self.target, version = head.start.split(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError(f"{version} is no version of HTTP/1")
        self.path, _, self.query = self.target.partition("?")
        self.key = unquote(self.path).partition("/")[2].partition("/")[2]
        self.length = head.length(default=0)
        self.expects = head.get("expect").lower() == "100-continue"
        self.keeps = not head.closes and version == "HTTP/1.1"
        # Method, target and status; the status is None until the answer.
        self.record = [self.method, self.target, None]


class Proxy:
    """Forwards requests to the server at a port of 127.0.0.1."""

    def __init__(self, port, verifier=None):
        self.port, self.verifier = port, verifier
        self.first_credentials = verifier and verifier.credentials
        self.reset()

    def reset(self):
        self.faults = []
        self.counts = collections.Counter()
        self.requests = collections.deque(maxlen=REMEMBERED_REQUESTS)
        self.bytes_in = self.connections = 0
        if self.verifier:
            self.verifier.credentials = self.first_credentials

    async def start(self):
        """Listens, and returns the port."""
        server = await asyncio.start_server(
            self.serve, "127.0.0.1", 0, limit=1 << 18, backlog=1024)
        return server.sockets[0].getsockname()[1]

    # MARK: Connections

    async def serve(self, reader, writer):
        server = Server(self.port)
        self.connections += 1
        keeps = True
        try:
            while keeps:
                try:
                    request = Request(await Head.read(reader), reader, writer)
                except ValueError as error:
                    await send(writer, 400, str(error).encode(), CLOSE)
                    break
                if request.target == CONTROL:
                    keeps = await self.control(request)
                    continue
                self.counts[request.method] += 1
                self.requests.append(request.record)
                keeps = await self.exchange(request, server)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        except asyncio.CancelledError:
            # The proxy ends; Python would report the open connections.
            pass
        finally:
            server.close()
            writer.close()

    async def exchange(self, request, server):
        """Answers a request. Returns whether the connection stays open."""
        fault = first_fault(self.faults, request.method, request.key, request.query)
        match fault and fault.kind:
            case "status" | "status-early":
                refusal = Refusal(
                    fault["status"], fault["code"], "The test asked for this error.")
                return await self.refuse(
                    request, refusal, fault["headers"], early=fault.kind == "status-early")
            case "stall":
                await self.drain(request)
                await wait_for_end(request.reader, fault["seconds"])
                return False
        try:
            if self.verifier:
                answer = await self.forward_verified(request, server)
            else:
                answer = await self.forward(request, server)
        except Refusal as refusal:
            early = request.expects or refusal.code == "BadGateway"
            return await self.refuse(request, refusal, early=early)
        if not fault:
            return await self.relay(request, server, answer)
        body = b"".join(
            [wire async for wire, _ in blocks(server.reader, body_length(request, answer))])
        await self.answer_with(fault, request, answer, body)
        return False

    async def control(self, request):
        body = b"".join([content async for _, content in blocks(request.reader, request.length)])
        try:
            match request.method:
                case "POST":
                    self.configure(**json.loads(body))
                case "DELETE":
                    self.reset()
                case "GET":
                    pass
                case _:
                    raise ValueError(f"{request.method} is not supported")
        except (TypeError, ValueError, re.error) as error:
            await send(request.writer, 400, f"{error}\n".encode())
            return request.keeps
        report = {
            "counts": self.counts, "bytes_in": self.bytes_in, "requests": list(self.requests),
            "connections": self.connections,
            "faults": [fault.hits for fault in self.faults]}
        await send(
            request.writer, 200, json.dumps(report).encode(), {"Content-Type": "application/json"})
        return request.keeps

    def configure(self, faults=None, credentials=None):
        if faults is not None:
            self.faults = [Fault(**fault) for fault in faults]
        if credentials is not None:
            if not self.verifier:
                raise ValueError("this server has credentials of its own")
            self.verifier.credentials = credentials

    # MARK: Requests

    async def body(self, request):
        if request.expects and request.length:
            request.expects = False
            request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async for wire, content in blocks(request.reader, request.length):
            self.bytes_in += len(content)
            yield wire, content
        request.length = 0

    async def drain(self, request):
        async for _ in self.body(request):
            pass

    async def forward(self, request, server):
        """Streams a request to the server while reading the head of the answer."""
        head = Head(request.head.start, request.head.without(*CONNECTION_FIELDS))
        await server.connect()
        server.writer.write(head.data())
        pump = asyncio.create_task(self.pump(request, server)) if request.length else None
        try:
            answer = await server.answer()
            while answer.start.split(" ")[1] == "100":
                request.writer.write(answer.data())
                answer = await server.answer()
        finally:
            if pump:
                # An early answer leaves bytes of the request that nobody reads.
                _, pending = await asyncio.wait({pump}, timeout=0.05)
                request.keeps = request.keeps and not pending
                pump.cancel()
                await asyncio.wait({pump})
                if not pump.cancelled():
                    # A client that has gone needs no answer.
                    pump.result()
        return answer

    async def pump(self, request, server):
        # The server sends `100 Continue` itself.
        request.expects = False
        try:
            async for wire, _ in self.body(request):
                server.writer.write(wire)
                await server.writer.drain()
        except asyncio.IncompleteReadError:
            server.writer.transport.abort()
            raise
        except ConnectionError:
            request.keeps = False

    async def forward_verified(self, request, server):
        expected = self.verifier.check(request.method, request.target, request.head.fields)
        if request.length == "chunked":
            raise Refusal(
                501, "NotImplemented",
                "A header you provided implies functionality that is not implemented",
                Header="Transfer-Encoding")
        if request.method == "PUT" and not request.head.get("content-length"):
            raise Refusal(
                411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
        hasher = hashlib.sha256()
        with tempfile.SpooledTemporaryFile(LARGEST_IN_MEMORY) as body:
            async for _, content in self.body(request):
                hasher.update(content)
                body.write(content)
            if expected not in (None, hasher.hexdigest()):
                raise Refusal(
                    400, "XAmzContentSHA256Mismatch",
                    "The provided 'x-amz-content-sha256' header does not match what was computed.",
                    ClientComputedContentSHA256=expected,
                    S3ComputedContentSHA256=hasher.hexdigest())
            head = Head(
                request.head.start,
                [("Host", f"127.0.0.1:{self.port}"),
                 *request.head.without("host", "expect", *CONNECTION_FIELDS)])
            await server.connect()
            server.writer.write(head.data())
            body.seek(0)
            while block := body.read(BLOCK):
                server.writer.write(block)
                await server.writer.drain()
        return await server.answer()

    # MARK: Answers

    async def relay(self, request, server, answer):
        """Streams an answer of the server. Returns whether the connection stays open."""
        length = body_length(request, answer)
        request.record[2] = status_of(answer)
        keeps = request.keeps and length != float("inf")
        request.writer.write(client_head(answer, keeps).data())
        async for wire, _ in blocks(server.reader, length):
            request.writer.write(wire)
            await request.writer.drain()
        # Eventlet, below Swift, ends even an answer to HEAD with an empty chunk.
        is_followed = request.method == "HEAD" and answer.length(default=0) == "chunked"
        if answer.closes or answer.start.startswith("HTTP/1.0") or not request.keeps or is_followed:
            server.close()
        await request.writer.drain()
        if not keeps:
            await linger(request)
        return keeps

    async def answer_with(self, fault, request, answer, body):
        """Sends a part of the server's answer."""
        head = client_head(answer, False).data()
        data = head + body
        match fault.kind:
            case "lost":
                return
            case "cut" if fault["at"] == "head" or not body:
                data = data[:len(head) // 2]
            case "cut":
                data = data[:len(head) + len(body) // 2]
        request.record[2] = status_of(answer)
        request.writer.write(data)
        await request.writer.drain()

    async def refuse(self, request, refusal, headers={}, early=False):
        """Answers with an error of S3. Returns whether the connection stays open."""
        if not early:
            await self.drain(request)
        request.keeps = request.keeps and not early
        request.record[2] = refusal.status
        elements = {
            "Code": refusal.code, "Message": refusal.message, **refusal.details,
            "Resource": request.path, "RequestId": "PREFETCHTEST"}
        body = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in elements.items())
        await send(
            request.writer, refusal.status,
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{body}</Error>'.encode(),
            {"Content-Type": "application/xml", "x-amz-request-id": "PREFETCHTEST"}
            | ({} if request.keeps else CLOSE) | headers,
            is_head=request.method == "HEAD")
        if not request.keeps:
            await linger(request)
        return request.keeps


class Server:
    """A connection to the server, opened when it is needed."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def connect(self):
        if self.writer and (self.reader.at_eof() or self.writer.is_closing()):
            self.close()
        if not self.writer:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port, limit=1 << 18)

    async def answer(self):
        try:
            return await Head.read(self.reader)
        except (ConnectionError, asyncio.IncompleteReadError):
            raise Refusal(
                502, "BadGateway", "The server closed the connection without an answer.") from None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None


def status_of(answer):
    return int(answer.start.split(" ")[1])


def body_length(request, answer):
    if request.method == "HEAD" or status_of(answer) in (204, 304):
        return 0
    return answer.length(default=float("inf"))


def client_head(answer, keeps):
    _, _, status = answer.start.partition(" ")
    fields = answer.without(*CONNECTION_FIELDS)
    return Head(f"HTTP/1.1 {status}", fields if keeps else [*fields, ("Connection", "close")])


async def send(writer, status, body, headers={}, is_head=False):
    reason = http.client.responses.get(status, "Unknown")
    fields = {"Content-Length": 0 if is_head else len(body)} | headers
    head = Head(f"HTTP/1.1 {status} {reason}", fields.items())
    writer.write(head.data() + (b"" if is_head else body))
    await writer.drain()


async def wait_for_end(reader, seconds):
    """Discards bytes until the client closes the connection, for some time at most."""
    try:
        async with asyncio.timeout(seconds):
            while await reader.read(BLOCK):
                pass
    except TimeoutError:
        pass


async def linger(request):
    """Lets the client read the answer; closing with unread bytes would reset the connection."""
    request.writer.write_eof()
    await wait_for_end(request.reader, 2)

"""Tests the S3 servers and the faults of their proxy with boto3."""

import contextlib
import datetime
import hashlib
import http.client
import socket
import unittest

from shared import Script
from sigv4 import signed_headers

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

PART = 5 << 20
# Names that clients encode in different ways.
KEYS = ["a/b c", "a/d+e", "a/é%25", "a/~f=g&h?i", "z"]


class ServerTests:
    """The tests of each server."""

    name = None

    @classmethod
    def setUpClass(cls):
        cls.server = Script("servers", cls.name)
        cls.bucket = cls.server.values["bucket"]
        cls.s3 = cls.client()

    @classmethod
    def tearDownClass(cls):
        cls.s3.close()
        cls.server.close()

    @classmethod
    def client(cls, timeout=20, **changes):
        values = cls.server.values | changes
        return boto3.client(
            "s3", endpoint_url=values["endpoint"],
            aws_access_key_id=values["access_key"], aws_secret_access_key=values["secret_key"],
            aws_session_token=values.get("token"), region_name=values["region"],
            config=Config(
                s3={"addressing_style": "path"}, retries={"total_max_attempts": 1},
                read_timeout=timeout))

    def setUp(self):
        for key in self.keys():
            self.s3.delete_object(Bucket=self.bucket, Key=key)
        self.server.control("DELETE")

    def put(self, key, body=b"body", **settings):
        return self.s3.put_object(Bucket=self.bucket, Key=key, Body=body, **settings)

    def get(self, key, **settings):
        return self.s3.get_object(Bucket=self.bucket, Key=key, **settings)["Body"].read()

    def keys(self, **settings):
        answer = self.s3.list_objects_v2(Bucket=self.bucket, **settings)
        return [entry["Key"] for entry in answer.get("Contents", [])]

    @contextlib.contextmanager
    def expect_error(self, status, code):
        with self.assertRaises(ClientError) as expected:
            yield expected
        answer = expected.exception.response
        self.assertEqual(
            (answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]), (status, code))

    def sign(self, method, key, body=b"", others={}, time=None, **changes):
        """A path and its signed headers, with other credentials or another region."""
        path = f"/{self.bucket}/{key}"
        return path, signed_headers(
            method, path, self.server.address, body, self.server.values | changes, others, time)

    def put_signed(self, body=b"body", *arguments, **settings):
        """Puts the object `a`; returns the status and the body of the answer."""
        path, headers = self.sign("PUT", "a", body, *arguments, **settings)
        answer, text = self.server.request("PUT", path, body, headers)
        return answer.status, text.decode()

    # MARK: S3

    def test_objects(self):
        for key in KEYS:
            self.put(key, key.encode(), ContentType="image/png", Metadata={"name": "value"})
            self.assertEqual(self.get(key), key.encode())
        head = self.s3.head_object(Bucket=self.bucket, Key=KEYS[0])
        self.assertEqual(head["ContentLength"], len(KEYS[0]))
        self.assertEqual(head["ETag"], f'"{hashlib.md5(KEYS[0].encode()).hexdigest()}"')
        self.assertEqual((head["ContentType"], head["Metadata"]), ("image/png", {"name": "value"}))
        self.assertEqual(self.get(KEYS[0], Range="bytes=2-3"), KEYS[0].encode()[2:4])
        self.assertEqual(self.keys(), sorted(KEYS, key=str.encode))
        self.s3.delete_object(Bucket=self.bucket, Key="z")
        self.s3.delete_object(Bucket=self.bucket, Key="z")
        with self.expect_error(404, "404"):
            self.s3.head_object(Bucket=self.bucket, Key="z")
        with self.expect_error(404, "NoSuchKey"):
            self.get("z")

    def test_listing(self):
        names = [f"list/{number:02}" for number in range(25)]
        for name in names + ["other"]:
            self.put(name)
        self.assertEqual(self.keys(Prefix="list/", StartAfter="list/20"), names[21:])
        pages = list(self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix="list/", PaginationConfig={"PageSize": 10}))
        self.assertEqual([page["KeyCount"] for page in pages], [10, 10, 5])
        self.assertEqual([entry["Key"] for page in pages for entry in page["Contents"]], names)
        answer = self.s3.list_objects_v2(Bucket=self.bucket, Delimiter="/")
        self.assertEqual([prefix["Prefix"] for prefix in answer["CommonPrefixes"]], ["list/"])

    def test_multipart(self):
        place = {"Bucket": self.bucket, "Key": "large"}
        upload = place | {"UploadId": self.s3.create_multipart_upload(**place)["UploadId"]}
        bodies = [b"1" * PART, b"2" * PART, b"3" * 1000]
        parts = []
        for number, body in enumerate(bodies, 1):
            answer = self.s3.upload_part(**upload, PartNumber=number, Body=body)
            parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        listed = self.s3.list_parts(**upload)["Parts"]
        self.assertEqual([part["Size"] for part in listed], [len(body) for body in bodies])
        self.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        self.assertEqual(self.get("large", Range=f"bytes={PART - 1}-{PART}"), b"12")
        self.assertEqual(
            self.s3.head_object(**place)["ContentLength"], sum(len(body) for body in bodies))
        self.s3.delete_object(**place)
        self.assertEqual(self.keys(), [])

    def test_large_stream(self):
        body = bytes(range(256)) * (1 << 16)
        self.put("large", body)
        self.assertEqual(self.get("large"), body)
        self.assertEqual(self.server.control()["bytes_in"], len(body))

    # MARK: Signatures

    def test_wrong_secret(self):
        with self.expect_error(403, "SignatureDoesNotMatch"):
            self.client(secret_key="wrong").put_object(Bucket=self.bucket, Key="a", Body=b"body")
        self.assertEqual(self.keys(), [])

    def test_wrong_access_key(self):
        with self.expect_error(403, self.wrong_key_code):
            self.client(access_key="wrong").list_objects_v2(Bucket=self.bucket)

    def test_wrong_region(self):
        # boto3 would repeat the request with the right region.
        status, text = self.put_signed(region="ap-east-1")
        self.assertEqual(status, 400)
        self.assertIn("AuthorizationHeaderMalformed", text)

    def test_no_signature(self):
        answer, _ = self.server.request("GET", f"/{self.bucket}/a")
        self.assertIn(answer.status, (400, 403))

    def test_skewed_time(self):
        now = datetime.datetime.now(datetime.UTC)
        status, text = self.put_signed(time=now - datetime.timedelta(minutes=16))
        self.assertEqual(status, 403)
        self.assertIn("RequestTimeTooSkewed", text)

    def test_changed_body(self):
        path, headers = self.sign("PUT", "a", b"body")
        answer, text = self.server.request("PUT", path, b"Body", headers)
        self.assertEqual(answer.status, 400)
        self.assertIn(self.wrong_body_code, text)
        self.assertEqual(self.keys(), [])

    def test_unsigned_header(self):
        path, headers = self.sign("PUT", "a", b"body")
        headers["x-amz-meta-name"] = "value"
        answer, text = self.server.request("PUT", path, b"body", headers)
        self.assertEqual(answer.status, 403)
        self.assertIn(b"AccessDenied", text)

    def put_chunked(self):
        path, headers = self.sign("PUT", "a", b"body")
        answer, _ = self.server.request(
            "PUT", path, iter([b"bo", b"dy"]), headers | {"Transfer-Encoding": "chunked"},
            encode_chunked=True)
        return answer.status

    # MARK: Connections

    def test_kept_connection(self):
        connection = http.client.HTTPConnection(self.server.address)
        for method, body in (("PUT", b"body"), ("GET", b""), ("HEAD", b""), ("DELETE", b"")):
            path, headers = self.sign(method, "a", body)
            connection.request(method, path, body or None, headers)
            self.assertLess(connection.getresponse().read(), b"c")
        connection.close()
        # One more is that of this question.
        report = self.server.control()
        self.assertEqual(report["connections"], 2)
        self.assertEqual(report["counts"], {"PUT": 1, "GET": 1, "HEAD": 1, "DELETE": 1})
        self.assertEqual([status for _, _, status in report["requests"]], [200, 200, 200, 204])

    def test_expect(self):
        for changes, code in (({}, b"100"), ({"secret_key": "wrong"}, b"403")):
            with self.send_head(b"body", **changes) as connection:
                head = read_until(connection, b"\r\n\r\n")
                self.assertIn(code, head.split(b"\r\n")[0])
                if code == b"100":
                    connection.sendall(b"body")
                    self.assertIn(b"200", read_until(connection, b"\r\n\r\n").split(b"\r\n")[0])

    def send_head(self, body, method="PUT", **changes):
        """A socket on which the head of a request was sent, with `Expect: 100-continue`."""
        path, headers = self.sign(method, "a", body, **changes)
        headers |= {"Expect": "100-continue", "Content-Length": len(body)}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
        host, _, port = self.server.address.partition(":")
        connection = socket.create_connection((host, int(port)), timeout=20)
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection

    def test_early_answer(self):
        """The server refuses a request whose body has not come."""
        path, headers = self.sign("PUT", "a", b"body" * PART, secret_key="wrong")
        connection = http.client.HTTPConnection(self.server.address, timeout=20)
        connection.putrequest("PUT", path, skip_host=True)
        for name, value in (headers | {"Content-Length": 4 * PART}).items():
            connection.putheader(name, value)
        connection.endheaders(b"body")
        if self.name == "moto":
            connection.send(b"body" * (PART - 1))
        answer = connection.getresponse()
        self.assertEqual(answer.status, 403)
        self.assertIn(b"SignatureDoesNotMatch", answer.read())
        connection.close()

    def test_incomplete_body(self):
        with self.send_head(b"body" * 1000) as connection:
            read_until(connection, b"\r\n\r\n")
            connection.sendall(b"body" * 500)
        self.put("b")
        self.assertEqual(self.keys(), ["b"])
        self.assertEqual(self.server.control()["requests"][0][2], None)

    # MARK: Faults

    def test_status(self):
        self.server.control("POST", faults=[
            {"kind": "status", "method": "PUT", "key": "^a/", "skip": 1, "times": 2},
            {"kind": "status", "method": "PUT", "key": "^a/", "skip": 1, "times": 1,
             "status": 500, "code": "InternalError"}])
        self.put("b")
        self.put("a/1")
        for status, code in ((503, "SlowDown"), (503, "SlowDown"), (500, "InternalError")):
            with self.expect_error(status, code):
                self.put("a/2")
        self.put("a/3")
        self.assertEqual(self.keys(), ["a/1", "a/3", "b"])
        report = self.server.control()
        self.assertEqual(report["faults"], [2, 1])
        self.assertEqual(report["counts"]["PUT"], 6)
        self.assertEqual(report["requests"][2], ["PUT", f"/{self.bucket}/a/2", 503])

    def test_status_by_query(self):
        self.server.fault("status", query="^list-type=2", headers={"Retry-After": "7"})
        self.put("a")
        with self.expect_error(503, "SlowDown") as expected:
            self.keys()
        headers = expected.exception.response["ResponseMetadata"]["HTTPHeaders"]
        self.assertEqual(headers["retry-after"], "7")

    def test_early_status(self):
        self.server.fault("status-early")
        with self.send_head(b"body" * PART) as connection:
            answer = read_until(connection, None)
        self.assertIn(b"503", answer.split(b"\r\n")[0])
        self.assertTrue(answer.endswith(b"</Error>"))
        self.assertEqual(self.server.control()["bytes_in"], 0)

    def test_cut(self):
        self.put("a", b"body" * 1000)
        self.server.fault("cut", at="body")
        self.assertEqual(self.get_signed("a"), (None, b"body" * 500))
        self.server.fault("cut", at="head")
        with self.send_head(b"", method="GET") as connection:
            data = read_until(connection, None)
        self.assertTrue(data.startswith(b"HTTP/1.1 200"))
        self.assertNotIn(b"\r\n\r\n", data)
        self.assertEqual(self.get_signed("a"), (200, b"body" * 1000))

    def get_signed(self, key):
        """The status of an object, and as much of its content as came."""
        path, headers = self.sign("GET", key)
        try:
            answer, content = self.server.request("GET", path, headers=headers)
            return answer.status, content
        except http.client.IncompleteRead as error:
            return None, error.partial

    def test_lost(self):
        self.server.fault("lost")
        with self.assertRaises(ConnectionClosedError):
            self.put("a")
        self.assertEqual(self.keys(), ["a"])
        self.assertEqual(self.server.control()["requests"][0][2], None)

    def test_stall(self):
        self.server.fault("stall", seconds=60)
        with self.assertRaises(ReadTimeoutError):
            self.client(timeout=0.5).put_object(Bucket=self.bucket, Key="a", Body=b"body")
        self.server.fault("stall", seconds=0.2)
        with self.assertRaises(ConnectionClosedError):
            self.put("a")
        self.assertEqual(self.keys(), [])

    def test_wrong_control(self):
        for faults in ([{"kind": "broken"}], [{"kind": "lost", "rate": 1}], [{}],
                       [{"kind": "cut", "at": "end"}], [{"kind": "lost", "key": "("}]):
            with self.assertRaises(ValueError):
                self.server.control("POST", faults=faults)


class MotoTests(ServerTests, unittest.TestCase):
    name = "moto"
    wrong_key_code = "InvalidAccessKeyId"
    wrong_body_code = b"XAmzContentSHA256Mismatch"

    def test_chunked_body(self):
        # S3 refuses a body without a declared length.
        self.assertEqual(self.put_chunked(), 501)
        self.assertEqual(self.keys(), [])

    def test_role(self):
        role = {"access_key": "ASIA", "secret_key": "S", "token": "T+/="}
        self.server.control("POST", credentials=[role])
        client = self.client(**role)
        client.put_object(Bucket=self.bucket, Key="a", Body=b"body")
        with self.expect_error(400, "InvalidToken"):
            self.client(**role | {"token": "U"}).list_objects_v2(Bucket=self.bucket)
        with self.expect_error(403, "InvalidAccessKeyId"):
            self.keys()
        self.server.control("POST", credentials=[role | {"expired": True}])
        with self.expect_error(400, "ExpiredToken"):
            client.list_objects_v2(Bucket=self.bucket)
        self.server.control("DELETE")
        self.assertEqual(self.keys(), ["a"])


class SwiftTests(ServerTests, unittest.TestCase):
    name = "swift"
    wrong_key_code = "SignatureDoesNotMatch"
    wrong_body_code = b"BadDigest"

    def test_chunked_body(self):
        self.assertEqual(self.put_chunked(), 200)
        self.assertEqual(self.get("a"), b"body")


def read_until(connection, end):
    """Reads up to the end, or up to the end of the stream."""
    data = b""
    while end is None or not data.endswith(end):
        block = connection.recv(1 if end else 65536)
        if not block:
            break
        data += block
    return data


if __name__ == "__main__":
    unittest.main()

"""AWS Signature Version 4 for S3: signs requests, and refuses wrong ones with the errors of S3."""

import datetime
import hashlib
import hmac
import re
from urllib.parse import quote, unquote_to_bytes

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
TIME_FORMAT = "%Y%m%dT%H%M%SZ"
LARGEST_SKEW = datetime.timedelta(minutes=15)
AUTHORIZATION = re.compile(
    ALGORITHM + r" *Credential=([^, ]+), *SignedHeaders=([^, ]+), *Signature=([0-9a-f]{64})")


class Refusal(Exception):
    """An error answer of S3; `details` become further elements of its XML."""

    def __init__(self, status, code, message, **details):
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.message, self.details = status, code, message, details


def encoded(text, safe=""):
    """The text percent-encoded as the signature needs it, whichever way it was encoded."""
    return quote(unquote_to_bytes(text), safe=safe + "-_.~")


def canonical_request(method, target, headers, signed, digest):
    """The canonical request; `headers` are pairs, and `signed` are lowercase names."""
    path, _, query = target.partition("?")
    parameters = sorted(
        tuple(encoded(part.replace("+", " ")) for part in parameter.partition("=")[::2])
        for parameter in query.split("&") if parameter)
    values = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(" ".join(value.split()))
    return "\n".join((
        method, encoded(path, safe="/"), "&".join("=".join(pair) for pair in parameters),
        *(f"{name}:{','.join(values[name])}" for name in signed), "", ";".join(signed), digest))


def text_to_sign(time, region, request):
    scope = f"{time[:8]}/{region}/s3/aws4_request"
    return "\n".join((ALGORITHM, time, scope, hashlib.sha256(request.encode()).hexdigest()))


def signature(secret, time, region, text):
    key = b"AWS4" + secret.encode()
    for part in (time[:8], region, "s3", "aws4_request", text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def signed_headers(method, target, host, body, server, others={}, time=None):
    """The headers of a request with `others`, all signed.

    `server` has the credentials and the region.
    """
    time = (time or datetime.datetime.now(datetime.UTC)).strftime(TIME_FORMAT)
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": time} | others
    signed = sorted(name.lower() for name in headers)
    region, access_key = server["region"], server["access_key"]
    text = text_to_sign(
        time, region, canonical_request(method, target, headers.items(), signed, digest))
    headers["Authorization"] = (
        f"{ALGORITHM} Credential={access_key}/{time[:8]}/{region}/s3/aws4_request, "
        f"SignedHeaders={';'.join(signed)}, "
        f"Signature={signature(server['secret_key'], time, region, text)}")
    return headers


class Verifier:
    """Checks requests as S3 does.

    `credentials` are dictionaries with `access_key` and `secret_key`; those of a role have a
    `token` too, and `expired` refuses them.
    """

    def __init__(self, region, credentials):
        self.region, self.credentials = region, credentials

    def check(self, method, target, headers):
        """Returns the declared SHA-256 of the body, or None if the body is unsigned.

        Raises Refusal if the signature, its date or its scope is wrong.
        """
        values = {name.lower(): value for name, value in headers}
        if "authorization" not in values:
            raise Refusal(403, "AccessDenied", "The request has no Authorization header")
        match = AUTHORIZATION.fullmatch(values["authorization"].strip())
        scope = match[1].rsplit("/", 4) if match else ()
        if len(scope) != 5:
            raise Refusal(
                400, "AuthorizationHeaderMalformed", "The authorization header is malformed")
        access_key, *scope = scope
        credentials = self.find(access_key, values)
        time = self.check_time(values)
        if scope != [time[:8], self.region, "s3", "aws4_request"]:
            raise Refusal(
                400, "AuthorizationHeaderMalformed",
                f"The authorization header is malformed; expecting {time[:8]}/{self.region}/s3",
                Region=self.region)
        digest = values.get("x-amz-content-sha256")
        if digest is None:
            raise Refusal(
                400, "InvalidRequest",
                "Missing required header for this request: x-amz-content-sha256")
        signed = match[2].split(";")
        unsigned = [
            name for name in values
            if (name == "host" or name.startswith("x-amz-")) and name not in signed]
        if unsigned:
            raise Refusal(
                403, "AccessDenied",
                "There were headers present in the request which were not signed",
                HeadersNotSigned=", ".join(unsigned))
        if signed != sorted(signed) or not set(signed) <= set(values):
            raise Refusal(
                400, "AuthorizationHeaderMalformed",
                "SignedHeaders are unsorted or not all in the request")
        request = canonical_request(method, target, headers, signed, digest)
        text = text_to_sign(time, self.region, request)
        expected = signature(credentials["secret_key"], time, self.region, text)
        if not hmac.compare_digest(expected, match[3]):
            raise Refusal(
                403, "SignatureDoesNotMatch",
                "The request signature we calculated does not match the signature you provided."
                " Check your key and signing method.",
                StringToSign=text, CanonicalRequest=request)
        if digest == UNSIGNED:
            return None
        if digest.startswith("STREAMING-"):
            raise Refusal(501, "NotImplemented", f"{digest} is not implemented")
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise Refusal(
                400, "InvalidArgument",
                "x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a valid sha256 value.")
        return digest

    def find(self, access_key, values):
        for credentials in self.credentials:
            if credentials["access_key"] == access_key:
                break
        else:
            raise Refusal(
                403, "InvalidAccessKeyId",
                "The AWS Access Key Id you provided does not exist in our records.",
                AWSAccessKeyId=access_key)
        if values.get("x-amz-security-token") != credentials.get("token"):
            raise Refusal(
                400, "InvalidToken", "The provided token is malformed or otherwise invalid.")
        if credentials.get("expired"):
            raise Refusal(400, "ExpiredToken", "The provided token has expired.")
        return credentials

    @staticmethod
    def check_time(values):
        try:
            time = datetime.datetime.strptime(values["x-amz-date"], TIME_FORMAT)
        except (KeyError, ValueError):
            raise Refusal(
                403, "AccessDenied",
                "AWS authentication requires a valid Date or x-amz-date header") from None
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        if abs(now - time) > LARGEST_SKEW:
            raise Refusal(
                403, "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
                RequestTime=values["x-amz-date"], ServerTime=now.strftime(TIME_FORMAT))
        return values["x-amz-date"]

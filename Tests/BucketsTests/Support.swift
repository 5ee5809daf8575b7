import Foundation
import Hashing
import PrefetchModel
import TestSupport
import Threading
import Transfers

@testable import Buckets

/// `PrefetchModel` has a type of this name, too.
typealias Response = TestSupport.Response

/// The settings of a bucket for tests.
struct BucketSettings: Sendable {
    var choice = CredentialChoice.auto
    var variables: [String: String] = [
        "AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret/of+tests",
        "AWS_REGION": "eu-central-1",
    ]
    var transfers = TransferConfiguration(userAgent: "tests")
    var deadline: ContinuousClock.Instant?
    var now = Timestamp(seconds: 1_700_000_000)

    func storage(at origin: Origin) throws -> ObjectStorage {
        var variables = variables
        variables["AWS_ENDPOINT_URL_S3"] = variables["AWS_ENDPOINT_URL_S3"] ?? origin.url("")
        let location = try required(ObjectLocation("s3://b/p"))
        let (values, now) = (variables, now)
        return try ObjectStorage(
            location, credentials: choice, transfers: transfers, until: deadline,
            variable: { values[$0] }, file: { _ in nil }, wallClock: { now })
    }
}

struct Missing: Error {}

func required<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw Missing() }
    return value
}

/// A stored object's answer.
func stored() -> Response { Response(headers: [("ETag", "\"e\"")]) }

/// An error of a service.
func problem(
    _ status: Int, _ code: String, headers: [(name: String, value: String)] = []
) -> Response {
    Response(
        status, headers: headers,
        body: Array("<Error><Code>\(code)</Code><Message>m</Message></Error>".utf8),
        type: "application/xml")
}

/// A temporary file with some bytes.
func withFile<Success>(
    _ bytes: [UInt8] = [], _ body: (Int32) async throws -> Success
) async throws -> Success {
    let path = FileManager.default.temporaryDirectory
        .appending(path: "prefetch-bucket-\(UUID().uuidString)").path
    let file = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
    guard file >= 0 else { throw Missing() }
    defer {
        close(file)
        unlink(path)
    }
    guard bytes.withUnsafeBytes({ pwrite(file, $0.baseAddress, $0.count, 0) }) == bytes.count
    else { throw Missing() }
    return try await body(file)
}

func contents(of file: Int32) throws -> [UInt8] {
    var status = stat()
    guard fstat(file, &status) == 0 else { throw Missing() }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
    guard count == bytes.count else { throw Missing() }
    return bytes
}

func digest(_ bytes: [UInt8]) -> ContentDigest {
    bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
}

/// The signature of a request, calculated by the rules of AWS Signature Version 4 from the fields
/// that it says are signed.
func expectedSignature(_ request: Origin.Request, secret: String) throws -> String {
    let authorization = try required(request.header("Authorization"))
    let scope = try required(value(of: "Credential", in: authorization))
        .split(separator: "/").dropFirst().joined(separator: "/")
    let names = try required(value(of: "SignedHeaders", in: authorization))
    let parts = request.target.split(separator: "?", maxSplits: 1)
    let fields = try names.split(separator: ";").map { name in
        "\(name):\(try required(request.header(String(name))))\n"
    }.joined()
    let canonical = [
        request.method, String(parts[0]), parts.count > 1 ? String(parts[1]) : "", fields, names,
        try required(request.header("x-amz-content-sha256")),
    ].joined(separator: "\n")
    let text = [
        "AWS4-HMAC-SHA256", try required(request.header("x-amz-date")), scope,
        "\(digest(Array(canonical.utf8)))",
    ].joined(separator: "\n")
    let key = scope.split(separator: "/").reduce(Array("AWS4\(secret)".utf8)) {
        hmac(key: $0, Array($1.utf8))
    }
    return hmac(key: key, Array(text.utf8)).map { String(format: "%02x", $0) }.joined()
}

/// A value of a field `Authorization`.
func value(of name: String, in authorization: String) -> String? {
    authorization.split(whereSeparator: { $0 == " " || $0 == "," }).first {
        $0.hasPrefix("\(name)=")
    }.map { String($0.dropFirst(name.count + 1)) }
}

/// HMAC with SHA-256 (RFC 2104).
private func hmac(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    var block = key.count > 64 ? digest(key).bytes : key
    block += Array(repeating: 0, count: 64 - block.count)
    let inner = digest(block.map { $0 ^ 0x36 } + message).bytes
    return digest(block.map { $0 ^ 0x5c } + inner).bytes
}

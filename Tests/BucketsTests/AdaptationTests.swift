import Foundation
import PrefetchModel
import TestSupport
import Testing
import Threading
import Transfers

@testable import Buckets

/// Requests that change after a service's response, and with the user's choices.
@Suite(.timeLimit(.minutes(15)))
struct AdaptationTests {
    private static let now = Timestamp(seconds: 1_700_000_000)

    /// Sends two objects, and lists the bucket.
    private func copy(
        at origin: Origin, endpoint: String? = nil, options: ObjectOptions = ObjectOptions(),
        variables: [String: String] = BucketSettings().variables,
        file: @escaping @Sendable (String) -> [UInt8]? = { _ in nil }
    ) async throws -> Result<Void, any Error> {
        var values = variables
        values["AWS_ENDPOINT_URL_S3"] = endpoint ?? origin.url("")
        let settings = values
        let storage = try ObjectStorage(
            try required(ObjectLocation("s3://b/p")), credentials: .auto, options: options,
            transfers: TransferConfiguration(userAgent: "tests"), variable: { settings[$0] },
            file: file, wallClock: { Self.now })
        return try await blocking {
            Result {
                for name in ["a", "c"] {
                    try storage.put(
                        name, .bytes([1, 2]), digest: digest([1, 2]), mediaType: "image/png")
                }
                _ = try storage.list("", after: "", limit: 1)
            }
        }
    }

    private static func answer(to request: Origin.Request) -> Response {
        request.method == "PUT"
            ? stored()
            : .text(
                "<L><IsTruncated>false</IsTruncated></L>", type: "application/xml")
    }

    private static func refusal(
        _ status: Int, _ code: String, _ message: String, date: String? = nil
    ) -> Response {
        Response(
            status, headers: date.map { [("Date", $0)] } ?? [],
            body: Array("<Error><Code>\(code)</Code><Message>\(message)</Message></Error>".utf8),
            type: "application/xml")
    }

    /// The messages of Amazon, MinIO and Ceph about a bucket with Object Lock.
    @Test(arguments: [
        (
            "InvalidRequest",
            "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with "
                + "Object Lock parameters"
        ),
        ("MissingContentMD5", "Missing required header for this request: Content-Md5."),
        ("InvalidRequest", "Content-MD5 HTTP header is required for Put Object requests"),
    ])
    func objectLockGetsDigests(code: String, message: String) async throws {
        try await withOrigin { origin in
            origin.serve { request in
                let hasDigest = request.header("Content-MD5") == "DLmI0EKn8o3V/itVs/Wseg=="
                return request.method != "PUT" || hasDigest
                    ? Self.answer(to: request) : Self.refusal(400, code, message)
            }
            try await copy(at: origin).get()
            // The second object needs no refusal.
            #expect(origin.snapshot.requests.map(\.method) == ["PUT", "PUT", "PUT", "GET"])
        }
    }

    @Test(arguments: [
        ("SecondLevelDomainForbidden", "Please use virtual hosted style to access."),
        (
            "PathStyleDomainForbidden",
            "The bucket must be addressed using COS virtual-styled domain"
        ),
        ("VirtualHostDomainRequired", "m"), ("InvalidRequest", "Use virtual-host style requests"),
    ])
    func theBucketMovesIntoTheHost(code: String, message: String) async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.header("Host")?.hasPrefix("b.localhost:") == true
                    ? Self.answer(to: request) : Self.refusal(403, code, message)
            }
            let endpoint = "http://localhost:\(origin.port)"
            try await copy(at: origin, endpoint: endpoint).get()
            let requests = origin.snapshot.requests
            #expect(
                requests.map(\.target).prefix(3) == ["/b/p/a", "/p/a", "/p/c"])
            // An address has no name for the bucket, and the user may have chosen.
            for (endpoint, addressing) in [
                (origin.url(""), BucketAddressing.auto), (endpoint, .path),
            ] {
                var options = ObjectOptions()
                options.addressing = addressing
                let result = try await copy(at: origin, endpoint: endpoint, options: options)
                let error = #expect(throws: ObjectStorageError.self) { try result.get() }
                #expect(error?.hint?.contains("--sink-addressing host") == true)
            }
            var options = ObjectOptions()
            options.addressing = .host
            let count = origin.snapshot.requests.count
            try await copy(at: origin, endpoint: endpoint, options: options).get()
            #expect(origin.snapshot.requests.count == count + 3)
        }
    }

    @Test func endpointsHaveBothForms() {
        let service = ObjectEndpoint(bucket: "b", address: "https://s.example:9000/x/", region: "r")
        #expect(!service.isInHost && service.mayBeInHost)
        #expect(service.base(isInHost: false) == "https://s.example:9000/x/b")
        #expect(service.base(isInHost: true) == "https://b.s.example:9000/x")
        let amazon = ObjectEndpoint(bucket: "b", address: nil, region: "cn-north-1")
        #expect(amazon.isInHost)
        #expect(amazon.base(isInHost: true) == "https://b.s3.cn-north-1.amazonaws.com.cn")
        for bucket in ["b.c", "B"] {
            let other = ObjectEndpoint(bucket: bucket, address: nil, region: "eu-west-1")
            #expect(!other.isInHost && !other.mayBeInHost)
            #expect(
                other.base(isInHost: other.isInHost)
                    == "https://s3.eu-west-1.amazonaws.com/\(bucket)")
        }
        for address in ["http://127.0.0.1:9000", "http://[::1]:9000"] {
            #expect(!ObjectEndpoint(bucket: "b", address: address, region: "r").mayBeInHost)
        }
    }

    /// Another program renews the file.
    @Test(arguments: ["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"])
    func keysAreReadAgain(code: String) async throws {
        try await withOrigin { origin in
            let token = Monitor("first")
            origin.serve { request in
                // The first object is stored with the first token.
                let isFirst = request.target.hasSuffix("/a")
                if isFirst { token.withLock { $0 = "second" } }
                return isFirst || request.header("x-amz-security-token") == "second"
                    ? Self.answer(to: request) : Self.refusal(400, code, "expired")
            }
            let result = try await copy(at: origin, variables: ["HOME": "/h"]) { path in
                guard path == "/h/.aws/credentials" else { return nil }
                return Array(
                    """
                    [default]
                    aws_access_key_id = A
                    aws_secret_access_key = S
                    aws_session_token = \(token.withLock { $0 })
                    """.utf8)
            }
            try result.get()
            #expect(
                origin.snapshot.requests.map { $0.header("x-amz-security-token") } == [
                    "first", "first", "second", "second",
                ])
        }
    }

    @Test func expiredKeysWithoutNewOnesAreAnError() async throws {
        try await withOrigin { origin in
            origin.serve { _ in Self.refusal(400, "ExpiredToken", "expired") }
            let result = try await copy(at: origin)
            let error = #expect(throws: ObjectStorageError.self) { try result.get() }
            #expect(error?.hint?.contains("no newer keys were found") == true)
            #expect(origin.snapshot.requests.count == 1)
        }
    }

    /// The service's clock is an hour ahead, or behind.
    @Test(arguments: [
        ("Tue, 14 Nov 2023 23:13:20 GMT", "20231114T231320Z"),
        ("Tue, 14 Nov 2023 21:13:20 GMT", "20231114T211320Z"),
    ])
    func theServicesClockIsTaken(date: String, time: String) async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.header("x-amz-date") == time
                    ? Self.answer(to: request)
                    : Self.refusal(403, "RequestTimeTooSkewed", "m", date: date)
            }
            try await copy(at: origin).get()
            let requests = origin.snapshot.requests
            #expect(requests.count == 4)
            for request in requests {
                let authorization = try #require(request.header("Authorization"))
                let signature = try expectedSignature(request, secret: "secret/of+tests")
                #expect(value(of: "Signature", in: authorization) == signature)
            }
        }
    }

    @Test(
        arguments: [
            ("AES256", ["AES256", nil]), ("aws:kms", ["aws:kms", nil]),
            ("aws:kms:arn:aws:kms:x", ["aws:kms", "arn:aws:kms:x"]),
        ] as [(String, [String?])])
    func choicesAreSent(encryption: String, fields: [String?]) async throws {
        try await withOrigin { origin in
            origin.serve { Self.answer(to: $0) }
            var options = ObjectOptions()
            options.encryption = encryption
            options.storageClass = "STANDARD_IA"
            options.paysRequests = true
            try await copy(at: origin, options: options).get()
            for request in origin.snapshot.requests {
                let isNew = request.method == "PUT"
                let name = "x-amz-server-side-encryption"
                #expect(
                    [request.header(name), request.header(name + "-aws-kms-key-id")]
                        == (isNew ? fields : [nil, nil]))
                #expect(request.header("x-amz-storage-class") == (isNew ? "STANDARD_IA" : nil))
                #expect(request.header("x-amz-request-payer") == "requester")
            }
        }
    }
}

/// The setting `credential_process`.
@Suite(.timeLimit(.minutes(15)))
struct CredentialProcessTests {
    private static let keys =
        #"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T","#
        + #""Expiration":"2030-01-01T00:00:00Z"}"#

    @Test func aProgramGivesKeys() throws {
        let found = try CredentialProcess(command: "printf '%s' '\(Self.keys)'").credentials()
        #expect(found.accessKey == "A" && found.secretKey == "S" && found.sessionToken == "T")
        #expect(found.expiresAt != nil)
    }

    @Test(arguments: [
        ("exit 3", "exit status 3"), ("true", "gives no keys"), ("echo '{}'", "gives no keys"),
        ("/no/such/program", "exit status 127"), ("yes", "no keys within"),
    ])
    func aProgramWithoutKeysIsAnError(command: String, message: String) {
        let error = #expect(throws: ObjectStorageError.self) {
            try CredentialProcess(command: command).credentials()
        }
        #expect(error?.description.contains(message) == true, "\(String(describing: error))")
    }

    /// A file that others can write to could run any program.
    @Test(
        arguments: [(0o600, true), (0o644, true), (0o664, false), (0o602, false)]
            as [(mode_t, Bool)])
    func onlyOwnFilesNameAProgram(mode: mode_t, isTrusted: Bool) async throws {
        let path = FileManager.default.temporaryDirectory
            .appending(path: "prefetch-config-\(UUID().uuidString)").path
        let text = "[default]\ncredential_process = printf '%s' '\(Self.keys)'\n"
        try Data(text.utf8).write(to: URL(filePath: path))
        defer { unlink(path) }
        #expect(chmod(path, mode) == 0)
        #expect(CredentialProcess.isTrusted(path) == isTrusted)
        try await withOrigin { origin in
            origin.serve { _ in stored() }
            let endpoint = origin.url("")
            let variables = ["AWS_CONFIG_FILE": path, "AWS_ENDPOINT_URL_S3": endpoint]
            let opened = Result {
                try ObjectStorage(
                    try required(ObjectLocation("s3://b")), credentials: .auto,
                    transfers: TransferConfiguration(userAgent: "tests"),
                    variable: { variables[$0] },
                    file: { $0 == path ? Array(text.utf8) : nil },
                    wallClock: { Timestamp(seconds: 1_700_000_000) })
            }
            guard isTrusted else {
                guard case .failure(let error as UserError) = opened else {
                    Issue.record("it was opened")
                    return
                }
                #expect(error.description.contains("credential_process"))
                return
            }
            let storage = try opened.get()
            for name in ["a", "c"] {
                try await blocking {
                    try storage.put(name, .bytes([1]), digest: digest([1]), mediaType: "image/png")
                }
            }
            #expect(
                origin.snapshot.requests.map { $0.header("x-amz-security-token") } == ["T", "T"])
        }
    }
}

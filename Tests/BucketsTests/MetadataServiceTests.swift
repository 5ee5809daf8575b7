import PrefetchModel
import TestSupport
import Testing
import Transfers

@testable import Buckets

@Suite(.timeLimit(.minutes(15)))
struct MetadataServiceTests {
    private static let roles = "/latest/meta-data/iam/security-credentials/"

    private static func keys(_ name: String, expiration: String) -> Response {
        .text(
            #"{"AccessKeyId": "\#(name)", "SecretAccessKey": "s", "Token": "t", "#
                + #""Expiration": "\#(expiration)"}"#, type: "application/json")
    }

    /// The settings of a bucket with the keys of a service.
    private func settings(_ variables: [String: String]) -> BucketSettings {
        var settings = BucketSettings()
        settings.choice = .metadata
        settings.variables = variables
        // The service itself is not reached through a proxy.
        settings.transfers.requests.proxies = ProxySettings(
            explicit: "http://127.0.0.1:9", exceptions: "*")
        return settings
    }

    private func accessKeys(_ origin: Origin) -> [String?] {
        origin.snapshot.requests.filter { $0.path.hasPrefix("/b/") }.map { request in
            request.header("Authorization").flatMap { value(of: "Credential", in: $0) }
                .map { String($0.prefix { $0 != "/" }) }
        }
    }

    @Test func aMachineGivesItsKeysByToken() async throws {
        try await withOrigin { origin in
            let tokens = Counted([Response(500), .text("TOKEN", type: "text/plain")])
            origin.serve { request in
                switch request.path {
                case "/latest/api/token": tokens.next()
                case Self.roles: .text("role\n", type: "text/plain")
                case Self.roles + "role": Self.keys("AKIDROLE", expiration: "2030-01-01T00:00:00Z")
                default: Response(body: [1])
                }
            }
            let settings = settings(["AWS_EC2_METADATA_SERVICE_ENDPOINT": origin.url("/")])
            let storage = try settings.storage(at: origin)
            try await blocking {
                for _ in 0..<2 { _ = try storage.bytes(of: "a", limit: .mebibytes(1)) }
            }
            let requests = origin.snapshot.requests
            #expect(
                requests.map(\.method) == ["PUT", "PUT", "GET", "GET", "GET", "GET"], "\(requests)")
            #expect(requests[1].header("X-aws-ec2-metadata-token-ttl-seconds") == "21600")
            #expect(requests[2].header("X-aws-ec2-metadata-token") == "TOKEN")
            #expect(requests[3].header("X-aws-ec2-metadata-token") == "TOKEN")
            #expect(accessKeys(origin) == ["AKIDROLE", "AKIDROLE"])
            #expect(requests.last?.header("x-amz-security-token") == "t")
        }
    }

    @Test func aContainerGivesItsKeysForItsAuthorization() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.path == "/keys"
                    ? Self.keys("AKIDPOD", expiration: "2030-01-01T00:00:00Z") : Response(body: [1])
            }
            let settings = settings([
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/keys"),
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer x\n",
            ])
            let storage = try settings.storage(at: origin)
            _ = try await blocking { try storage.bytes(of: "a", limit: .mebibytes(1)) }
            #expect(origin.snapshot.requests.first?.header("Authorization") == "Bearer x")
            #expect(accessKeys(origin) == ["AKIDPOD"])
        }
    }

    /// Expired keys, and keys that the bucket says have expired, are replaced.
    @Test(arguments: [true, false])
    func expiredKeysAreReplaced(byTheBucket: Bool) async throws {
        try await withOrigin { origin in
            let keys = Counted([
                Self.keys(
                    "OLD", expiration: byTheBucket ? "2030-01-01T00:00:00Z" : "2001-01-01T00:00:00Z"
                ),
                Self.keys("NEW", expiration: "2030-01-01T00:00:00Z"),
            ])
            let answers = Counted(
                (byTheBucket ? [problem(400, "ExpiredToken")] : []) + [Response(body: [1])])
            origin.serve { $0.path == "/keys" ? keys.next() : answers.next() }
            let settings = settings(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/keys")])
            let storage = try settings.storage(at: origin)
            try await blocking {
                for _ in 0..<2 { _ = try storage.bytes(of: "a", limit: .mebibytes(1)) }
            }
            #expect(accessKeys(origin) == (byTheBucket ? ["OLD", "NEW", "NEW"] : ["OLD", "NEW"]))
        }
    }

    @Test(arguments: [
        (Response(404), "answered 404"), (.text("{}", type: "application/json"), "gives no keys"),
        (.text(#"{"AccessKeyId": "a b", "SecretAccessKey": "s"}"#), "with control characters"),
    ])
    func aServiceWithoutKeysIsAnError(answer: Response, message: String) async throws {
        try await withOrigin { origin in
            origin.serve { _ in answer }
            let settings = settings(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/keys")])
            let storage = try settings.storage(at: origin)
            let result = try await blocking {
                Result { try storage.bytes(of: "a", limit: .mebibytes(1)) }
            }
            let error = #expect(throws: ObjectStorageError.self) { try result.get() }
            #expect(error?.description.contains(message) == true, "\(String(describing: error))")
            #expect(origin.snapshot.requests.count == 1)
        }
    }

    /// The time limits of its requests belong to no flag.
    @Test func anUnreachableServiceIsAnErrorWithoutAFlag() async throws {
        try await withOrigin(accepting: .nothing) { origin in
            let settings = settings(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/keys")])
            let storage = try settings.storage(at: origin)
            let result = try await blocking {
                Result { try storage.bytes(of: "a", limit: .mebibytes(1)) }
            }
            let error = #expect(throws: ObjectStorageError.self) { try result.get() }
            #expect(
                error?.description.hasSuffix(": no response") == true,
                "\(String(describing: error))")
        }
    }
}

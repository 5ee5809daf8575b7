import Foundation
import PrefetchModel
import TestSupport
import Testing
import Transfers

@testable import Buckets

@Suite(.timeLimit(.minutes(15)))
struct SignatureTests {
    /// Characters that a key and a query must encode as the signature does.
    @Test func requestsAreSigned() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.method == "PUT"
                    ? stored()
                    : .text(
                        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
                        type: "application/xml")
            }
            var settings = BucketSettings()
            settings.variables["AWS_SESSION_TOKEN"] = "token=="
            let storage = try settings.storage(at: origin)
            try await blocking {
                try storage.put(
                    "a b/é~+.png", .bytes([1, 2]), digest: digest([1, 2]), mediaType: "image/png")
                _ = try storage.list("x/", after: "x/=&", limit: 7)
            }
            let requests = origin.snapshot.requests
            try #require(requests.map(\.method) == ["PUT", "GET"])
            for request in requests {
                let authorization = try #require(request.header("Authorization"))
                #expect(authorization.hasPrefix("AWS4-HMAC-SHA256 "))
                let credential = value(of: "Credential", in: authorization)
                #expect(credential?.hasPrefix("AKIDTEST/") == true)
                #expect(credential?.hasSuffix("/eu-central-1/s3/aws4_request") == true)
                #expect(request.header("x-amz-security-token") == "token==")
                #expect(
                    request.header("x-amz-content-sha256") == "\(digest(request.body))",
                    "\(request)")
                #expect(
                    try value(of: "Signature", in: authorization)
                        == expectedSignature(request, secret: "secret/of+tests"))
            }
            #expect(requests[0].target == "/b/p/a%20b/%C3%A9~%2B.png")
            #expect(requests[0].body == [1, 2])
            #expect(requests[0].header("Content-Type") == "image/png")
            #expect(
                requests[1].target
                    == "/b/?list-type=2&max-keys=7&prefix=p%2Fx%2F&start-after=p%2Fx%2F%3D%26")
        }
    }

    @Test func requestsWithoutCredentialsAreNotSigned() async throws {
        try await withOrigin { origin in
            origin.serve("/b/p/a", Response(body: [1]))
            var settings = BucketSettings()
            settings.choice = .none
            let storage = try settings.storage(at: origin)
            let bytes = try await blocking { try storage.bytes(of: "a", limit: .mebibytes(1)) }
            #expect(bytes == [1])
            #expect(origin.snapshot.requests.first?.header("Authorization") == nil)
        }
    }

    @Test(arguments: [
        ("AWS_ENDPOINT_URL_S3", "ftp://h"), ("AWS_ENDPOINT_URL_S3", "http://u:p@h"),
        ("AWS_REGION", "a b"), ("AWS_SECRET_ACCESS_KEY", "a\n"),
    ])
    func settingsThatCannotBeUsedAreRefused(name: String, value: String) async throws {
        try await withOrigin { origin in
            var settings = BucketSettings()
            settings.variables[name] = value
            #expect(throws: UserError.self) { try settings.storage(at: origin) }
        }
    }
}

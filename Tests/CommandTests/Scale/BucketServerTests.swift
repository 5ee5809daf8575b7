import Foundation
import TestSupport
import Testing

/// Moto and OpenStack Swift, behind a proxy that checks signatures and puts faults into responses.
@Suite(.timeLimit(.minutes(15)))
struct BucketServerTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../../..")
        .standardizedFileURL.path

    private static func hasFile(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: path)
    }

    private static let hasMoto = hasFile(root + "/.build-s3/bin/python")
    private static let hasSwift = hasMoto && hasFile("/usr/lib/python3/dist-packages/swift")
    private static let hint: Comment = "Tests/s3/servers --install installs the servers of buckets"

    @Test(.enabled(if: hasMoto, hint)) func bucketsWorkWithMoto() async throws {
        try await check("moto")
    }

    @Test(.enabled(if: hasSwift, hint)) func bucketsWorkWithOpenStackSwift() async throws {
        try await check("swift")
    }

    private func check(_ server: String) async throws {
        try await withWorkspace { workspace in
            var command = workspace.command([server])
            command.environment["PREFETCH_BINARY"] = command.executable
            command.executable = BucketServerTests.root + "/Tests/s3/check"
            command.timeLimit = .seconds(540)
            let result = try await command.run()
            #expect(result.status == 0, "\(result)")
        }
    }
}

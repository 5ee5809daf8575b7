import Foundation
import TestSupport
import Testing

/// Moto and OpenStack Swift, behind a proxy that checks signatures and puts faults into responses.
@Suite(.timeLimit(.minutes(10)))
struct BucketServerTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../../..")
        .standardizedFileURL.path

    private static var areInstalled: Bool {
        FileManager.default.isExecutableFile(atPath: root + "/.build-s3/bin/python")
    }

    @Test(.enabled(if: areInstalled, "Tests/s3/servers --install installs the servers of buckets"))
    func bucketsWorkWithBothServers() async throws {
        try await withWorkspace { workspace in
            var command = workspace.command([])
            command.environment["PREFETCH_BINARY"] = command.executable
            command.executable = BucketServerTests.root + "/Tests/s3/check"
            command.timeLimit = .seconds(540)
            let result = try await command.run()
            #expect(result.status == 0, "\(result)")
        }
    }
}

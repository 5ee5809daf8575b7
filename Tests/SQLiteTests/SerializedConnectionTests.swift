import Foundation
import SQLite
import Testing

@Suite(.timeLimit(.minutes(15)))
struct SerializedConnectionTests {
    private let folder: DatabaseFolder
    private let shared: SerializedConnection

    init() throws {
        folder = try DatabaseFolder()
        let connection = try folder.connect()
        try connection.execute("CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (0)")
        shared = SerializedConnection(connection)
    }

    /// Runs `body` on new threads and waits for them.
    private func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void)
        async throws
    {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    try await withCheckedThrowingContinuation { continuation in
                        Thread { continuation.resume(with: Result { try body(number) }) }.start()
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Each thread reads and writes in two steps, which no other may interrupt.
    @Test func serialisesThreads() async throws {
        let shared = shared
        try await onThreads(4) { _ in
            for _ in 0..<100 {
                try shared.access { connection in
                    let number = try connection.integers("SELECT a FROM t")[0]
                    try Statement(connection, sql: "UPDATE t SET a = ?").execute(
                        .integer(number + 1))
                }
            }
        }
        #expect(try shared.access { try $0.integers("SELECT a FROM t") } == [400])
    }

    @Test func nestedAccessTraps() async throws {
        await #expect(processExitsWith: .failure) {
            let shared = SerializedConnection(try Connection(path: ":memory:", access: .readWrite))
            shared.access { _ in shared.access { _ in } }
        }
    }

    @Test func connectionOnAnotherThreadTraps() async throws {
        await #expect(processExitsWith: .failure) {
            nonisolated(unsafe) let connection = try Connection(
                path: ":memory:", access: .readWrite)
            let isDone = DispatchSemaphore(value: 0)
            let thread = Thread {
                try? connection.execute("SELECT 1")
                isDone.signal()
            }
            thread.start()
            isDone.wait()
        }
    }
}

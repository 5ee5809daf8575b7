import Foundation
import Testing

@testable import prefetch

/// `merge --check`.
@Suite(.timeLimit(.minutes(15)))
struct MergeCheckTests {
    /// Writes the summary of a shard.
    private func write(
        _ index: Int, _ count: Int, status: Int = 0, more: String = "", in folder: String
    ) throws -> String {
        let path = "\(folder)/s\(index)-\(count).json"
        try """
        {"type":"summary","exit_status":\(status)\(more),\
        "shard":{"index":\(index),"count":\(count),"plan":null}}

        """.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    @Test func missingShardsAreIndexRanges() throws {
        try withFolder { folder in
            let done = [0, 1, 2, 4, 5, 16, 20, 21, 22]
            var files = try done.map { try write($0, 23, in: folder) }
            files += [
                try write(3, 23, status: 3, in: folder),
                try write(6, 23, more: #","ended_by":"deadline""#, in: folder),
                try write(7, 23, more: #","outcomes":{"cancelled":4}"#, in: folder),
                try write(8, 23, more: #","entries":7"#, in: folder),
                try write(7, 8, in: folder), folder + "/text.json", folder + "/absent.json",
            ]
            try "no json".write(
                toFile: folder + "/text.json", atomically: true, encoding: .utf8)
            let (missing, problems) = try MergeCheck("23").missing(from: files)
            #expect(MergeCheck.ranges(missing) == "3,6-15,17-19")
            #expect(missing.count == 14)
            let found = problems.map { "\($0.path.dropFirst(folder.count + 1)): \($0.reason)" }
            let wanted = [
                "s3-23.json: shard 3 ended with status 3",
                "s6-23.json: shard 6 was ended by --deadline",
                "s7-23.json: shard 7 has 4 cancelled entries", "s7-8.json: shard 7 of 8",
                "text.json: no summary of a shard", "absent.json: ",
                "s8-23.json: shard 8 ran other lists, with 7 lines instead of 0",
            ]
            #expect(found.count == wanted.count, "\(found)")
            for (problem, text) in zip(found, wanted) {
                #expect(problem.hasPrefix(text), "\(found)")
            }
            let whole = try MergeCheck("1").missing(from: [try write(0, 1, in: folder)])
            #expect(whole.indexes == [] && whole.problems.isEmpty)
        }
    }
}

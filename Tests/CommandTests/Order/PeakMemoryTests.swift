import Foundation
import PrefetchModel
import TestSupport
import Testing

/// The peak memory of the program, without sanitizers, which take several times as much.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: !Sanitizer.isActive, "memory is not measured under a sanitizer"))
struct PeakMemoryTests {
    /// One line of 100 MB, plain and as 100 kB of gzip, followed by a good one.
    @Test(arguments: [false, true])
    func anEndlessLineTakesNoMemory(isCompressed: Bool) async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes], measuresMemory: true) {
                workspace in
                let script = """
                    import gzip, sys
                    opened = gzip.open if sys.argv[1] == "true" else open
                    with opened("manifest.txt", "wb") as file:
                        for _ in range(100):
                            file.write(b"x" * (1 << 20))
                        file.write(b"\\n" + sys.argv[2].encode() + b"\\n")
                    """
                var command = workspace.command(["-c", script, "\(isCompressed)", url])
                command.executable = "/usr/bin/python3"
                #expect(try await command.run().status == 0)
                let run = try workspace.finish(
                    try await workspace.run("manifest.txt", "--report", "report.jsonl"), entries: 2)
                #expect(run.summary.outcomes == ["failed": 1, "downloaded": 1], "\(run.result)")
                #expect(try #require(run.result.peakMemoryInBytes) < 80 << 20)
            }
        }
    }

    /// Rows with 60 KB of columns for the report take at most 48 MB more than short ones. So do
    /// entries that end together: their host is given up, or all have one URL.
    @Test(arguments: ["served", "missing", "unreachable", "equal"])
    func wideRowsTakeLittleMemory(kind: String) async throws {
        let picture = Fixtures.png(width: 24, height: 24, seed: 0)
        let value = String(repeating: "abcdefghij", count: 300)
        try await withOrigin { origin in
            origin.serve { _ in kind == "missing" ? .notFound : .image(picture) }
            let base = kind == "unreachable" ? "http://127.0.0.1:1/" : origin.url("/")
            try await withWorkspace(without: [.retries, .probes], measuresMemory: true) {
                workspace in
                func peak(columns: Int) async throws -> Int {
                    let row = String(repeating: ",\(value)", count: columns)
                    let names = (0..<columns).map { ",c\($0)" }.joined()
                    let rows = (0..<1500).map { kind == "equal" ? base : base + "\($0)" }
                    let list = "url\(names)\n" + rows.map { $0 + row + "\n" }.joined()
                    try workspace.write(Array(list.utf8), to: "list.csv")
                    var most = 0
                    // Later runs find the entries warm or blacklisted.
                    for number in 1...2 {
                        let run = try await workspace.run(
                            "list.csv", "--report", "report.jsonl", "--cache-dir", "\(columns)")
                        let isWell = kind == "served" || kind == "equal"
                        #expect(run.status == (isWell ? 0 : 1), "\(number): \(run)")
                        most = max(most, try #require(run.peakMemoryInBytes))
                    }
                    return most
                }
                let short = try await peak(columns: 1)
                let wide = try await peak(columns: 20)
                #expect(wide <= short + 48_000_000)
            }
        }
    }

    @Test func memoryStaysFlatOver20000Entries() async throws {
        let pictures =
            (0..<48).map { Fixtures.png(width: 24, height: 24, seed: $0) } + [
                try Fixtures.file("baseline.jpg"), try Fixtures.file("progressive.jpg"),
            ]
        try await withOrigin { origin in
            origin.serve { request in
                guard let number = Int(request.path.dropFirst()), number % 20 != 0 else {
                    return nil
                }
                return .image(pictures[number % pictures.count])
            }
            let lines = (0..<20_000).map { origin.url("/\($0)") }
            try await withWorkspace(without: [.retries, .probes], measuresMemory: true) {
                workspace in
                let first = try await workspace.prefetch(
                    lines, "--order", "lifo", "--summary", "json")
                #expect(first.result.status == 1, "\(first.result)")
                #expect(first.summary.outcomes == ["downloaded": 19_000, "failed": 1000])
                #expect(first.summary.reasons == ["http-status": 1000])
                #expect(try #require(first.result.peakMemoryInBytes) < 150 << 20)
                #expect(try await workspace.judge() == 19_000)
                let second = try await workspace.prefetch(lines, "--order", "fifo")
                #expect(second.summary["fresh"] == 19_000)
                #expect(try #require(second.result.peakMemoryInBytes) < 150 << 20)
            }
        }
    }

    /// Bodies of 4 MB that do not fit in memory together, and an origin faster than any codec.
    @Test func largePicturesStayInsideTheMemoryBudget() async throws {
        let picture = Fixtures.png(width: 1200, height: 1200, isNoise: true)
        try await withOrigin { origin in
            origin.serve { _ in .image(picture) }
            try await withWorkspace(measuresMemory: true) { workspace in
                let lines = (0..<24).map { origin.url("/\($0)") }
                let run = try await workspace.prefetch(
                    lines, "--memory", "64MiB", "--encode", "original")
                #expect(run.summary["downloaded"] == 24, "\(run.result)")
                #expect(try #require(run.result.peakMemoryInBytes) < (64 + 60) << 20)
            }
        }
    }

    /// Noise as PNG, JPEG and GIF. The program itself makes the JPEG.
    private static let pictures = Task {
        let png = Fixtures.png(width: 4000, height: 3000, isNoise: true)
        let jpeg = try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve { _ in .image(png) }
            return try await withWorkspace { workspace -> [UInt8] in
                _ = try await workspace.prefetch([url], "--encode", "jpeg")
                let path = try await workspace.run("get", url).outputLines[0]
                return Array(try Data(contentsOf: URL(filePath: path)))
            }
        }
        return [png, jpeg, Fixtures.noiseGIF(width: 4000, height: 3000)]
    }

    private static let settings = [
        ("64MiB", ["webp", "--resize", "1920"]), ("64MiB", ["original"]),
        ("100MiB", ["png", "--resize", "1920"]), ("100MiB", ["auto", "--resize", "1920"]),
        ("200MiB", ["avif", "--resize", "1920"]), ("200MiB", ["webp", "--effort", "fast"]),
        ("200MiB", ["same"]),
    ]

    /// The share of bodies holds few pictures of 12 megapixels, which arrive faster than they are
    /// encoded.
    @Test(arguments: settings)
    func peakIsAtMost60MegabytesAboveMemory(memory: String, encoding: [String]) async throws {
        let pictures = try await PeakMemoryTests.pictures.value
        let limit = try #require(ByteCount(quantity: memory)).bytes + 60_000_000
        try await withOrigin { origin in
            origin.serve { request in
                guard let number = Int(request.path.dropFirst()) else { return nil }
                return .image(pictures[number % pictures.count])
            }
            try await withWorkspace(without: [.retries, .probes], measuresMemory: true) {
                workspace in
                let lines = (0..<9).map { origin.url("/\($0)") }
                let run = try await workspace.prefetch(
                    lines, ["--memory", memory, "--max-decode-time", "10m", "--encode"] + encoding)
                let reasons = Set(run.summary.reasons.keys)
                #expect(reasons.isSubset(of: ["too-many-pixels"]), "\(run.result)")
                #expect(run.summary["downloaded"] > 2, "\(run.result)")
                #expect(try #require(run.result.peakMemoryInBytes) <= limit, "\(run.result)")
                try workspace.removeCache()
            }
        }
    }

    /// One entry per host, and all hosts dead. Each host once took 1.4 KB, and each transfer
    /// searched libcurl's addresses of all hosts of the last minute.
    @Test(arguments: ["fifo", "lifo"])
    func manyHostsTakeLittleMemory(order: String) async throws {
        let count = 60_000
        let lines = (0..<count).map { "http://127.1.\($0 / 250).\($0 % 250 + 1):1/a.png" }
        try await withWorkspace(without: [.retries, .probes], measuresMemory: true) { workspace in
            try workspace.manifest(lines)
            let result = try await workspace.run(
                "manifest.txt", "--retry", "0", "--host-timeout", "0", "--order", order, "--sync",
                "off")
            #expect(result.status == 1, "\(result)")
            #expect(result.error.contains("\(count) entries: \(count) failed"), "\(result)")
            #expect(try #require(result.peakMemoryInBytes) < 104 << 20)
        }
    }
}

import TestSupport
import Testing

/// A command that writes a file outside of the cache, by the flag that names the file.
///
/// A workspace for them has the list `list.txt`, its images in the cache, and the report
/// `old.jsonl` of an earlier run.
struct FileWriter: CustomTestStringConvertible, Sendable {
    let flag: String
    let arguments: @Sendable (_ path: String) -> [String]
    /// Whether it replaces the file at its end, and always leaves a whole one.
    var replaces = true

    var testDescription: String { flag }

    private static func run(_ flag: String, replaces: Bool = true) -> FileWriter {
        FileWriter(
            flag: flag,
            arguments: { path in
                // The database is not synchronised, only the file.
                let options = ["-q", "--retry", "0", "--retry-failed", "--sync", "off"]
                return ["run", "list.txt", "new.txt"] + options + [flag, path]
            }, replaces: replaces)
    }

    private static func export(_ flag: String) -> FileWriter {
        FileWriter(flag: flag) { ["export", "out", "--layout", "mirror", "-q", flag, $0] }
    }

    static let all: [FileWriter] = [
        run("--report", replaces: false), run("--html"), run("--prometheus"), run("--junit"),
        run("--cookie-jar"), export("--map"), export("--map-json"),
        FileWriter(flag: "plan -o") { ["plan", "list.txt", "--shards", "2", "-q", "-o", $0] },
        FileWriter(flag: "report -o") { ["report", "old.jsonl", "-o", $0] },
        FileWriter(flag: "config init") { ["config", "init", $0, "--force"] },
    ]
}

/// A workspace for ``FileWriter``, with images to request.
func withFileWriters(_ body: (Workspace, Origin) async throws -> Void) async throws {
    try await withOrigin { origin in
        let urls = origin.serveImages(3)
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            try workspace.manifest(urls, name: "list.txt")
            let run = try await workspace.run("run", "list.txt", "--report", "old.jsonl")
            #expect(run.status == 0, "\(run)")
            // A run writes its cookies only after a request, which this URL needs each time.
            try workspace.manifest([origin.url("/missing.png")], name: "new.txt")
            try await body(workspace, origin)
        }
    }
}

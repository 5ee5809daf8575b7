import Foundation
import TestSupport
import Testing

/// Placeholders from a run to `list --json` and the report, and `prefetch placeholders`.
@Suite(.timeLimit(.minutes(15)))
struct PlaceholderCommandTests {
    private static let names: Set = ["prefetch.thumbhash", "prefetch.color"]

    /// The program's own attributes by key.
    private func placeholders(_ workspace: Workspace) async throws -> [String: [String: String]] {
        let list = try await workspace.run("list", "--json")
        #expect(list.status == 0, "\(list)")
        var found: [String: [String: String]] = [:]
        for object in try list.jsonLines() {
            let attributes = try #require(object["attributes"] as? [String: String])
            found[try #require(object["key"] as? String)] = attributes.filter {
                PlaceholderCommandTests.names.contains($0.key)
            }
        }
        return found
    }

    private func reportLines(_ workspace: Workspace, _ number: Int) throws -> [[String: Any]] {
        let text = String(
            decoding: try workspace.bytes(of: workspace.folder + "/report-\(number).jsonl"),
            as: UTF8.self)
        return try text.split(separator: "\n").compactMap { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            return object as? [String: Any]
        }.filter { $0["type"] as? String == "result" }
    }

    // MARK: Runs

    @Test func listAndReportShowWhatARunMade() async throws {
        try await withOrigin { origin in
            origin.serve("/a.jpg", .image(try Fixtures.file("baseline.jpg")))
            let urls = origin.serveImages(2) + [origin.url("/a.jpg")]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.summary.outcomes == ["downloaded": 3], "\(run.result)")
                let stored = try await placeholders(workspace)
                #expect(Set(stored.keys) == Set(urls))
                for line in try reportLines(workspace, 1) {
                    let key = try #require(line["key"] as? String)
                    let hash = try #require(line["thumbhash"] as? String)
                    #expect(stored[key]?["prefetch.thumbhash"] == hash)
                    #expect(stored[key]?["prefetch.color"] == line["color"] as? String)
                    #expect((5...25).contains(Data(base64Encoded: hash)?.count ?? 0))
                }
                for colour in stored.values.compactMap({ $0["prefetch.color"] }) {
                    #expect(colour.wholeMatch(of: /#[0-9a-f]{6}/) != nil, "\(colour)")
                }
                // Nothing that is fresh is told of again, or written.
                let database = try await workspace.query("SELECT * FROM resource ORDER BY id")
                let again = try await workspace.prefetch(urls)
                #expect(again.summary.outcomes == ["fresh": 3], "\(again.result)")
                #expect(try reportLines(workspace, 2).allSatisfy { $0["thumbhash"] == nil })
                let after = try await workspace.query("SELECT * FROM resource ORDER BY id")
                #expect(after == database)
                let get = try await workspace.run("attr", "get", urls[2], "prefetch.color")
                #expect(get.output == stored[urls[2]]?["prefetch.color"], "\(get)")

                // Users cannot set or remove them.
                let line = try await workspace.prefetch(["\(urls[0])?2 attr.prefetch.color=red"])
                #expect(line.report.verdicts == ["failed/invalid-entry"], "\(line.result)")
                for arguments in [
                    ["attr", "set", urls[0], "prefetch.color", "red"],
                    ["attr", "rm", urls[0], "prefetch.color"],
                ] {
                    let result = try await workspace.command(arguments).run()
                    #expect(result.status == 64, "\(result)")
                }
                #expect(try await placeholders(workspace) == stored)
            }
        }
    }

    @Test func placeholderFollowsItsPicture() async throws {
        try await withOrigin { origin in
            let url = origin.url("/a")
            origin.serve("/a", .picture(Fixtures.png(seed: 1)))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url])
                let first = try await placeholders(workspace)[url]
                #expect(first?.count == 2)
                // The same bytes again are not decoded, with the flag or without.
                _ = try await workspace.prefetch([url], "--no-placeholders")
                #expect(try await placeholders(workspace)[url] == first)
                origin.serve("/a", .picture(Fixtures.png(seed: 2)))
                _ = try await workspace.prefetch([url])
                let second = try await placeholders(workspace)[url]
                #expect(second?.count == 2 && second != first)
                // Of another picture it would be wrong.
                origin.serve("/a", .picture(Fixtures.png(seed: 3)))
                _ = try await workspace.prefetch([url], "--no-placeholders")
                #expect(try await placeholders(workspace)[url] == [:])
            }
        }
    }

    // MARK: Stored images

    @Test func commandMakesThoseThatAreLacking() async throws {
        try await withOrigin { origin in
            origin.serve("/a.jpg", .image(try Fixtures.file("progressive.jpg")))
            let urls = origin.serveImages(3) + [origin.url("/a.jpg")]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls, "--no-placeholders")
                #expect(run.summary.outcomes == ["downloaded": 4], "\(run.result)")
                #expect(try await placeholders(workspace).values.allSatisfy(\.isEmpty))
                // An older cache stays fresh.
                let again = try await workspace.prefetch(urls)
                #expect(again.summary.outcomes == ["fresh": 4], "\(again.result)")
                #expect(try await placeholders(workspace).values.allSatisfy(\.isEmpty))
                let requests = origin.requests.count

                let count = try await workspace.run("placeholders", "-n")
                #expect(count.status == 0 && count.output == "4\n", "\(count)")
                let made = try await workspace.run("placeholders")
                #expect(made.status == 0 && made.output.isEmpty, "\(made)")
                #expect(made.error == "prefetch: 4 placeholders made\n", "\(made)")
                let stored = try await placeholders(workspace)
                #expect(stored.values.allSatisfy { $0.count == 2 })
                #expect(origin.requests.count == requests)
                let rest = try await workspace.run("placeholders", "-n")
                #expect(rest.output == "0\n", "\(rest)")
                let nothing = try await workspace.run("placeholders", "-q")
                #expect(nothing.status == 0 && nothing.error.isEmpty, "\(nothing)")

                // They equal a run's placeholders if the stored pixels are the same.
                _ = try await workspace.prefetch(urls, "--refresh", "force")
                let ofRun = try await placeholders(workspace)
                for url in urls.prefix(3) { #expect(ofRun[url] == stored[url]) }

                // A call that was ended midway leaves some without, and the next call makes those
                // and no others.
                try await workspace.runSQL(
                    """
                    UPDATE resource SET color = 0x00CAFE;
                    UPDATE resource SET thumbhash = NULL, color = NULL WHERE id IN
                        (SELECT id FROM resource ORDER BY id LIMIT 2 OFFSET 1);
                    """)
                let more = try await workspace.run("placeholders")
                #expect(more.error == "prefetch: 2 placeholders made\n", "\(more)")
                let all = try await placeholders(workspace)
                #expect(all.values.allSatisfy { $0.count == 2 })
                #expect(all.values.filter { $0["prefetch.color"] == "#00cafe" }.count == 2)
            }
        }
    }

    @Test func damagedFilesAreNamedAndOthersDone() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls, "--no-placeholders")
                let path = try #require(
                    run.report.entries.first { $0.url == urls[1] }?.path)
                try Data("no picture".utf8).write(
                    to: URL(filePath: workspace.cache).appending(path: path))
                let made = try await workspace.run("placeholders")
                #expect(made.status == 1, "\(made)")
                #expect(
                    made.error == """
                        prefetch: \(urls[1]): \(path) is missing or damaged
                        prefetch: 2 placeholders made, 1 image failed

                        """, "\(made)")
                let stored = try await placeholders(workspace)
                #expect(urls.map { stored[$0]?.count } == [2, 0, 2])
                // Its next try is the next call's.
                let again = try await workspace.run("placeholders")
                #expect(again.status == 1 && again.error.contains(urls[1]), "\(again)")
                try workspace.removeCache()
            }
        }
    }
}

/// Placeholders of photographs, compared with an independent program's.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: SharedData.isAvailable, "the shared data is not there"))
struct PlaceholderJudgeTests {
    /// Ours are of an eighth of the size, reduced to 32 pixels, the judge's of all pixels, reduced
    /// to 100. A cosine's four bits may differ by two; the means by one.
    @Test func placeholdersAreNearlyThoseOfAnotherProgram() async throws {
        let folder = try #require(SharedData.folder)
        let names = try FileManager.default.contentsOfDirectory(
            atPath: folder.appending(path: "photos").path
        ).filter { $0.hasSuffix(".jpg") || $0.hasSuffix(".png") }.sorted()
        #expect(names.count >= 10)
        try await withOrigin { origin in
            let paths = names.map { folder.appending(path: "photos/\($0)").path }
            var urls: [String] = []
            for (index, path) in paths.enumerated() {
                let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
                origin.serve("/\(index)", .image(bytes))
                urls.append(origin.url("/\(index)"))
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                var command = Command(
                    executable: "/usr/bin/python3",
                    arguments: ["-I", "-B", Corpus.beside("thumbhash.py").path],
                    environment: ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"],
                    folder: workspace.folder)
                command.input = .bytes(Array(paths.map { $0 + "\n" }.joined().utf8))
                let judged = try await command.run()
                #expect(judged.status == 0, "\(judged)")
                let expected = judged.outputLines.map {
                    $0.split(separator: " ")[0]
                }
                try #require(expected.count == names.count)
                let run = try await workspace.prefetch(urls)
                #expect(run.summary.outcomes == ["downloaded": urls.count], "\(run.result)")
                let list = try await workspace.run("list", "--json")
                for object in try list.jsonLines() {
                    let key = try #require(object["key"] as? String)
                    let index = try #require(urls.firstIndex(of: key))
                    let attributes = try #require(object["attributes"] as? [String: String])
                    let hash = try #require(
                        Data(base64Encoded: attributes["prefetch.thumbhash"] ?? "-"))
                    let text = hash.map { String(format: "%02x", $0) }.joined()
                    expectNear(text, String(expected[index]), names[index])
                }
            }
        }
    }

    private func expectNear(_ hash: String, _ expected: String, _ name: String) {
        let message = "\(name): \(hash), \(expected)"
        let (left, right) = (bytes(hash), bytes(expected))
        guard left.count == right.count, left.count > 6 else {
            Issue.record("\(message)")
            return
        }
        let (head, otherHead) = (number(left, 0, 3), number(right, 0, 3))
        for shift in [0, 6, 12] {
            #expect(abs((head >> shift & 63) - (otherHead >> shift & 63)) <= 1, "\(message)")
        }
        #expect(abs((head >> 18 & 31) - (otherHead >> 18 & 31)) <= 1, "\(message)")
        #expect(head >> 23 == otherHead >> 23, "\(message)")
        let (tail, otherTail) = (number(left, 3, 5), number(right, 3, 5))
        #expect(tail & 0x8007 == otherTail & 0x8007, "\(message)")
        let scales = [9, 3].map { (tail >> $0 & 63, otherTail >> $0 & 63) }
        for (scale, other) in scales { #expect(abs(scale - other) <= 2, "\(message)") }
        // The cosines of lightness, which matter most to the eye.
        for (one, other) in zip(left, right).dropFirst(head >> 23 == 1 ? 6 : 5).prefix(12) {
            #expect(abs(Int(one & 15) - Int(other & 15)) <= 2, "\(message)")
            #expect(abs(Int(one >> 4) - Int(other >> 4)) <= 2, "\(message)")
        }
    }

    private func bytes(_ text: String) -> [UInt8] {
        let digits = Array(text.utf8)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
    }

    private func number(_ bytes: [UInt8], _ start: Int, _ end: Int) -> Int {
        bytes[start..<end].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct CacheTests {
    @Test func aWarmCacheNeedsNoRequests() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(30)
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(urls)
                #expect(first.summary.outcomes == ["downloaded": 30], "\(first.result)")
                let asked = origin.requests.count
                let second = try await workspace.prefetch(urls, "--order", "lifo")
                #expect(second.result.status == 0)
                #expect(second.summary.outcomes == ["fresh": 30], "\(second.result)")

                let there = try await workspace.run("get", urls[0])
                #expect(there.status == 0 && there.error.isEmpty, "\(there)")
                let path = try #require(first.report[line: 1]?.path)
                #expect(there.output == "\(workspace.cache)/\(path)\n", "\(there)")
                #expect(FileManager.default.fileExists(atPath: String(there.output.dropLast())))
                let missing = try await workspace.run("get", urls[0] + "?other")
                #expect(missing.status == 1 && missing.output.isEmpty, "\(missing)")

                let list = try await workspace.run("list")
                #expect(list.status == 0, "\(list)")
                for url in urls { #expect(list.output.contains(url), "\(list)") }
                let listed = try await workspace.run("list", "--json")
                #expect(listed.status == 0, "\(listed)")
                let objects = try listed.jsonLines()
                #expect(objects.count == 30, "\(listed)")
                #expect(Set(objects.compactMap { $0["key"] as? String }) == Set(urls), "\(listed)")
                let stats = try await workspace.run("stats")
                #expect(stats.status == 0 && !stats.output.isEmpty, "\(stats)")
                let counted = try await workspace.run("stats", "--json")
                #expect(counted.status == 0, "\(counted)")
                let object = try #require(try counted.jsonLines().first)
                #expect(object.values.contains { $0 as? Int == 30 }, "\(counted)")
                #expect(origin.requests.count == asked)
            }
        }
    }

    /// A recipe has its own variant, and equal images share one file.
    @Test func storesVariantsByRecipeAndContent() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(try Fixtures.file("larger.jpg")))
            origin.serve("/a.png", .image(Fixtures.png(width: 64, height: 64, isNoise: true)))
            let same = (0..<9).map { origin.url("/same/\($0).png") }
            for number in 0..<9 { origin.serve("/same/\(number).png", .image(Fixtures.png())) }
            try await withWorkspace { workspace in
                for outcome in ["downloaded", "fresh"] {
                    for quality in ["30", "70"] {
                        let run = try await workspace.prefetch(
                            [origin.url("/a")], "--quality", quality)
                        #expect(run.summary.outcomes == [outcome: 1], "\(run.result)")
                    }
                }
                #expect(try await workspace.judge() == 2)

                var sizes: [Int] = []
                for quality in ["20", "90"] {
                    let run = try await workspace.prefetch(
                        [origin.url("/a.png")], "--encode", "jpeg", "--quality", quality)
                    #expect(run.report.entries.first?.format == "jpeg", "\(run.result)")
                    sizes.append(run.report.entries.first?.bytesStored ?? 0)
                }
                #expect(sizes[0] > 0 && sizes[0] < sizes[1])

                let run = try await workspace.prefetch(same)
                #expect(run.summary["downloaded"] == 9, "\(run.result)")
                #expect(Set(run.report.entries.map(\.path)).count == 1)
                #expect(try await workspace.judge() == 2 + 2 + 9)
            }
        }
    }

    @Test func storedImagesMatchTheirSources() async throws {
        try await withOrigin { origin in
            var pictures: [(name: String, bytes: [UInt8])] = Fixtures.PNGKind.allCases.map {
                ("\($0).png", Fixtures.png(width: 23, height: 17, $0))
            }
            for name in ["baseline.jpg", "progressive.jpg", "grey.jpg", "larger.jpg"] {
                pictures.append((name, try Fixtures.file(name)))
            }
            var sources: [String: [UInt8]] = [:]
            for (name, bytes) in pictures {
                origin.serve("/\(name)", .image(bytes))
                sources[origin.url("/\(name)")] = bytes
            }
            let urls = sources.keys.sorted()
            for encoding in ["same", "png", "jpeg", "original"] {
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    let run = try await workspace.prefetch(urls, "--encode", encoding)
                    #expect(run.summary["downloaded"] == urls.count, "\(run.result)")
                    // JPEG has no alpha channel and blurs colours that change at every pixel.
                    let comparable = sources.filter { url, _ in
                        encoding != "jpeg" || url.hasSuffix(".jpg") || url.hasSuffix("/rgb.png")
                            || url.hasSuffix("/grey.png")
                    }
                    #expect(try await workspace.judge(sources: comparable) == urls.count)
                    for entry in run.report.entries {
                        let isJPEG = entry.url.hasSuffix(".jpg")
                        let wanted =
                            switch encoding {
                            case "same", "original": isJPEG ? "jpeg" : "png"
                            default: encoding
                            }
                        // Without --keep-larger, the source replaces a larger re-encoding, in its
                        // own format.
                        let own = isJPEG ? "jpeg" : "png"
                        #expect(entry.format == wanted || entry.format == own, "\(entry)")
                        guard encoding == "original" else { continue }
                        let path = try #require(entry.path)
                        let stored = try Data(
                            contentsOf: URL(filePath: "\(workspace.cache)/\(path)"))
                        #expect(Array(stored) == sources[entry.url])
                    }
                }
            }
        }
    }

    /// The bytes decide about the format, not the type.
    @Test func storesBodiesOfEveryFramingAndType() async throws {
        try await withOrigin { origin in
            let picture = Fixtures.png(width: 40, height: 40, isNoise: true)
            origin.serve("/announced", .image(picture))
            origin.serve("/chunked", .image(picture, framing: .chunked))
            origin.serve("/closed", .image(picture, framing: .closeDelimited))
            var silent = Response.image(picture)
            silent.closesSilently = true
            origin.serve("/silent", silent)
            // libcurl passes the trailer to the header callback after the body.
            let size = String(picture.count, radix: 16)
            var trailer = Response(
                body: Array("\(size)\r\n".utf8) + picture + Array("\r\n0\r\nX-Sum: 1\r\n\r\n".utf8))
            trailer.rawHead =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
            origin.serve("/trailer", trailer)
            let types = ["text/html", "image/jpeg", "application/octet-stream", "", "image/webp"]
            for (index, type) in types.enumerated() {
                origin.serve("/\(index)", Response(body: Fixtures.png(seed: index), type: type))
            }
            origin.serve("/none", Response(body: Fixtures.png(seed: 99)))
            origin.serve("/page", .text("<html></html>", type: "image/png"))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let good =
                    ["/announced", "/chunked", "/closed", "/silent", "/trailer"]
                    + types.indices.map { "/\($0)" } + ["/none"]
                let run = try await workspace.prefetch((good + ["/page"]).map(origin.url))
                #expect(
                    run.report.verdicts
                        == good.map { _ in "downloaded" } + ["failed/not-an-image"],
                    "\(run.result)")
            }
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func storesRedirectedImagesUnderManifestURL(status: Int) async throws {
        try await withOrigin { origin in
            let targets = [
                "absolute": origin.url("/to/absolute"), "rooted": "/to/rooted",
                "relative": "to/relative",
                "dotted": "./x/../to/dotted", "host": "//127.0.0.1:\(origin.port)/to/host",
                "fragment": "/to/fragment#part",
            ]
            for (index, (name, target)) in targets.sorted(by: { $0.key < $1.key }).enumerated() {
                origin.serve("/\(name)", .redirect(status, to: target))
                origin.serve("/to/\(name)", .image(Fixtures.png(seed: index)))
            }
            origin.serveFaults(of: ["x.png": Fixtures.png(seed: 77)])
            let urls =
                targets.keys.sorted().map { origin.url("/\($0)") }
                + [origin.url("/f/redirect/9/x.png")]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.summary["downloaded"] == urls.count, "\(run.result)")
                for (index, url) in urls.enumerated() {
                    #expect(run.report[line: index + 1]?.key == url)
                    let result = try await workspace.run("get", url)
                    #expect(result.status == 0, "\(result)")
                }
                let second = try await workspace.prefetch(urls)
                #expect(second.summary.outcomes == ["fresh": urls.count])
            }
        }
    }

    /// Searches end as for a missing image, other commands as for unusable input.
    @Test func onlyARunMakesACache() async throws {
        try await withWorkspace { workspace in
            let url = "http://127.0.0.1/a.png"
            let searches = [
                ["get", url], ["attr", "get", url, "n"], ["attr", "set", url, "n", "v"],
                ["attr", "list", url], ["attr", "rm", url, "n"],
                ["attr", "set", url, "n", "v", "--lock", "wait"], ["remove", "--all"],
                ["remove", "--all", "-n"], ["remove", url], ["chmod", "0644"], ["placeholders"],
                ["placeholders", "-n"], ["prune", "--max-size", "1GiB"],
                ["prune", "--max-size", "1048576"], ["status"],
            ]
            let others = [
                ["list", "--json"], ["stats", "--json"], ["history"], ["verify"],
                ["verify", "--repair"],
            ]
            for arguments in searches + others {
                let result = try await workspace.command(arguments).run()
                #expect(result.status == (searches.contains(arguments) ? 1 : 2), "\(result)")
                #expect(result.output.isEmpty, "\(result)")
                #expect(
                    result.error == """
                        prefetch: \(workspace.cache): there is no cache yet
                        hint: `prefetch run` creates it; --cache-dir names another

                        """, "\(result)")
            }
            #expect(!FileManager.default.fileExists(atPath: workspace.cache))
            let empty = workspace.folder + "/empty"
            try FileManager.default.createDirectory(
                atPath: empty, withIntermediateDirectories: false)
            let set = try await workspace.run(
                "attr", "set", url, "n", "v", "--cache-dir", "empty")
            #expect(set.status == 1, "\(set)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: empty).isEmpty)
        }
    }

    @Test func resolvesCacheDirectoryFromFlagOrEnvironment() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try workspace.manifest([url], name: "entries")
                var command = workspace.command(["entries"])
                func exists(_ path: String) -> Bool {
                    FileManager.default.fileExists(
                        atPath: "\(workspace.folder)/\(path)/prefetch.sqlite")
                }
                command.arguments = ["entries", "--cache-dir", "flag"]
                #expect(try await command.run().status == 0)
                #expect(exists("flag") && !exists("cache"))
                command.arguments = ["entries"]
                command.environment["PREFETCH_CACHE_DIR"] = nil
                command.environment["XDG_CACHE_HOME"] = workspace.folder + "/xdg"
                #expect(try await command.run().status == 0)
                #expect(exists("xdg/prefetch"))
                command.environment["XDG_CACHE_HOME"] = nil
                #expect(try await command.run().status == 0)
                #expect(exists(".cache/prefetch"))
                // A service of systemd may have several.
                command.environment["CACHE_DIRECTORY"] =
                    "\(workspace.folder)/service:\(workspace.folder)/other"
                #expect(try await command.run().status == 0)
                #expect(exists("service"))
                #expect(origin.requests.count == 4)
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// TIFF, HEIF, JPEG XL and JPEG 2000: decoded in workers alone, or with `--sandbox off`.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: !Sanitizer.isActive, "a sanitizer is loaded first"),
    .enabled("this machine has all walls") { try await SandboxTests.hasAllWalls() })
struct SandboxedImageTests {
    private struct Picture {
        let name: String
        let library: String
        let type: String
        /// The format of `same` after a step.
        let made: String
    }

    private static let pictures = [
        Picture(name: "rgb-lzw.tif", library: "libtiff", type: "image/tiff", made: "png"),
        Picture(name: "lossless.heic", library: "libheif", type: "image/heic", made: "jpeg"),
        Picture(name: "lossless.jxl", library: "libjxl", type: "image/jxl", made: "webp"),
        Picture(name: "rgb.jp2", library: "openjpeg", type: "image/jp2", made: "png"),
    ]

    private static func bytes(_ name: String) throws -> [UInt8] {
        let folder = SourceTree.tests.appending(path: "SandboxedSamples")
        return [UInt8](try Data(contentsOf: folder.appending(path: name)))
    }

    /// The pictures with an installed library, as `--version` names it.
    private static func served(
        by origin: Origin, in workspace: Workspace
    ) async throws -> [(picture: Picture, url: String)] {
        let lines = try await workspace.run("--version").outputLines
        return try pictures.filter { picture in
            lines.contains { $0.hasPrefix(picture.library + " ") && !$0.hasSuffix("installed") }
        }.map { picture in
            origin.serve(
                "/" + picture.name, Response(body: try bytes(picture.name), type: picture.type))
            return (picture, origin.url("/" + picture.name))
        }
    }

    /// The pixels of all four are the same, so their results are, too.
    @Test(arguments: ["auto", "require", "off"])
    func areConverted(mode: String) async throws {
        try await withOrigin { origin in
            origin.serve("/rgb.png", .image(try SandboxedImageTests.bytes("rgb.png")))
            try await withWorkspace { workspace in
                let served = try await SandboxedImageTests.served(by: origin, in: workspace)
                let lines = served.map(\.url) + [origin.url("/rgb.png")]
                for format in ["webp", "png", "jpeg"] {
                    let run = try await workspace.prefetch(
                        lines, "--encode", format, "--sandbox", mode, "--cache-dir", format)
                    #expect(run.result.status == 0, "\(run.result)")
                    #expect(run.summary.notDecoded == 0)
                    for entry in run.report.entries {
                        #expect(entry.format == format, "\(entry.url)")
                        #expect(entry.isDecoded == true, "\(entry.url)")
                        #expect([entry.width, entry.height] == [22, 16], "\(entry.url)")
                    }
                    // A PNG's source takes its own way.
                    let digests = Set(
                        run.report.entries.filter { format != "png" || $0.url != lines.last }
                            .map(\.sha256))
                    #expect(digests.count == 1 || served.isEmpty, "\(format): \(run.result)")
                }
            }
        }
    }

    /// `--other-formats` does not apply to what a worker decodes.
    @Test(arguments: ["fail", "skip"])
    func areNoOtherFormats(treatment: String) async throws {
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let served = try await SandboxedImageTests.served(by: origin, in: workspace)
                let run = try await workspace.prefetch(
                    served.map(\.url), "--sandbox", "auto", "--other-formats", treatment,
                    "--encode", "webp")
                #expect(run.summary.outcomes == ["downloaded": served.count], "\(run.result)")
            }
        }
    }

    /// `same` keeps the file, and a step makes another format.
    @Test func sameKeepsTheFile() async throws {
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let served = try await SandboxedImageTests.served(by: origin, in: workspace)
                let lines = served.map(\.url)
                let run = try await workspace.prefetch(
                    lines, "--sandbox", "auto", "--variant", "small=11x8")
                #expect(run.result.status == 0, "\(run.result)")
                for (picture, url) in served {
                    let entry = try #require(run.report.entries.first { $0.url == url })
                    #expect(entry.isDecoded == true)
                    let path = try #require(entry.path)
                    #expect(
                        try workspace.bytes(of: path) == SandboxedImageTests.bytes(picture.name))
                    let small = try #require(entry.variants.first { $0.name == "small" })
                    #expect(small.format == picture.made, "\(picture.name)")
                    #expect(small.width == 11)
                }
                #expect(try await workspace.judge() == 2 * lines.count)
            }
        }
    }

    /// Damage is found in the worker, and costs one entry.
    @Test func damageCostsOneEntry() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries]) { workspace in
                let served = try await SandboxedImageTests.served(by: origin, in: workspace)
                guard served.contains(where: { $0.picture.library == "libtiff" }) else { return }
                let bytes = try SandboxedImageTests.bytes("damaged.tif")
                origin.serve("/damaged", Response(body: bytes, type: "image/tiff"))
                let run = try await workspace.prefetch(
                    [origin.url("/damaged")] + served.map(\.url), "--sandbox", "auto", "--encode",
                    "webp")
                #expect(
                    run.summary.outcomes == ["downloaded": served.count, "failed": 1],
                    "\(run.result)")
                let entry = run.report.entries.first { $0.url == origin.url("/damaged") }
                #expect(entry?.verdict == "failed/corrupt-image")
            }
        }
    }

    /// Without the wall that stops system calls, images stay unchanged.
    @Test func stayAsTheyCameWithoutWalls() async throws {
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let served = try await SandboxedImageTests.served(by: origin, in: workspace)
                var command = try workspace.prefetchCommand(
                    served.map(\.url), ["--sandbox", "auto", "--encode", "webp"])
                command = SandboxTests.filtered(command, by: ["refuse", "\(EPERM)", "seccomp"])
                let run = try await workspace.finish(command.run(), entries: served.count)
                #expect(run.result.status == 0, "\(run.result)")
                #expect(run.summary.notDecoded == served.count)
                #expect(run.report.entries.allSatisfy { $0.isDecoded == false })
            }
        }
    }

    /// A library that is installed later decodes what is stored: without a request, and once.
    @Test func aNewLibraryDecodesStoredImages() async throws {
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let served = try await SandboxedImageTests.served(by: origin, in: workspace)
                guard let url = served.first(where: { $0.picture.library == "libtiff" })?.url
                else { return }
                let folder = workspace.folder + "/lib"
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: true)
                func run() async throws -> Workspace.Run {
                    var command = try workspace.prefetchCommand(
                        [url], ["--sandbox", "auto", "--encode", "webp"])
                    command.environment["LD_LIBRARY_PATH"] = folder
                    return try await workspace.finish(command.run(), entries: 1)
                }
                let files = ["libtiff.so.6", "libtiff.so.5"]
                for file in files { try workspace.write(Array("none".utf8), to: "lib/" + file) }
                let without = try await run()
                #expect(without.report.verdicts == ["downloaded"], "\(without.result)")
                #expect(without.report.entries.first?.isDecoded == false)
                #expect(try await run().report.verdicts == ["fresh"])

                for file in files {
                    try FileManager.default.removeItem(atPath: "\(folder)/\(file)")
                }
                let system = try #require(
                    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"]
                        .flatMap { folder in files.map { folder + "/" + $0 } }
                        .first { FileManager.default.fileExists(atPath: $0) })
                let library = URL(filePath: system).resolvingSymlinksInPath()
                try Data(contentsOf: library).write(
                    to: URL(filePath: folder + "/" + URL(filePath: system).lastPathComponent))
                let with = try await run()
                #expect(with.report.verdicts == ["derived"], "\(with.result)")
                let entry = try #require(with.report.entries.first)
                #expect(entry.isDecoded == true)
                #expect(entry.format == "webp")
                #expect(origin.requests.count == 1)
                #expect(try await run().report.verdicts == ["fresh"])
            }
        }
    }
}

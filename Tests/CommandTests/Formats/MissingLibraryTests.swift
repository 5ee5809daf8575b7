import Foundation
import TestSupport
import Testing

/// A system where libcurl or libavif is not there, or not one that can be used. They are loaded
/// when they are first needed; most commands do without.
@Suite(.timeLimit(.minutes(15)))
struct MissingLibraryTests {
    private static let hint = "hint: install libcurl 7.88 or newer (Debian's package is libcurl4)"

    /// The same with this file in place of a library.
    private static func with(
        _ file: [UInt8], as library: String = "libcurl.so.4", _ command: Command,
        in workspace: Workspace
    ) throws -> Command {
        try FileManager.default.createDirectory(
            atPath: workspace.folder + "/lib", withIntermediateDirectories: true)
        try workspace.write(file, to: "lib/\(library)")
        var command = command
        command.environment["LD_LIBRARY_PATH"] = workspace.folder + "/lib"
        return command
    }

    private static func withoutLibrary(
        _ arguments: [String], in workspace: Workspace
    ) async throws -> CommandResult {
        try await with(
            Array("no library".utf8), workspace.command(arguments), in: workspace
        ).run()
    }

    private static func expectRefusal(_ result: CommandResult, subject: String = "") {
        #expect(result.status == 2, "\(result)")
        #expect(
            result.error.hasPrefix("prefetch: \(subject)cannot load libcurl: "), "\(result)")
        #expect(result.error.contains("lib/libcurl.so.4: "), "\(result)")
        #expect(result.error.contains("\n\(hint)\n"), "\(result)")
    }

    @Test func commandsWithoutRequestsNeedNoLibcurl() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(lines)
                let requests = origin.requests.count
                for arguments in [
                    ["--help"], ["-h"], ["get", "--help"], ["get", lines[0]], ["list"], ["stats"],
                    ["failed", "list"], ["history"], ["attr", "set", lines[0], "a", "b"],
                    ["attr", "list", lines[0]], ["run"] + lines, ["run", "--offline"] + lines,
                ] {
                    let with = try await workspace.command(arguments).run()
                    let without = try await MissingLibraryTests.withoutLibrary(
                        arguments, in: workspace)
                    #expect(without.status == 0, "\(without)")
                    // Other programs change the free space.
                    let outputs = [with, without].map {
                        $0.output.replacing(/, [^,]* free\)/, with: ")")
                    }
                    #expect(outputs[0] == outputs[1], "\(without)")
                }
                #expect(origin.requests.count == requests)
                try await checkVersion(workspace)

                // Each library loads dozens of others, which takes longer than the work of `get`.
                func loaded(by arguments: [String]) async throws -> Set<String> {
                    let all = try await MissingLibraryTests.libraries(of: arguments, in: workspace)
                    #expect(all.contains("libc.so.6"), "\(all)")
                    return Set(["libcurl", "libavif", "libdav1d", "liblcms2"]).filter { name in
                        all.contains { $0.hasPrefix("\(name).so.") }
                    }
                }
                for arguments in [
                    ["--help"], ["get", lines[0]], ["list"], ["stats"], ["run"] + lines,
                ] {
                    #expect(try await loaded(by: arguments) == [], "\(arguments)")
                }
                #expect(
                    try await loaded(by: ["--version"])
                        == ["libcurl", "libavif", "libdav1d", "liblcms2"])
            }
        }
    }

    /// The version is told without the library.
    private func checkVersion(_ workspace: Workspace) async throws {
        let with = try await workspace.run("--version")
        let without = try await MissingLibraryTests.withoutLibrary(["--version"], in: workspace)
        #expect(without.status == 0 && without.error.isEmpty, "\(without)")
        var lines = without.outputLines
        var others = with.outputLines
        try #require(lines.count == others.count, "\(without)")
        let line = lines.remove(at: 3)
        #expect(others.remove(at: 3).hasPrefix("libcurl "))
        #expect(lines == others)
        #expect(line.hasPrefix("libcurl cannot be loaded: "), "\(line)")
        #expect(line.contains("libcurl.so.4: ") && line.contains("libcurl4"), "\(line)")
    }

    /// A library that is too old would lack some functions; any other library has none.
    @Test func aRunThatNeedsItSaysSo() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand(lines)
                let refused = try await workspace.finish(
                    MissingLibraryTests.with(
                        Array("no library".utf8), command, in: workspace
                    ).run(), entries: 2)
                MissingLibraryTests.expectRefusal(refused.result)
                #expect(refused.summary.outcomes == ["cancelled": 2], "\(refused.result)")
                let other = try Data(
                    contentsOf: URL(filePath: Workspace.product("libFaultyJPEG.so")))
                let result = try await MissingLibraryTests.with(
                    Array(other), workspace.prefetchCommand(lines), in: workspace
                ).run()
                #expect(result.status == 2, "\(result)")
                #expect(
                    result.error.contains(
                        "prefetch: cannot load libcurl: libcurl.so.4: has no function curl_"),
                    "\(result)")
                #expect(result.error.contains("\n\(MissingLibraryTests.hint)\n"), "\(result)")
                // Nothing is held against the images.
                let run = try await workspace.prefetch(lines)
                #expect(run.summary.outcomes == ["downloaded": 2], "\(run.result)")
            }
        }
    }

    /// It parses every URL that is not canonical already.
    @Test func aURLThatItHasToParseSaysSo() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(1)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(lines)
                let spelled = lines[0].replacing("http://", with: "HTTP://")
                for arguments in [["get", spelled], ["attr", "list", spelled]] {
                    MissingLibraryTests.expectRefusal(
                        try await MissingLibraryTests.withoutLibrary(arguments, in: workspace))
                    let with = try await workspace.command(arguments).run()
                    #expect(with.status == 0, "\(with)")
                }
                // Neither a key nor a URL, so there is nothing to parse.
                let unknown = try await MissingLibraryTests.withoutLibrary(
                    ["get", "hero"], in: workspace)
                #expect(unknown.status == 1, "\(unknown)")
                let list = try workspace.manifest([lines[0], spelled], name: "list.txt")
                MissingLibraryTests.expectRefusal(
                    try await MissingLibraryTests.withoutLibrary([list], in: workspace),
                    subject: "list.txt: ")
                MissingLibraryTests.expectRefusal(
                    try await MissingLibraryTests.withoutLibrary(
                        [list, "--base-url", "http://a.example/"], in: workspace),
                    subject: "http://a.example/: ")
            }
        }
    }

    /// The names of the libraries that a command has loaded to its end, as the dynamic linker tells
    /// them.
    private static func libraries(
        of arguments: [String], in workspace: Workspace
    ) async throws -> [String] {
        var command = workspace.command(arguments)
        command.environment["LD_DEBUG"] = "files"
        command.environment["LD_DEBUG_OUTPUT"] = workspace.folder + "/linker"
        let result = try await command.run()
        #expect(result.status == 0, "\(result)")
        let files = try FileManager.default.contentsOfDirectory(atPath: workspace.folder)
            .filter { $0.hasPrefix("linker.") }
        try #require(files.count == 1)
        let path = workspace.folder + "/\(files[0])"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try FileManager.default.removeItem(atPath: path)
        return text.split(separator: "\n").filter { $0.contains("generating link map") }
            .compactMap { $0.split(separator: "file=").last?.split(separator: " ").first }
            .map(String.init)
    }

    /// Only conversions by a profile need it. A later run with the library makes them.
    @Test func withoutLittleCMSOnlyItsConversionsAreRefused() async throws {
        try await withOrigin { origin in
            let inks = SourceTree.tests.appending(path: "FormatSamples/colours/inks.jpg")
            origin.serve("/inks.jpg", .image([UInt8](try Data(contentsOf: inks))))
            let lines = [origin.url("/inks.jpg")] + origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand(lines, ["--encode", "png"])
                let broken = try MissingLibraryTests.with(
                    Array("no library".utf8), as: "liblcms2.so.2", command, in: workspace)
                let refused = try await workspace.finish(broken.run(), entries: 3)
                #expect(
                    refused.report.verdicts
                        == ["failed/unsupported-image", "downloaded", "downloaded"],
                    "\(refused.result)")
                let message = refused.report.entries.first { $0.line == 1 }?.message ?? ""
                #expect(message.hasPrefix("its colour profile needs Little CMS, which cannot"))
                #expect(message.hasSuffix("; Debian's package is liblcms2-2"), "\(message)")
                let after = try await workspace.prefetch(lines, "--encode", "png")
                #expect(
                    after.report.verdicts == ["downloaded", "fresh", "fresh"], "\(after.result)")
            }
        }
    }

    /// The images are also remembered as undecoded, for a later build with a decoder.
    @Test func withoutLibavifOnlyItsImagesAreRefused() async throws {
        try await withOrigin { origin in
            origin.serve("/a.avif", .image(try FormatTests.file("lossy.avif")))
            let lines = [origin.url("/a.avif")] + origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func without(_ command: Command) throws -> Command {
                    try MissingLibraryTests.with(
                        Array("no library".utf8), as: "libavif.so.15", command, in: workspace)
                }
                let command = try workspace.prefetchCommand(lines)
                let refused = try await workspace.finish(without(command).run(), entries: 3)
                #expect(
                    refused.report.verdicts
                        == ["failed/unsupported-image", "downloaded", "downloaded"],
                    "\(refused.result)")
                let message = refused.report.entries.first { $0.line == 1 }?.message ?? ""
                #expect(message.contains("libavif cannot be loaded: "), "\(message)")
                #expect(message.contains("lib/libavif.so.15: "), "\(message)")
                #expect(message.contains("; Debian's package is libavif16, of"), "\(message)")
                let blacklisted = try await workspace.finish(
                    without(workspace.prefetchCommand(lines)).run(), entries: 3)
                #expect(
                    blacklisted.report.verdicts == ["blacklisted", "fresh", "fresh"],
                    "\(blacklisted.result)")
                let version = try await without(workspace.command(["--version"])).run()
                #expect(version.status == 0, "\(version)")
                #expect(version.output.contains("\nlibavif cannot be loaded: "), "\(version)")
                let after = try await workspace.prefetch(lines)
                #expect(
                    after.report.verdicts == ["downloaded", "fresh", "fresh"], "\(after.result)")
                let making = try workspace.prefetchCommand([lines[1]], ["--encode", "avif"])
                let unmade = try await workspace.finish(without(making).run(), entries: 1)
                #expect(unmade.report.verdicts == ["failed/unsupported-image"])
                // It is a JPEG or a PNG.
                let reason = unmade.report.entries.first?.message ?? ""
                #expect(reason.hasPrefix("AVIF needs libavif, and libavif cannot"), "\(reason)")
            }
        }
    }
}

import Foundation
import Glibc
import TestSupport
import Testing

@testable import prefetch

/// Files that are replaced outside of the cache: whole after a power cut, not through a stranger's
/// link, and without leftovers of killed commands.
@Suite(.timeLimit(.minutes(15)))
struct ReplacedFilesTests {
    /// A new flag with a file is either read or one of ``FileWriter``.
    @Test func everyFlagWithAFileIsKnown() {
        let read: Set = ["config", "plan", "netrc-file", "cacert", "cert", "key"]
        let flags = Set(RunFlags.all.filter { $0.value == "file" }.map(\.name))
        let written = Set(FileWriter.all.map { String($0.flag.drop { $0 == "-" }) })
        #expect(flags.subtracting(read).isSubset(of: written))
    }

    /// The order of the system calls, which Scripts/torture/power-cut tries on disks.
    @Test(
        .enabled(if: FailingCalls.areAvailable, "strace is not there, or may not trace"),
        arguments: FileWriter.all)
    func fileIsSynchronised(writer: FileWriter) async throws {
        try await withFileWriters { workspace, _ in
            var traced = workspace.command(
                [
                    "-f", "-qq", "-y", "-o", "trace", "-e", "trace=fsync,renameat",
                    Workspace.binary,
                ] + writer.arguments("written"))
            traced.executable = "/usr/bin/strace"
            let result = try await traced.run()
            #expect([0, 1].contains(result.status), "\(result)")
            let trace = try String(contentsOfFile: workspace.folder + "/trace", encoding: .utf8)
            let calls = trace.split(separator: "\n").filter { $0.hasSuffix(" = 0") }
            guard writer.replaces else {
                #expect(calls.contains { $0.contains("fsync(") && $0.contains("/written>") })
                return
            }
            let rename = try #require(
                calls.firstIndex { $0.contains("\"written\"") && $0.contains("renameat(") },
                "\(trace)")
            let temporary = try #require(calls[rename].split(separator: "\"").dropFirst().first)
            #expect(
                calls[..<rename].contains { $0.contains("fsync(") && $0.contains(temporary) },
                "\(trace)")
            #expect(
                calls[rename...].contains {
                    $0.contains("fsync(") && $0.contains("<\(workspace.folder)>")
                }, "\(trace)")
        }
    }

    /// A disk that fails must not count as one that has the file.
    @Test(
        .enabled(if: FailingCalls.areAvailable, "strace is not there, or may not trace"),
        arguments: FileWriter.all)
    func failedSynchronisationIsReported(writer: FileWriter) async throws {
        try await withFileWriters { workspace, _ in
            for code in ["EIO", "ENOSPC", "EINVAL", "EROFS"] {
                let old = writer.flag == "--cookie-jar" ? "# Netscape HTTP Cookie File\n" : "old"
                try workspace.write(Array(old.utf8), to: "written")
                var traced = workspace.command(
                    [
                        "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e",
                        "inject=fsync:error=\(code)", Workspace.binary,
                    ] + writer.arguments("written"))
                traced.executable = "/usr/bin/strace"
                let result = try await traced.run()
                let text = try String(
                    contentsOfFile: workspace.folder + "/written", encoding: .utf8)
                if ["EINVAL", "EROFS"].contains(code) {
                    #expect([0, 1].contains(result.status), "\(code): \(result)")
                    #expect(text != old, "\(code)")
                } else {
                    #expect(result.status == 2, "\(code): \(result)")
                    // The folder of an export is synchronised before its map.
                    let isMap = writer.flag.hasPrefix("--map")
                    #expect(isMap || result.error.contains("written: "), "\(code): \(result)")
                    #expect(text == old || !writer.replaces, "\(code)")
                }
                #expect(try leftovers(workspace.folder).isEmpty, "\(code)")
                // An export of its own each time.
                try? FileManager.default.removeItem(atPath: workspace.folder + "/out")
            }
        }
    }

    // MARK: Other users

    /// Another user of a shared folder cannot have a file elsewhere overwritten.
    @Test(.enabled(if: OtherUser.isPossible), arguments: FileWriter.all)
    func strangersLinkIsNotFollowed(writer: FileWriter) async throws {
        try await withFileWriters { workspace, _ in
            try workspace.openFolder()
            for (name, mode) in [("sticky", 0o1777), ("group", 0o775)] as [(String, mode_t)] {
                let folder = "\(workspace.folder)/\(name)"
                try #require(mkdir(folder, 0o755) == 0 && chmod(folder, 0o777) == 0)
                try workspace.write(Array("precious".utf8), to: "precious")
                for (link, target) in [("file", "../precious"), ("folder", "..")] {
                    var command = workspace.command(["-s", target, "\(folder)/\(link)"])
                    command.executable = "/usr/bin/ln"
                    #expect(try await command.asOtherUser().run().status == 0)
                }
                try #require(chmod(folder, mode) == 0)
                for path in ["\(name)/file", "\(name)/folder/precious"] {
                    let result = try await workspace.command(writer.arguments(path)).run()
                    #expect(result.status == 2, "\(path): \(result)")
                    #expect(result.error.contains("a symbolic link of another user"), "\(result)")
                    let file = workspace.folder + "/precious"
                    #expect(try String(contentsOfFile: file, encoding: .utf8) == "precious")
                }
            }
        }
    }

    /// One's own link stays, and the file behind it is replaced.
    @Test(arguments: FileWriter.all)
    func ownLinkIsFollowed(writer: FileWriter) async throws {
        try await withFileWriters { workspace, _ in
            let folder = workspace.folder + "/shared"
            try #require(mkdir(folder, 0o755) == 0 && chmod(folder, 0o777) == 0)
            try FileManager.default.createSymbolicLink(
                atPath: folder + "/link", withDestinationPath: "../target")
            let result = try await workspace.command(writer.arguments("shared/link")).run()
            #expect([0, 1].contains(result.status), "\(result)")
            let target = try FileManager.default.destinationOfSymbolicLink(atPath: folder + "/link")
            #expect(target == "../target")
            #expect(try !Data(contentsOf: URL(filePath: workspace.folder + "/target")).isEmpty)
        }
    }

    // MARK: Leftovers

    /// The temporary files of a folder.
    private func leftovers(_ folder: String) throws -> [String] {
        let files = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String }
        return try #require(files).filter { $0.contains(".prefetch-") && $0.hasSuffix(".new") }
    }

    /// The next command removes the file of a killed one.
    @Test(
        .enabled(if: FailingCalls.areAvailable, "strace is not there, or may not trace"),
        arguments: FileWriter.all.filter(\.replaces))
    func killedWriterLeavesOneFileUntilTheNext(writer: FileWriter) async throws {
        try await withFileWriters { workspace, _ in
            var traced = workspace.command(
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e",
                    "inject=fsync:signal=KILL", Workspace.binary,
                ] + writer.arguments("written"))
            traced.executable = "/usr/bin/strace"
            _ = try await traced.run()
            #expect(try leftovers(workspace.folder).count <= 1)
            let result = try await workspace.command(writer.arguments("written")).run()
            #expect([0, 1].contains(result.status), "\(result)")
            #expect(try leftovers(workspace.folder) == [])
        }
    }

    @Test(.enabled(if: FailingCalls.areAvailable, "strace is not there, or may not trace"))
    func killedGalleryIsCompletedByTheNext() async throws {
        try await withFileWriters { workspace, _ in
            for call in ["syncfs", "renameat"] {
                var traced = workspace.command(
                    [
                        "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                        "inject=\(call):signal=KILL:when=\(call == "syncfs" ? 1 : 3)",
                        Workspace.binary, "gallery", "-o", "g", "-q",
                    ])
                traced.executable = "/usr/bin/strace"
                _ = try await traced.run()
                #expect(try !leftovers(workspace.folder).isEmpty, "\(call)")
                let next = try await workspace.run("gallery", "-o", "g", "-q")
                #expect(next.status == 0, "\(next)")
                #expect(try leftovers(workspace.folder) == [])
                #expect(try files(workspace, "g").count == 5, "3 thumbnails, their tag and a page")
                try FileManager.default.removeItem(atPath: workspace.folder + "/g")
            }
        }
    }

    /// One synchronisation for all files, before the first takes its place.
    @Test(.enabled(if: FailingCalls.areAvailable, "strace is not there, or may not trace"))
    func galleryIsSynchronisedOnce() async throws {
        try await withFileWriters { workspace, _ in
            var traced = workspace.command([
                "-f", "-qq", "-o", "trace", "-e", "trace=fsync,syncfs,renameat", Workspace.binary,
                "gallery", "-o", "g", "-q",
            ])
            traced.executable = "/usr/bin/strace"
            let result = try await traced.run()
            #expect(result.status == 0, "\(result)")
            let trace = try String(contentsOfFile: workspace.folder + "/trace", encoding: .utf8)
            let calls = trace.split(separator: "\n").compactMap { line in
                line.firstMatch(of: /(fsync|syncfs|renameat)\(/).map { String($0.output.1) }
            }
            // The tag of the thumbnails is first.
            #expect(
                calls == ["fsync", "renameat", "fsync", "syncfs"]
                    + [String](repeating: "renameat", count: 4) + ["fsync", "fsync"], "\(trace)")
        }
    }

    private func files(_ workspace: Workspace, _ folder: String) throws -> [String] {
        let path = "\(workspace.folder)/\(folder)"
        return try FileManager.default.subpathsOfDirectory(atPath: path).filter {
            try FileManager.default.attributesOfItem(atPath: "\(path)/\($0)")[.type]
                as? FileAttributeType == .typeRegular
        }
    }

    /// A power cut can leave such files.
    @Test func galleryTakesEmptyFilesForMissing() async throws {
        try await withFileWriters { workspace, _ in
            #expect(try await workspace.run("gallery", "-o", "g", "-q").status == 0)
            let names = try files(workspace, "g")
            for removesPage in [false, true] {
                for name in names { try workspace.write([], to: "g/\(name)") }
                if removesPage {
                    try FileManager.default.removeItem(atPath: "\(workspace.folder)/g/index.html")
                }
                let again = try await workspace.run("gallery", "-o", "g", "-q")
                #expect(again.status == 0, "\(again)")
                for name in names {
                    let file = URL(filePath: "\(workspace.folder)/g/\(name)")
                    #expect(try !Data(contentsOf: file).isEmpty, "\(name)")
                }
            }
        }
    }
}

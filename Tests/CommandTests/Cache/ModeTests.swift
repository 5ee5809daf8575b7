import Foundation
import TestSupport
import Testing

/// `--mode` and `chmod` set the permissions of the cache.
@Suite(.timeLimit(.minutes(15)))
struct ModeTests {
    /// The permissions of all files and folders, by path relative to the cache; the cache folder is
    /// `.`.
    private func modes(_ workspace: Workspace) throws -> [String: Int] {
        let manager = FileManager.default
        var modes: [String: Int] = [:]
        for path in try manager.subpathsOfDirectory(atPath: workspace.cache) + ["."] {
            let attributes = try manager.attributesOfItem(atPath: "\(workspace.cache)/\(path)")
            modes[path] = attributes[.posixPermissions] as? Int
        }
        return modes
    }

    private func isFolder(_ path: String) -> Bool {
        [".", "content", "tmp"].contains(path)
            || path.wholeMatch(of: /content\/[0-9a-f]{2}/) != nil
    }

    private func expectModes(
        _ workspace: Workspace, files: Int, folders: Int,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let modes = try modes(workspace)
        #expect(modes.count > 6, sourceLocation: sourceLocation)
        for (path, mode) in modes {
            #expect(
                mode == (isFolder(path) ? folders : files), "\(path)",
                sourceLocation: sourceLocation)
        }
    }

    private func withImages(
        _ body: (Origin, Workspace) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            for seed in 0..<8 { origin.serve("/\(seed)", .image(Fixtures.png(seed: seed))) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try await body(origin, workspace)
            }
        }
    }

    private func urls(_ origin: Origin, _ numbers: Range<Int>) -> [String] {
        numbers.map { origin.url("/\($0)") }
    }

    // MARK: run --mode

    /// Independent of the umask.
    @Test(arguments: [
        ("0640", 0o640, 0o750), ("644", 0o644, 0o755), ("0604", 0o604, 0o705),
        ("0600", 0o600, 0o700),
    ])
    func appliesModeToFilesAndFolders(mode: String, files: Int, folders: Int) async throws {
        try await withImages { origin, workspace in
            let first = try workspace.prefetchCommand(urls(origin, 0..<3), ["--mode", mode])
            let result = try await first.withUmask("0077").run()
            #expect(result.status == 0 && !result.error.contains("mode"), "\(result)")
            try expectModes(workspace, files: files, folders: folders)
            // The mode is remembered, and new folders have it.
            let second = try workspace.prefetchCommand(urls(origin, 0..<8))
            #expect(try await second.withUmask("0077").run().status == 0)
            try expectModes(workspace, files: files, folders: folders)
            guard mode == "0640" else { return }
            // A lost database cannot remember it, but the folders have it.
            for name in ["", "-wal", "-shm"] {
                try workspace.removeFile("prefetch.sqlite" + name)
            }
            _ = try await workspace.prefetch(urls(origin, 0..<8))
            try expectModes(workspace, files: files, folders: folders)
        }
    }

    @Test func keepsModeOfExistingFilesWithHint() async throws {
        try await withImages { origin, workspace in
            _ = try await workspace.prefetch(urls(origin, 0..<2))
            let old = try modes(workspace).filter { $0.key.hasSuffix(".png") }
            #expect(old.count == 2 && old.values.allSatisfy { $0 == 0o600 })
            let run = try await workspace.prefetch(urls(origin, 0..<4), "--mode", "0644")
            #expect(
                run.result.error.contains("hint: `prefetch chmod 0644` changes existing files"),
                "\(run.result)")
            let all = try modes(workspace)
            for path in old.keys { #expect(all[path] == 0o600, "\(path)") }
            let new = all.filter { $0.key.hasSuffix(".png") && old[$0.key] == nil }
            #expect(new.count == 2 && new.values.allSatisfy { $0 == 0o644 }, "\(new)")
            #expect(all["."] == 0o755 && all["prefetch.sqlite"] == 0o644)
            let again = try await workspace.prefetch(urls(origin, 0..<4), "--mode", "0644")
            #expect(!again.result.error.contains("chmod"), "\(again.result)")
        }
    }

    // MARK: chmod

    @Test func chmodChangesAndStoresMode() async throws {
        try await withImages { origin, workspace in
            _ = try await workspace.prefetch(urls(origin, 0..<3))
            let before = try modes(workspace)
            let change = try await workspace.run("chmod", "0644")
            #expect(change.status == 0 && change.output.isEmpty, "\(change)")
            try expectModes(workspace, files: 0o644, folders: 0o755)
            // SQLite has created its log by now.
            let files = before.keys.count { !isFolder($0) } + 2
            let folders = before.keys.count(where: isFolder)
            #expect(
                change.error.contains("\(folders) folders changed to 0644 and 0755"), "\(change)")
            #expect(try modes(workspace).count == files + folders)
            let again = try await workspace.run("chmod", "0644")
            #expect(again.error.contains("0 files and 0 folders changed"), "\(again)")
            _ = try await workspace.prefetch(urls(origin, 0..<5))
            try expectModes(workspace, files: 0o644, folders: 0o755)
            let back = try await workspace.run("chmod", "0600", "-q")
            #expect(back.status == 0 && back.error.isEmpty, "\(back)")
            try expectModes(workspace, files: 0o600, folders: 0o700)
            // The bit for the group of new files stays.
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o2700], ofItemAtPath: workspace.cache + "/content")
            _ = try await workspace.run("chmod", "0640")
            #expect(try modes(workspace)["content"] == 0o2750)
        }
    }

    @Test func chmodSkipsSymbolicLinksAndForeignFiles() async throws {
        try await withImages { origin, workspace in
            _ = try await workspace.prefetch(urls(origin, 0..<2))
            let manager = FileManager.default
            try workspace.write([1], to: "outside")
            let outside = "\(workspace.folder)/outside"
            try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: outside)
            let folder = "\(workspace.folder)/folder"
            try manager.createDirectory(
                atPath: folder, withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700])
            let content = "\(workspace.cache)/content"
            let shard = try #require(
                try manager.contentsOfDirectory(atPath: content).first.map { "\(content)/\($0)" })
            let name = String(repeating: "ab", count: 32)
            try manager.createSymbolicLink(
                atPath: "\(shard)/\(name).png", withDestinationPath: outside)
            let free = try #require(
                (0...255).map { String(format: "%02x", $0) }.first {
                    !manager.fileExists(atPath: "\(content)/\($0)")
                })
            try manager.createSymbolicLink(
                atPath: "\(content)/\(free)", withDestinationPath: folder)
            try manager.copyItem(atPath: outside, toPath: "\(shard)/notes.txt")
            let change = try await workspace.run("chmod", "0644")
            #expect(change.status == 1, "\(change)")
            #expect(change.error.contains("and 2 more: not the cache's own"), "\(change)")
            func mode(_ path: String) throws -> Int? {
                try manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            }
            #expect(try mode(outside) == 0o600 && mode("\(shard)/notes.txt") == 0o600)
            #expect(try mode(folder) == 0o700)
            for path in ["\(shard)/\(name).png", "\(content)/\(free)", "\(shard)/notes.txt"] {
                try manager.removeItem(atPath: path)
            }
        }
    }
}

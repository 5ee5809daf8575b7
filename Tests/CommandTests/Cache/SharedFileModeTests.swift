import Foundation
import Glibc
import TestSupport
import Testing

/// The modes of content files that have names elsewhere, too: a mode belongs to the file.
@Suite(.timeLimit(.minutes(15)))
struct SharedFileModeTests {
    private func withImages(_ body: (Workspace, [String]) async throws -> Void) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(lines, "--mode", "0644")
                #expect(run.result.status == 0, "\(run.result)")
                try await body(workspace, lines)
            }
        }
    }

    /// The status of each PNG below a folder, by its path.
    private func files(_ name: String, in workspace: Workspace) throws -> [String: stat] {
        let folder = "\(workspace.folder)/\(name)"
        var files: [String: stat] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder)
        where path.hasSuffix(".png") {
            var status = stat()
            try #require(lstat("\(folder)/\(path)", &status) == 0)
            files[path] = status
        }
        return files
    }

    private func modes(_ name: String, in workspace: Workspace) throws -> [mode_t] {
        try files(name, in: workspace).map { $1.st_mode & 0o777 }
    }

    private func expectSound(_ cache: String, in workspace: Workspace) async throws {
        for command in ["verify", "doctor"] {
            let result = try await workspace.run(command, "--cache-dir", cache)
            #expect(result.status == 0, "\(result)")
        }
    }

    /// Another cache, an export, a backup and a seeded cache share the files.
    @Test func chmodLeavesFilesOfOthers() async throws {
        try await withImages { workspace, lines in
            try workspace.manifest(lines, name: "list.txt")
            try workspace.manifest([], name: "empty.txt")
            let commands = [
                [
                    "run", "empty.txt", "--allow-empty", "--cache-dir", "other", "--mode", "0644",
                    "-q",
                ],
                ["merge", "other", "cache", "-q"],
                [
                    "run", "list.txt", "--cache-dir", "seeded", "--mode", "0644", "--seed-cache",
                    "cache", "-q",
                ],
                ["export", "out", "list.txt", "--layout", "mirror", "--link", "-q"],
            ]
            for command in commands {
                let result = try await workspace.command(command).run()
                #expect(result.status == 0, "\(result)")
            }
            try FileManager.default.createDirectory(
                atPath: workspace.folder + "/backup", withIntermediateDirectories: false)
            let before = try files("cache", in: workspace)
            for path in before.keys {
                let name = path.split(separator: "/").last.map(String.init) ?? ""
                #expect(
                    link("\(workspace.cache)/\(path)", "\(workspace.folder)/backup/\(name)") == 0)
            }
            // The modes of the caches and the export, before the backup.
            #expect(before.values.allSatisfy { $0.st_nlink == 4 })
            let change = try await workspace.run("chmod", "0600")
            #expect(change.status == 0, "\(change)")
            #expect(change.error.contains("; 3 shared files copied first"), "\(change)")
            let after = try files("cache", in: workspace)
            #expect(after.count == 3)
            for (path, status) in after {
                let old = try #require(before[path])
                #expect(status.st_mode & 0o777 == 0o600 && status.st_nlink == 1)
                #expect(status.st_size == old.st_size)
                #expect(status.st_mtim.tv_sec == old.st_mtim.tv_sec)
                #expect(status.st_mtim.tv_nsec == old.st_mtim.tv_nsec)
            }
            for name in ["other", "seeded", "out", "backup"] {
                #expect(try modes(name, in: workspace) == [0o644, 0o644, 0o644], "\(name)")
            }
            for cache in ["cache", "other", "seeded"] {
                try await expectSound(cache, in: workspace)
            }
            let again = try await workspace.run("chmod", "0600")
            #expect(again.error.contains("0 files and 0 folders changed"), "\(again)")
        }
    }

    /// Commands that take over files of another cache.
    @Test(arguments: [
        ["merge", "other", "cache", "-q"],
        ["run", "list.txt", "--cache-dir", "other", "--seed-cache", "cache", "-q"],
    ])
    func filesOfAnotherModeAreCopied(_ command: [String]) async throws {
        try await withImages { workspace, lines in
            try workspace.manifest(lines, name: "list.txt")
            let result = try await workspace.command(command).run()
            #expect(result.status == 0, "\(result)")
            let taken = try files("other", in: workspace).values
            #expect(taken.count == 3)
            #expect(taken.allSatisfy { $0.st_mode & 0o777 == 0o600 && $0.st_nlink == 1 })
            #expect(try modes("cache", in: workspace) == [0o644, 0o644, 0o644])
            try await expectSound("other", in: workspace)
        }
    }

    @Test func doctorAndVerifyCompareModes() async throws {
        try await withImages { workspace, lines in
            let path = try #require(try files("cache", in: workspace).keys.min())
            for bits in [0o600, 0o640, 0o664] as [mode_t] {
                try #require(Glibc.chmod("\(workspace.cache)/\(path)", bits) == 0)
                let mode = "0" + String(bits, radix: 8)
                let verify = try await workspace.run("verify")
                #expect(verify.status == 1, "\(verify)")
                #expect(
                    verify.output == "\(path): mode: it has \(mode), not 0644; "
                        + "`prefetch chmod 0644` fixes it\n", "\(verify)")
                let doctor = try await workspace.run("doctor")
                #expect(doctor.status == 1, "\(doctor)")
                #expect(doctor.output.contains("another mode than 0644, like \(path) (\(mode))"))
                #expect(doctor.output.contains("`prefetch chmod 0644`"), "\(doctor)")
                #expect(try await workspace.run("chmod", "0644").status == 0)
                try await expectSound("cache", in: workspace)
            }

            // Without a mode of its own, a cache's files are its owner's.
            let other = ["--cache-dir", "other"]
            let list = try workspace.manifest(lines, name: "list.txt")
            let run = try await workspace.command(["run", list, "-q"] + other).run()
            #expect(run.status == 0, "\(run)")
            try await expectSound("other", in: workspace)
            let file = try #require(try files("other", in: workspace).keys.min())
            try #require(Glibc.chmod("\(workspace.folder)/other/\(file)", 0o644) == 0)
            for command in ["verify", "doctor"] {
                let result = try await workspace.command([command] + other).run()
                #expect(result.status == 1, "\(result)")
                #expect(result.output.contains("`prefetch chmod 0600`"), "\(result)")
            }
            let change = try await workspace.command(["chmod", "0600"] + other).run()
            #expect(change.status == 0, "\(change)")
            try await expectSound("other", in: workspace)
        }
    }

    /// Files without room for a copy keep their mode, and are counted.
    @Test(.enabled(if: Namespace.allowsMounts, "a small file system cannot be mounted here"))
    func chmodSkipsFilesWithoutRoom() async throws {
        try await withOrigin { origin in
            let bytes = Fixtures.png(width: 400, height: 400, seed: 1, isNoise: true)
            try #require(bytes.count > 400_000)
            origin.serve("/large.png", .image(bytes))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([origin.url("/large.png")], "--mode", "0644")
                var command = workspace.command([
                    "-rm", "/bin/sh", "-c",
                    """
                    mkdir -m 700 disk && mount -t tmpfs -o mode=700,size=4m tmpfs disk &&
                    cp -a cache disk/cache && ln disk/cache/content/*/*.png disk/backup || exit 3
                    cat /dev/zero > disk/full 2>&-
                    truncate -s -200K disk/full
                    "$0" chmod 0600 --cache-dir disk/cache; echo "chmod $?"
                    stat -c %a disk/cache/content/*/*.png disk/backup; ls disk/cache/tmp
                    rm disk/full
                    "$0" chmod 0600 -q --cache-dir disk/cache; echo "chmod $?"
                    stat -c %a disk/cache/content/*/*.png disk/backup; ls disk/cache/tmp
                    """, workspace.command([]).executable,
                ])
                command.executable = Namespace.program
                let result = try await command.run()
                #expect(
                    result.output == "chmod 1\n644\n644\nchmod 0\n600\n644\n", "\(result)")
                #expect(
                    result.error.contains(
                        "no room for copies of 1 file that other folders share; skipped\nhint: free "
                    ), "\(result)")
            }
        }
    }
}

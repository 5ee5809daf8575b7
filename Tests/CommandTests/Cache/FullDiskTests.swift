import Foundation
import Glibc
import TestSupport
import Testing

/// Runs on a file system without free space, or with too little.
@Suite(.timeLimit(.minutes(15)))
struct FullDiskTests {
    /// Warm entries need no space; others report the full disk.
    @Test(.enabled(if: Namespace.allowsMounts, "a small file system cannot be mounted here"))
    func warmEntriesSucceedOnFullDisk() async throws {
        try await withOrigin { origin in
            let warm = origin.serveImages(5)
            let cold = origin.url("/cold")
            origin.serve(
                "/cold", .image(Fixtures.png(width: 90, height: 90, seed: 9, isNoise: true)))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try workspace.manifest(warm, name: "warm.txt")
                try workspace.manifest(warm + [cold], name: "cold.txt")
                var command = workspace.command([
                    "-rm", "/bin/sh", "-c",
                    """
                    mkdir -m 700 disk && mount -t tmpfs -o mode=700,size=2m tmpfs disk &&
                    "$0" warm.txt -q --cache-dir disk || exit 3
                    cat /dev/zero > disk/content/full 2>&-
                    "$0" get \(warm[0]) --cache-dir disk > /dev/null; echo "get $?"
                    # Room for the log's index, and none for its first page.
                    truncate -s -36K disk/content/full
                    for list in warm cold; do
                        "$0" $list.txt --cache-dir disk; echo "$list $?"
                    done
                    """, workspace.command([]).executable,
                ])
                command.executable = Namespace.program
                let result = try await command.run()
                #expect(result.output == "get 0\nwarm 0\ncold 2\n", "\(result)")
                #expect(result.error.contains("5 fresh"), "\(result)")
                #expect(!result.error.contains("nothing to do"), "\(result)")
                #expect(result.error.contains("free some space and run again"), "\(result)")
            }
        }
    }

    /// The database, its log or the log's index may not fit; SQLite reports the last as an I/O
    /// error.
    @Test(
        .enabled(if: Namespace.allowsMounts, "a small file system cannot be mounted here"),
        arguments: [64, 140, 180, 200, 220, 240])
    func reportsFullDiskIfDatabaseDoesNotFit(kibibytes: Int) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(1)
            try await withWorkspace { workspace in
                var command = try workspace.prefetchCommand(lines)
                command.arguments =
                    [
                        "-rm", "/bin/sh", "-c",
                        """
                        mkdir -m 700 cache && mount -t tmpfs -o mode=700,size=\(kibibytes)k tmpfs \
                        cache && "$0" "$@"
                        """, command.executable,
                    ] + command.arguments
                command.executable = Namespace.program
                let result = try await command.run()
                #expect(result.status == 2, "\(result)")
                #expect(result.error.contains("free some space and run again"), "\(result)")
                #expect(origin.requests.isEmpty, "\(result)")
                // Only the mount point is left.
                try FileManager.default.removeItem(atPath: workspace.cache)
            }
        }
    }

    /// A run's files may fill the disk before their rows are committed.
    @Test(
        .enabled(if: Namespace.allowsMounts, "a small file system cannot be mounted here"),
        arguments: [2, 3, 4])
    func commitsFittingImagesOnSmallDisk(mebibytes: Int) async throws {
        try await withOrigin { origin in
            // Noise of some 24 kB each, in total more than any of the disks holds.
            let lines = (0..<250).map { index in
                origin.serve(
                    "/\(index)",
                    .image(Fixtures.png(width: 90, height: 90, seed: index, isNoise: true)))
                return origin.url("/\(index)")
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                var command = try workspace.prefetchCommand(lines, ["--encode", "original"])
                // The namespace ends with its last process, and the disk with the namespace.
                command.arguments =
                    [
                        "-rm", "/bin/sh", "-c",
                        """
                        mkdir -m 700 cache && mount -t tmpfs -o mode=700,size=\(mebibytes)m tmpfs \
                        cache && { "$0" "$@"; status=$?; cp -a cache kept; exit $status; }
                        """, command.executable,
                    ] + command.arguments
                command.executable = Namespace.program
                let run = try workspace.finish(await command.run(), entries: lines.count)
                #expect(run.result.status == 2, "\(run.result)")
                #expect(run.result.error.contains("free some space and run again"), "\(run.result)")
                let stored = run.summary["downloaded"]
                #expect(stored > 10, "\(run.result)")
                try FileManager.default.removeItem(atPath: workspace.cache)
                try FileManager.default.moveItem(
                    atPath: workspace.folder + "/kept", toPath: workspace.cache)
                #expect(try await workspace.judge() == stored)
            }
        }
    }
}

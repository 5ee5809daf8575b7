import Foundation
import Glibc
import TestSupport
import Testing

/// The part of a long queue that waits in a temporary file.
@Suite(.timeLimit(.minutes(15)))
struct SpillTests {
    /// More entries than the file's part in memory holds.
    private func lines(_ origin: Origin) -> [String] {
        (0..<120_000).map { origin.url("/a-rather-long-path-for-a-small-picture/\($0).png") }
    }

    private func withTemporaryFolder(
        _ workspace: Workspace, _ options: String...
    ) throws -> (command: Command, folder: String) {
        let folder = workspace.folder + "/temporary"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        var command = workspace.command(
            ["manifest.txt", "--queue-capacity", "100", "-j", "4", "--retry", "0"] + options)
        command.environment["TMPDIR"] = folder
        return (command, folder)
    }

    /// The path that opens the process's queue file, once it has content.
    private func spillFile(of running: RunningCommand, in folder: String) async throws -> String {
        let descriptors = "/proc/\(running.process)/fd"
        var found: String?
        try await eventually("a file of the queue") {
            let names = try FileManager.default.contentsOfDirectory(atPath: descriptors)
            found = names.map { "\(descriptors)/\($0)" }.first { path in
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
                var status = stat()
                return target?.hasPrefix(folder + "/") == true
                    && target?.hasSuffix(" (deleted)") == true
                    && stat(path, &status) == 0 && status.st_size > 0 && status.st_nlink == 0
            }
            return found != nil
        }
        return try #require(found)
    }

    /// Unreadable entries neither hang the run nor escape its count. The file has no name, so the
    /// kernel frees the space, however the process ends.
    @Test(
        .enabled(if: !Sanitizer.isActive, "too many entries for a sanitizer"),
        arguments: ["fifo", "lifo"])
    func countsUnreadableSpilledEntries(order: String) async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve { _ in .image(Fixtures.png(seed: 1), gate: gate) }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines = lines(origin)
                try workspace.manifest(lines)
                let (command, folder) = try withTemporaryFolder(
                    workspace, "--order", order, "--summary", "json")
                let running = try command.start()
                let file = try await spillFile(of: running, in: folder)
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
                try await origin.wait(for: "starts") { $0.inFlight == 4 }
                #expect(truncate(file, 0) == 0)
                gate.open()
                let result = await running.wait()
                #expect(result.status == 2, "\(result)")
                #expect(
                    result.output.contains("reading the waiting entries back"), "\(result)")
                let summary = try Report.Summary(json: result.output)
                #expect(summary.entries == lines.count || order == "fifo")
                #expect(summary["cancelled"] > 0)
            }
        }
    }

    /// The report fails while a signal ends the run.
    @Test(
        .enabled(if: !Sanitizer.isActive, "too many entries for a sanitizer"),
        arguments: ["/dev/full", "-"])
    func anUnwritableReportDoesNotDisturbTheEnd(report: String) async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve { _ in .image(Fixtures.png(seed: 1), gate: gate) }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                // Without a reader the run continues to its end; more lines would change nothing.
                try workspace.manifest(Array(lines(origin).prefix(report == "-" ? 2000 : .max)))
                var (command, _) = try withTemporaryFolder(workspace, "--report", report)
                if report == "-" {
                    command = command.inShell(
                        #""$0" "$@" | head -c 1000 >/dev/null; exit "${PIPESTATUS[0]}""#)
                }
                let running = try command.start()
                try await origin.wait(for: "starts") { $0.inFlight == 4 }
                if report == "-" {
                    // Enough lines to fill a pipe without a reader.
                    gate.open()
                } else {
                    try await running.waitUntilTaken(SIGTERM)
                    running.signal(SIGTERM)
                }
                let result = await running.wait()
                // A closed reader ends only the report.
                #expect(result.status == (report == "-" ? 0 : 2), "\(result)")
                if report != "-" {
                    #expect(result.error.contains(report), "\(result)")
                }
            }
        }
    }

    @Test(
        .enabled(if: Namespace.allowsMounts, "a small file system cannot be mounted here"),
        .enabled(if: !Sanitizer.isActive, "too many entries for a sanitizer"))
    func aFullTemporaryDiskEndsTheRunAndLosesNothing() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve { _ in .image(Fixtures.png(seed: 1), gate: gate) }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let lines = lines(origin)
                try workspace.manifest(lines)
                var (command, folder) = try withTemporaryFolder(
                    workspace, "--report", "report.jsonl")
                command.arguments =
                    [
                        "-rm", "/bin/sh", "-c",
                        #"mount -t tmpfs -o size=1m tmpfs "$TMPDIR" && exec "$0" "$@""#,
                        command.executable,
                    ] + command.arguments
                command.executable = Namespace.program
                let running = try command.start()
                try await origin.wait(for: "a start") { $0.inFlight > 0 }
                gate.open()
                let run = try workspace.finish(await running.wait())
                #expect(run.result.status == 2, "\(run.result)")
                #expect(run.result.error.contains("\(folder): "), "\(run.result)")
                #expect(run.result.error.contains("No space left on device"), "\(run.result)")
                #expect(run.result.error.contains("hint: TMPDIR"), "\(run.result)")
                // Each entry that was read has its line, and none failed because of the disk.
                #expect(run.report.entries.count > 100)
                #expect(
                    Set(run.summary.outcomes.keys).isSubset(
                        of: ["downloaded", "duplicate", "cancelled"]), "\(run.summary)")
                #expect(run.summary["cancelled"] > 0)
                #expect(run.summary.exitStatus == 2)
                let stored = try await workspace.judge()
                #expect(stored == run.summary["downloaded"])
                // With room for the queue the next run continues from there.
                try workspace.manifest(Array(lines.prefix(300)))
                let next = try await workspace.run("manifest.txt", "--queue-capacity", "100")
                #expect(next.status == 0, "\(next)")
            }
        }
    }

    /// A missing folder is reported before any request, or is not needed at all.
    @Test func onlyLongListsNeedTheTemporaryFolder() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(300)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (capacity, status) in [("1000", 0), ("100", 2)] {
                    var command = try workspace.prefetchCommand(
                        lines, ["--queue-capacity", capacity, "--refresh", "all"])
                    command.environment["TMPDIR"] = workspace.folder + "/nowhere"
                    let run = try workspace.finish(await command.run())
                    #expect(run.result.status == Int32(status), "\(run.result)")
                    if status == 2 {
                        #expect(
                            run.result.error.contains("/nowhere: creating a temporary file"),
                            "\(run.result)")
                    }
                }
            }
        }
    }
}

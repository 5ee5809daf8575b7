import Foundation
import TestSupport
import Testing

/// Report lines of warm entries are written on the look-up threads, or with `-v` on the run's own
/// thread.
@Suite(.timeLimit(.minutes(15)))
struct WarmReportTests {
    /// Mixes duplicates, bad lines, keys, secrets, failures and entries to fetch with warm entries.
    @Test func bothThreadsWriteTheSameReport() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                request.path.hasPrefix("/gone")
                    ? .notFound : .image(Fixtures.png(seed: request.target.hashValue & 0xFFFF))
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                var warm: [String] = []
                for index in 0..<300 {
                    warm.append(origin.url("/\(index)"))
                    switch index % 10 {
                    case 1: warm.append(origin.url("/\(index)"))
                    case 2: warm.append(origin.url("/\(index)?token=secret&w=\(index)"))
                    case 3: warm.append("\(origin.url("/keyed/\(index)")) key=the-key-\(index)")
                    case 4:
                        warm.append(
                            origin.url("/\(index)/with").replacing("://", with: "://me:pass@"))
                    case 5: warm.append(origin.url("/\(index)/%22quoted%5C/ü"))
                    case 6: warm.append("no url \(index)")
                    case 7: warm.append("\(origin.url("/\(index)/tagged")) attr.note=\(index)")
                    default: break
                    }
                }
                let first = try await workspace.prefetch(warm)
                #expect(first.summary["downloaded"] > 400, "\(first.result)")
                let list = warm + warm.reversed() + (0..<5).map { origin.url("/gone/\($0)") }
                let name = try workspace.manifest(list, name: "list.txt")
                var reports: [[Substring]] = []
                for options in [[], ["-v"]] {
                    // The order of other entries varies.
                    let result = try await workspace.command(
                        [name, "--report", "report", "--offline", "--retry", "0"] + options
                    ).run()
                    #expect(result.status == 1, "\(result)")
                    let text = try String(
                        contentsOfFile: "\(workspace.folder)/report", encoding: .utf8)
                    // The last line contains times.
                    reports.append(text.split(separator: "\n").dropLast())
                }
                #expect(reports[0].count == list.count)
                #expect(reports[0] == reports[1])
                #expect(reports[0].joined().contains("token=***"))
                #expect(!reports[0].joined().contains("pass@"))

                // Warm entries among others.
                let urls = (0..<40).map { origin.url("/other/\($0)") }
                _ = try await workspace.prefetch(
                    urls.indices.filter { $0 % 2 == 0 }.map { urls[$0] })
                let run = try await workspace.prefetch(urls + urls)
                #expect(
                    run.summary.outcomes == ["fresh": 20, "downloaded": 20, "duplicate": 40],
                    "\(run.result)")
                for entry in run.report.entries {
                    #expect(entry.url == urls[(entry.line - 1) % urls.count])
                    #expect(entry.path?.hasSuffix(".png") == true)
                }
                #expect(Set(run.report.entries.map(\.line)).count == 80)
            }
        }
    }
}

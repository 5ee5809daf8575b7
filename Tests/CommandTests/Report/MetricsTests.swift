import Foundation
import TestSupport
import Testing

/// `--prometheus` and `--on-change`.
@Suite(.timeLimit(.minutes(15)))
struct MetricsTests {
    /// The values by metric with its label.
    private func metrics(_ path: String) throws -> [String: Double] {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.hasSuffix("\n"))
        var values: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            #expect(parts.count == 2)
            values[String(parts[0])] = Double(parts[1])
        }
        return values
    }

    @Test func metricsHaveTheLastRunAndTheLastSuccess() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            origin.serve("/gone", .notFound)
            try await withWorkspace { workspace in
                let path = workspace.folder + "/prefetch.prom"
                let good = try await workspace.prefetch(urls, "--prometheus", path)
                #expect(good.result.status == 0, "\(good.result)")
                let first = try metrics(path)
                #expect(first["prefetch_entries{outcome=\"downloaded\"}"] == 2)
                #expect(first["prefetch_last_run_exit_status"] == 0)
                #expect(first["prefetch_requests"] == 2)
                let success = try #require(first["prefetch_last_success_timestamp_seconds"])
                #expect(abs(success - Date.now.timeIntervalSince1970) < 600)
                let bad = try await workspace.prefetch(
                    [origin.url("/gone")], "--prometheus", path)
                #expect(bad.result.status == 1, "\(bad.result)")
                let second = try metrics(path)
                #expect(second["prefetch_failures{reason=\"http-status\"}"] == 1)
                #expect(second["prefetch_last_run_exit_status"] == 1)
                let last = try #require(second["prefetch_last_success_timestamp_seconds"])
                #expect(abs(last - success) < 1)
                let text = try String(contentsOfFile: path, encoding: .utf8)
                #expect(!text.contains("127.0.0.1"))
                let files = try FileManager.default.contentsOfDirectory(atPath: workspace.folder)
                #expect(!files.contains { $0.hasSuffix(".new") })

                // The parser of Prometheus' own client reads every family.
                var command = workspace.command([])
                command.executable = "/usr/bin/python3"
                command.arguments = [
                    "-c",
                    """
                    import sys
                    from prometheus_client.parser import text_fd_to_metric_families
                    for family in text_fd_to_metric_families(open(sys.argv[1])):
                        assert family.type == "gauge" and family.documentation, family
                        print(family.name, len(family.samples))
                    """, path,
                ]
                let result = try await command.run()
                #expect(result.status == 0, "\(result)")
                let names = text.matches(of: /(?m)^# TYPE (\S+) gauge$/).map(\.output.1)
                #expect(names.count >= 9)
                let families = result.outputLines.map { $0.prefix { $0 != " " } }
                #expect(families == names)
            }
        }
    }

    @Test func commandsRunOnlyAfterChanges() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace { workspace in
                let command = "echo changed $PREFETCH_CHANGED"
                let first = try await workspace.prefetch(urls, "--on-change", command)
                #expect(first.result.error.contains("changed 2"), "\(first.result)")
                #expect(!first.result.output.contains("changed"))
                let second = try await workspace.prefetch(urls, "--on-change", command)
                #expect(!second.result.error.contains("changed"), "\(second.result)")
                for (failing, message) in [("exit 7", "exit status 7"), ("kill $$", "signal 15")] {
                    let run = try await workspace.prefetch(
                        urls, "--on-change", failing, "--refresh", "force", "--quality", "50",
                        "--encode", failing == "exit 7" ? "jpeg" : "webp")
                    #expect(run.result.status == 1, "\(run.result)")
                    #expect(
                        run.result.error.contains("prefetch: --on-change: ")
                            && run.result.error.contains(message), "\(run.result)")
                }

                // The command gets the signal, and the run dies by it.
                origin.serve("/new", .image(Fixtures.png(seed: 50)))
                let running = try workspace.prefetchCommand(
                    [origin.url("/new")], ["--on-change", "echo begun; sleep 600; echo ended"]
                ).start()
                try await eventually("the command runs") { running.errorSoFar.contains("begun") }
                running.signal(SIGTERM)
                let result = await running.wait()
                #expect(result.error.contains("ended by signal 15"), "\(result)")
                #expect(!result.error.contains("ended\n"), "\(result)")
                #expect(result.time < .seconds(300))
            }
        }
    }
}

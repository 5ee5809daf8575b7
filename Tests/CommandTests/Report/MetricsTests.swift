import Foundation
import TestSupport
import Testing

/// `--prometheus` and `--on-change`.
@Suite(.timeLimit(.minutes(15)))
struct MetricsTests {
    /// A file of metrics.
    private struct Metrics {
        /// The lines without comments: a sample and its value.
        var samples: [(series: String, value: Double)] = []
        var families: [String] = []
        /// The label `list` of all samples.
        var list = ""

        init(_ path: String) throws {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(text.hasSuffix("\n"))
            for line in text.split(separator: "\n") where !line.hasPrefix("#") {
                let separator = try #require(line.lastIndex(of: " "))
                let value = try #require(Double(line[line.index(after: separator)...]))
                samples.append((String(line[..<separator]), value))
            }
            families = text.matches(of: /(?m)^# TYPE (\S+) gauge$/).map { String($0.output.1) }
            let lists = Set(text.matches(of: /\{list="((?:[^"\\]|\\.)*)",cache="/).map(\.output.1))
            #expect(lists.count == 1, "\(text)")
            list = String(lists.first ?? "")
        }

        /// The value of a metric with, in quotation marks, the value of its own label.
        subscript(_ name: String) -> Double? {
            let parts = name.split(separator: " ")
            return samples.first { series, _ in
                series.hasPrefix("prefetch_\(parts[0]){")
                    && (parts.count == 1 || series.hasSuffix("=\"\(parts[1])\"}"))
            }?.value
        }
    }

    @Test func metricsHaveTheLastRunAndTheLastSuccess() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace(without: .retries) { workspace in
                let path = workspace.folder + "/prefetch.prom"
                func run(
                    _ name: String, _ status: Int32, _ more: String...
                ) async throws -> Metrics {
                    let command = workspace.command([name, "--prometheus", path] + more)
                    let result = try await command.run()
                    #expect(result.status == status, "\(result)")
                    return try Metrics(path)
                }
                try workspace.manifest(urls, name: "a.txt")
                let first = try await run("a.txt", 0)
                #expect(first["entries downloaded"] == 2 && first["requests"] == 2)
                #expect(first["last_run_exit_status"] == 0)
                #expect(first.list == workspace.folder + "/a.txt")
                let success = try #require(first["last_success_timestamp_seconds"])
                #expect(abs(success - Date.now.timeIntervalSince1970) < 600)

                // A failing run keeps its list's last success, also under another spelling.
                origin.serve("/gone", .notFound)
                try workspace.manifest(urls + [origin.url("/gone")], name: "a.txt")
                let name = workspace.folder.split(separator: "/").last ?? ""
                let second = try await run(".//../\(name)/./a.txt", 1)
                #expect(second["failures http-status"] == 1 && second["known_failures"] == 0)
                #expect(second["last_run_exit_status"] == 1 && second.list == first.list)
                let kept = try #require(second["last_success_timestamp_seconds"])
                #expect(abs(kept - success) < 0.002)

                // A lost file: the run log has it. Another list of the cache has none.
                try FileManager.default.removeItem(atPath: path)
                let third = try await run("a.txt", 1)
                #expect(third["failures http-status"] == 1 && third["known_failures"] == 1)
                #expect(third["entries blacklisted"] == 1)
                let logged = try #require(third["last_success_timestamp_seconds"])
                #expect(abs(logged - success) < 5)
                try workspace.manifest([origin.url("/gone")], name: "b.txt")
                let other = try await run("b.txt", 1)
                #expect(other["last_success_timestamp_seconds"] == 0)
                let files = try FileManager.default.contentsOfDirectory(atPath: workspace.folder)
                #expect(!files.contains { $0.hasSuffix(".new") })

                // Names with every character that a label escapes, and many lists.
                let strange = "a \"b\\\\c\"\u{1}é\nf.txt"
                try workspace.manifest(urls, name: strange)
                let escaped = try await run(strange, 0)
                #expect(
                    escaped.list.hasSuffix(#"/a \"b\\\\c\"\\u{1}é\nf.txt"#), "\(escaped.list)")
                try await expectReadable(path, workspace)
                let several = try await run("a.txt", 1, "b.txt", "./b.txt")
                #expect(several.list.split(separator: " ").count == 3)
                let many = try await run("a.txt", 1, "b.txt", "b.txt", "b.txt", strange)
                #expect(many.list.contains("/a.txt and 4 others ("), "\(many.list)")
            }
        }
    }

    /// Expects that the parser of Prometheus' own client and promtool read every family.
    private func expectReadable(_ path: String, _ workspace: Workspace) async throws {
        var command = workspace.command([])
        command.executable = "/usr/bin/python3"
        command.arguments = [
            "-c",
            """
            import sys
            from prometheus_client.parser import text_fd_to_metric_families
            for family in text_fd_to_metric_families(open(sys.argv[1])):
                assert family.type == "gauge" and family.documentation, family
                assert all(sample.labels["list"] for sample in family.samples), family
                print(family.name, len(family.samples))
            """, path,
        ]
        let result = try await command.run()
        #expect(result.status == 0, "\(result)")
        let families = result.outputLines.map { String($0.prefix { $0 != " " }) }
        let metrics = try Metrics(path)
        #expect(metrics.families.count >= 12 && families == metrics.families)

        command.executable = "/bin/sh"
        command.arguments = ["-c", #"promtool check metrics <"$1""#, "sh", path]
        let checked = try await command.run()
        #expect(checked.status == 0 && checked.error.isEmpty, "\(checked)")
    }

    // MARK: Alerts

    private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "samples/prometheus").path

    private func promtool(_ workspace: Workspace, _ arguments: String...) async throws {
        var command = workspace.command(arguments)
        command.executable = "/usr/bin/promtool"
        let result = try await command.run()
        #expect(result.status == 0, "\(result)")
    }

    /// Expects these alerts, each for as many jobs, of the files at the end of their runs.
    private func expect(
        _ alerts: [String: Int], of files: [String], _ workspace: Workspace
    ) async throws {
        let end = 2 * 86400.0
        var lines = [
            "rule_files: [\(MetricsTests.samples)/alerts.yml]", "evaluation_interval: 1d",
            "tests:", "  - interval: 1d", "    input_series:",
        ]
        for file in files {
            let metrics = try Metrics("\(workspace.folder)/\(file)")
            let last = try #require(metrics["last_run_timestamp_seconds"])
            for (series, value) in metrics.samples {
                // The clock of a unit test begins at 0.
                let isTime = series.contains("_timestamp_seconds") && value > 0
                let shifted = isTime ? end - (last - value) : value
                lines += ["      - series: '\(series)'", "        values: '\(shifted)x3'"]
            }
        }
        lines += [
            "    promql_expr_test:",
            "      - expr: count by (alertname) (ALERTS{alertstate=\"firing\"})",
            "        eval_time: 2d", "        exp_samples:",
        ]
        for (name, count) in alerts.sorted(by: { $0.key < $1.key }) {
            lines += [
                "          - labels: '{alertname=\"\(name)\"}'", "            value: \(count)",
            ]
        }
        if alerts.isEmpty { lines[lines.count - 1] += " []" }
        try workspace.manifest(lines, name: "alerts-test.yml")
        try await promtool(workspace, "test", "rules", "alerts-test.yml")
    }

    /// Known failures and outages keep their alerts with `--fail-on new`.
    @Test func alertsFireAsLongAsTheirCause() async throws {
        try await withOrigin { origin in
            try await withOrigin { down in
                let urls = origin.serveImages(3)
                origin.serve("/gone", .notFound)
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    func run(_ list: String, _ status: Int32) async throws {
                        let result = try await workspace.run(
                            "\(list).txt", "--fail-on", "new", "--retry", "0", "--prometheus",
                            "\(list).prom")
                        #expect(result.status == status, "\(result)")
                    }
                    let files = ["a.prom", "b.prom"]
                    try workspace.manifest(urls + [origin.url("/gone")], name: "a.txt")
                    try workspace.manifest((1...40).map { down.url("/\($0).png") }, name: "b.txt")
                    down.serve { _ in .unavailable(500) }
                    try await run("a", 1)
                    try await run("b", 1)
                    try await expect(
                        [
                            "PrefetchDidNotSucceed": 2, "PrefetchRunFailed": 2,
                            "PrefetchEntriesFail": 2, "PrefetchHasNewFailures": 2,
                            "PrefetchHasOutage": 1,
                        ], of: files, workspace)
                    for _ in 1...2 {
                        try await run("a", 0)
                        try await run("b", 0)
                        try await expect(
                            ["PrefetchEntriesFail": 2, "PrefetchHasOutage": 1], of: files,
                            workspace)
                    }
                    try await expectCollected(files, workspace)
                    down.serve { .image(Fixtures.png(seed: $0.path.count)) }
                    try await run("b", 0)
                    try await expect(["PrefetchEntriesFail": 1], of: files, workspace)
                }
            }
        }
    }

    /// Expects that node_exporter takes both files.
    private func expectCollected(_ files: [String], _ workspace: Workspace) async throws {
        let folder = workspace.folder
        try FileManager.default.createDirectory(
            atPath: folder + "/collected", withIntermediateDirectories: true)
        for file in files {
            try FileManager.default.copyItem(
                atPath: "\(folder)/\(file)", toPath: "\(folder)/collected/\(file)")
        }
        var command = workspace.command([
            "--web.listen-address=127.0.0.1:0", "--collector.disable-defaults",
            "--collector.textfile", "--collector.textfile.directory=\(folder)/collected",
        ])
        command.executable = "/usr/bin/prometheus-node-exporter"
        let exporter = try command.start()
        defer { exporter.signal(SIGTERM) }
        let address = /address=(127\.0\.0\.1:\d+)/
        try await eventually("node_exporter listens") {
            exporter.errorSoFar.contains(address)
        }
        let listening = try #require(exporter.errorSoFar.firstMatch(of: address))
        var request = workspace.command(["-sSf", "http://\(listening.output.1)/metrics"])
        request.executable = "/usr/bin/curl"
        let result = try await request.run()
        #expect(result.output.contains("\nnode_textfile_scrape_error 0\n"), "\(result)")
        for file in files {
            let metrics = try Metrics("\(folder)/\(file)")
            let taken = result.outputLines.count { $0.contains("list=\"\(metrics.list)\"") }
            #expect(taken == metrics.samples.count, "\(result)")
        }
    }

    /// Each metric has a row in the document and an example of an alert, with a test of its own.
    @Test func everyMetricHasAnAlert() async throws {
        try await withWorkspace { workspace in
            let folder = MetricsTests.samples
            try await promtool(workspace, "check", "rules", "\(folder)/alerts.yml")
            try await promtool(workspace, "test", "rules", "\(folder)/alerts-test.yml")
            let rules = try String(contentsOfFile: "\(folder)/alerts.yml", encoding: .utf8)
            let tests = try String(contentsOfFile: "\(folder)/alerts-test.yml", encoding: .utf8)
            let alerts = rules.matches(of: /- alert: (\w+)/).map(\.output.1)
            let tested = tests.matches(of: /alertname: (\w+)\n.*\n *exp_alerts:\n *- exp_labels/)
            #expect(alerts == tested.map(\.output.1))
            let document = try String(
                contentsOfFile: "\(folder)/../../docs/exit-status.md", encoding: .utf8)
            #expect(alerts.allSatisfy { document.contains("`\($0.trimmingPrefix("Prefetch"))`") })
            try workspace.manifest([], name: "empty.txt")
            _ = try await workspace.run("empty.txt", "--prometheus", "p.prom")
            for family in try Metrics(workspace.folder + "/p.prom").families {
                #expect(rules.contains(family), "\(family) has no alert")
                #expect(
                    document.contains("`\(family.trimmingPrefix("prefetch_"))"), "\(family)")
            }
        }
    }

    // MARK: Commands

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

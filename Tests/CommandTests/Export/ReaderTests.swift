import Foundation
import TestSupport
import Testing

private enum Readers {
    static let python = ProcessInfo.processInfo.environment["PREFETCH_READERS"]
}

/// Exports are read back by the programs that they are for.
///
/// `PREFETCH_READERS` names a Python with datasets, webdataset, pyarrow and pillow:
/// `python3 -m venv v && v/bin/pip install datasets webdataset pyarrow pillow`.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: Readers.python != nil, "PREFETCH_READERS names no Python with the readers"))
struct ReaderTests {
    /// The lists of ``list``, in a cache that has all of its images that are served.
    private func withImages(
        _ list: String, _ flags: [String] = [], as name: String = "list.csv",
        _ body: (Workspace) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png(width: 40, height: 30, seed: 1)))
            origin.serve("/b.png", .image(Fixtures.png(width: 30, height: 40, seed: 2)))
            origin.serve("/train.png", .image(Fixtures.png(width: 20, height: 20, seed: 3)))
            origin.serve("/c.gif", .image(Fixtures.noiseGIF(width: 30, height: 40)))
            origin.serve(
                "/v.svg",
                .image(
                    Array(#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>"#.utf8))
            )
            try await withWorkspace { workspace in
                let text = list.replacing("BASE", with: origin.url(""))
                try workspace.write(Array(text.utf8), to: name)
                _ = try await workspace.command(["run", name, "-q"] + flags).run()
                try await body(workspace)
            }
        }
    }

    private func read<Value>(
        _ kind: String, _ folder: String, in workspace: Workspace
    ) async throws -> Value {
        var command = workspace.command([
            SourceTree.root.appending(path: "Tests/CommandTests/Export/readers.py").path, kind,
            workspace.folder + "/" + folder,
        ])
        command.executable = try #require(Readers.python)
        let result = try await command.run()
        let line = result.output.split(separator: "\n").last ?? ""
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
        return try #require(object as? Value, "\(result)")
    }

    private static let list = """
        url,class,caption,n
        BASE/a.png,cats,one,1
        BASE/b.png,test,,2
        BASE/train.png,val-dev,three,3
        BASE/v.svg,cats,four,4
        BASE/gone.png,dogs,five,5

        """

    private static let mixed = """
        url,caption,n
        BASE/a.png,one,1
        BASE/c.gif,two,2

        """

    @Test func webdatasetReadsShards() async throws {
        try await withImages(ReaderTests.list, ["--encode", "jpeg"]) { workspace in
            let export = try await workspace.run(
                "export", "out", "list.csv", "--layout", "webdataset")
            #expect(export.status == 1, "\(export)")
            #expect(export.error.contains("warning: 1 image left out"), "\(export)")
            #expect(export.error.contains("1 svg"), "\(export)")
            let samples: [[Any]] = try await read("webdataset", "out", in: workspace)
            #expect(samples.map { $0[1] as? String } == ["one", "", "three"])
            let rows: [[Any]] = try await read("datasets-webdataset", "out", in: workspace)
            #expect(rows.map { $0[2] as? String } == ["1", "2", "3"])
        }
    }

    @Test func formatsShareOneName() async throws {
        try await withImages(ReaderTests.mixed) { workspace in
            let export = try await workspace.run(
                "export", "out", "list.csv", "--layout", "webdataset")
            #expect(export.status == 0, "\(export)")
            #expect(export.error.contains("1 gif, 1 png"), "\(export)")
            #expect(export.error.contains("--encode jpeg"), "\(export)")
            let samples: [[Any]] = try await read("webdataset", "out", in: workspace)
            #expect(samples.map { $0[1] as? String } == ["one", "two"])
            let rows: [[Any]] = try await read("datasets-webdataset", "out", in: workspace)
            #expect(rows.map { $0[0] as? [Int] } == [[40, 30], [30, 40]])
        }
    }

    @Test(arguments: ["jsonl", "csv"]) func imagefolderReadsOneSplit(
        _ metadata: String
    ) async throws {
        try await withImages(ReaderTests.list) { workspace in
            let export = try await workspace.run(
                "export", "out", "list.csv", "--layout", "imagefolder", "--metadata", metadata)
            #expect(export.status == 1, "\(export)")
            let splits: [String: [[Any]]] = try await read("imagefolder", "out", in: workspace)
            #expect(Array(splits.keys) == ["train"])
            let rows = splits["train"] ?? []
            #expect(rows.map { $0[2] as? String } == ["cats", "test", "val-dev"])
            #expect(rows.map { $0[0] as? [Int] } == [[40, 30], [30, 40], [20, 20]])
            #expect(rows.map { $0[1] as? String ?? "" } == ["one", "", "three"])
        }
    }

    private func writeParquet(_ folder: String, in workspace: Workspace) async throws {
        var convert = workspace.command(["-m", "prefetch.parquet", folder])
        convert.executable = try #require(Readers.python)
        convert.environment["PYTHONPATH"] = SourceTree.root.appending(path: "Packaging/wheel").path
        let converted = try await convert.run()
        #expect(converted.status == 0, "\(converted)")
    }

    /// Twelve rows of three images. Types are inferred from the first rows, or from a shard.
    private static let columns = (0..<12).map { index in
        let isLate = index > 6
        let columns = [
            "late_int": isLate ? "\(index)" : "null", "late_object": isLate ? #"{"a":1}"# : "null",
            "late_list": isLate ? "[1]" : "null", "list": isLate ? #"["s"]"# : "[]",
            "object": isLate ? #"{"b":"x"}"# : #"{"a":1}"#, "file": #"{"file_name":"x"}"#,
            "int": "\(index)", "float": isLate ? "1" : "1.5", "bool": isLate ? "true" : "false",
            "mixed": isLate ? #""x""# : "1", "big": "12345678901234567890123456",
            "digits": #""12345678901234567890123456""#,
            "id": "\(1_234_567_890_123_456_789 + index)",
            "status": #""new""#, "width": #""wide""#, "file_name": #""f""#, "sha256": #""none""#,
        ].map { #""\#($0)":\#($1)"# }
        let name = ["a", "b", "train"][index % 3]
        return #"{"image_url":"BASE/\#(name).png",\#(columns.joined(separator: ","))}"#
    }.joined(separator: "\n")

    @Test func columnsHaveOneTypeForAllReaders() async throws {
        try await withImages(ReaderTests.columns, as: "list.jsonl") { workspace in
            let late = (0..<12).map { $0 > 6 ? "\($0)" : "" }
            for (layout, flags) in [
                ("webdataset", ["--shard-size", "4"]), ("imagefolder", []),
                ("imagefolder", ["--metadata", "csv"]),
            ] {
                let export = try await workspace.command(
                    ["export", "out", "list.jsonl", "--layout", layout] + flags
                ).run()
                #expect(export.status == 0, "\(export)")
                let rows: [[String: Any]] = try await read(
                    "columns-\(layout)", "out", in: workspace)
                #expect(rows.count == 12)
                #expect(rows.map { $0["int"] as? Int } == (0..<12).map { $0 })
                #expect(rows.map { $0["bool"] as? Bool } == (0..<12).map { $0 > 6 })
                #expect(rows.map { $0["width_"] as? String } == Array(repeating: "wide", count: 12))
                #expect(rows.map { $0["id"] as? Int }.last == 1_234_567_890_123_456_800)
                if layout == "webdataset" {
                    #expect(rows.map { $0["status_"] as? String ?? "" }.last == "new")
                    #expect(rows.map { $0["sha256_"] as? String ?? "" }.last == "none")
                    try await checkParquet(in: workspace)
                } else {
                    #expect(rows.map { $0["file_name_"] as? String ?? "" }.last == "f")
                }
                guard !flags.contains("csv") else { continue }
                #expect(rows.map { $0["late_int"] as? String } == late)
                #expect(rows.map { $0["list"] as? String }.last == #"["s"]"#)
                #expect(rows.map { $0["file"] as? String }.last == #"{"file_name":"x"}"#)
                #expect(rows.map { $0["big"] as? String }.last == "12345678901234567890123456")
            }
        }
    }

    private func checkParquet(in workspace: Workspace) async throws {
        try await writeParquet("out", in: workspace)
        var types: Set<[String: String]> = []
        for shard in 0..<3 {
            let table: [String: Any] = try await read(
                "parquet", "out/0000\(shard).parquet", in: workspace)
            types.insert(try #require(table["types"] as? [String: String]))
        }
        #expect(types.count == 1, "\(types)")
        for (name, type) in [
            ("late_int", "int64"), ("late_object", "string"), ("list", "string"), ("int", "int64"),
            ("float", "double"), ("bool", "bool"), ("mixed", "string"), ("big", "string"),
            ("id", "int64"), ("file", "string"),
        ] {
            #expect(types.first?[name] == type, "\(name)")
        }
    }

    @Test func parquetHasFailedRows() async throws {
        try await withImages(ReaderTests.list) { workspace in
            let export = try await workspace.run(
                "export", "out", "list.csv", "--layout", "webdataset", "--shard-size", "2")
            #expect(export.status == 1, "\(export)")
            try await writeParquet("out", in: workspace)
            var statuses: [String] = []
            for shard in 0..<3 {
                let table: [String: Any] = try await read(
                    "parquet", "out/0000\(shard).parquet", in: workspace)
                #expect((table["types"] as? [String: String])?["n"] == "int64")
                for row in table["rows"] as? [[String: Any]] ?? [] {
                    statuses.append(
                        "\(row["n"] ?? "") \(row["status"] ?? "") \(row["error_message"] ?? "")")
                }
            }
            #expect(
                statuses == [
                    "1 success <null>", "2 success <null>", "3 success <null>",
                    "4 failed_to_resize not decoded: svg", "5 failed_to_download HTTP 404",
                ])
            let statistics = try JSONSerialization.jsonObject(
                with: Data(contentsOf: URL(filePath: workspace.folder + "/out/00002_stats.json")))
            let counts = try #require(statistics as? [String: Any])
            #expect(counts["failed_to_download"] as? Int == 1)
            #expect(counts["status_dict"] as? [String: Int] == ["HTTP 404": 1])
        }
    }
}

import PrefetchModel
import Reporting
import Testing

@testable import Exporting

/// Names and types in the metadata of data sets, by the rules of `datasets`.
@Suite(.timeLimit(.minutes(15))) struct DataSetTests {
    private func lines(_ columns: [String]) -> [String] {
        var types = DataColumns { $0 }
        let rows = columns.map { types.cells(of: JSONMember.members(of: Array($0.utf8)) ?? [], []) }
        for row in rows { types.note(row) }
        return rows.map { row in
            var object = JSONObject()
            for (name, value) in types.values(of: row) { object.add(name, value) }
            return object.description
        }
    }

    @Test(arguments: [
        ([#"{"a":1}"#, #"{"a":2.5}"#], [#"{"a":1.0}"#, #"{"a":2.5}"#]),
        ([#"{"a":1}"#, #"{"a":null}"#], [#"{"a":1}"#, #"{"a":null}"#]),
        ([#"{"a":null}"#, #"{"a":"x"}"#], [#"{"a":""}"#, #"{"a":"x"}"#]),
        ([#"{"a":1}"#, #"{"a":"x"}"#, #"{}"#], [#"{"a":"1"}"#, #"{"a":"x"}"#, #"{"a":""}"#]),
        ([#"{"a":true}"#, #"{"a":0}"#], [#"{"a":"true"}"#, #"{"a":"0"}"#]),
        ([#"{"a":[1]}"#, #"{"a":"x"}"#], [#"{"a":"[1]"}"#, #"{"a":"x"}"#]),
        (
            [#"{"a":[1]}"#, #"{"b":{"c":2}}"#],
            [#"{"a":[1],"b":null}"#, #"{"a":null,"b":{"c":2}}"#]
        ),
        ([#"{"a":12345678901234567890}"#], [#"{"a":"12345678901234567890"}"#]),
        ([#"{"a":null}"#, #"{"a":null}"#], [#"{"a":null}"#, #"{"a":null}"#]),
    ])
    func columnsHaveOneTypeInAllRows(_ rows: [String], _ written: [String]) {
        #expect(lines(rows) == written)
    }

    /// Judged by `DEFAULT_PATTERNS_SPLIT_IN_DIR_NAME` of `datasets` 5: a word between separators.
    @Test(arguments: [
        ("cats", "cats"), ("test", "%74est"), ("train", "%74rain"), ("my-test", "my-%74est"),
        ("val_2", "%76al_2"), ("eval", "%65%76al"), ("evaluation", "%65valuation"),
        ("2dev", "2%64ev"), ("a.valid.b", "a.%76alid.b"), ("contest", "contest"),
        ("testing", "%74esting"), ("Test", "Test"), ("tests", "tests"), (".hidden", "%2Ehidden"),
        ("__pycache__", "%5F_pycache__"), ("_a", "_a"), ("train test", "%74rain %74est"),
        ("validation", "%76alidation"),
    ])
    func labelsAreNoSplits(_ label: String, _ folder: String) {
        let rules = ExportRules(layout: .imagefolder)
        let image = ExportedImage.fixture(
            "http://h/test/train.jpg", columns: #"{"class":"\#(label)"}"#)
        let path = ExportPlan.path(of: image, rules)
        #expect(path?.hasPrefix("train/\(folder)/train-") == true, "\(path ?? "")")
    }

    @Test func metadataHasNoNamesOfTheReader() throws {
        var plan = ExportPlan(ExportRules(layout: .imagefolder), at: Timestamp(seconds: 0))
        let columns = """
            {"image":"a","file_name":"b","thumb_file_name":"c","images":[1],"width":"d","class":"x"}
            """
        try plan.add(.fixture("http://h/.a.jpg", columns: columns))
        _ = plan.settle()
        let files = plan.files()
        #expect(files.first?.path == "train/metadata.jsonl")
        guard case .bytes(let bytes)? = files.first?.content else {
            Issue.record("no metadata")
            return
        }
        let names = JSONMember.members(of: Array(bytes.dropLast()))?.map(\.name)
        #expect(
            names == [
                "file_name", "url", "width", "height", "image_", "file_name_", "thumb_file_name_",
                "images_", "class",
            ])
        #expect(files.last?.path.hasPrefix("train/x/%2Ea-") == true)
    }
}

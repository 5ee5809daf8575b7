import PrefetchModel
import Reporting
import Testing

@testable import Exporting

/// Names and types in the metadata of data sets, by the rules of `datasets`.
@Suite(.timeLimit(.minutes(15))) struct DataSetTests {
    private func lines(_ columns: [String]) -> [String] {
        var types = DataColumns(reserving: DataColumns.ReservedNames(names: []))
        let rows = columns.map { types.cells(of: ExportedImage.fixture("http://h/a", columns: $0)) }
        for row in rows { types.note(row) }
        return rows.map { line($0, types) }
    }

    private func line(_ cells: DataColumns.Cells, _ types: DataColumns) -> String {
        var object = JSONObject()
        for (name, value) in types.values(of: cells) { object.add(name, value) }
        return object.description
    }

    @Test(arguments: [
        ([#"{"a":1}"#, #"{"a":2.5}"#], [#"{"a":1.0}"#, #"{"a":2.5}"#]),
        ([#"{"a":1}"#, #"{"a":2}"#], [#"{"a":1}"#, #"{"a":2}"#]),
        ([#"{"a":1}"#, #"{"a":null}"#], [#"{"a":"1"}"#, #"{"a":""}"#]),
        ([#"{"a":1.5}"#, #"{}"#], [#"{"a":"1.5"}"#, #"{"a":""}"#]),
        ([#"{"a":true}"#, #"{"a":false}"#], [#"{"a":true}"#, #"{"a":false}"#]),
        ([#"{"a":[]}"#, #"{"a":["s"]}"#], [#"{"a":"[]"}"#, #"{"a":"[\"s\"]"}"#]),
        (
            [#"{"a":{"file_name":1}}"#, #"{"a":{"b":1}}"#],
            [#"{"a":"{\"file_name\":1}"}"#, #"{"a":"{\"b\":1}"}"#]
        ),
        (
            [#"{"a":9007199254740993}"#, #"{"a":1}"#],
            [#"{"a":9007199254740993}"#, #"{"a":1}"#]
        ),
        (
            [#"{"a":9007199254740993}"#, #"{"a":1.5}"#],
            [#"{"a":"9007199254740993"}"#, #"{"a":"1.5"}"#]
        ),
        ([#"{"a":null}"#, #"{"a":"x"}"#], [#"{"a":""}"#, #"{"a":"x"}"#]),
        ([#"{"a":1}"#, #"{"a":"x"}"#, #"{}"#], [#"{"a":"1"}"#, #"{"a":"x"}"#, #"{"a":""}"#]),
        ([#"{"a":true}"#, #"{"a":0}"#], [#"{"a":"true"}"#, #"{"a":"0"}"#]),
        ([#"{"a":[1]}"#, #"{"a":"x"}"#], [#"{"a":"[1]"}"#, #"{"a":"x"}"#]),
        (
            [#"{"a":[1]}"#, #"{"b":{"c":2}}"#],
            [#"{"a":"[1]","b":""}"#, #"{"a":"","b":"{\"c\":2}"}"#]
        ),
        ([#"{"a":12345678901234567890}"#], [#"{"a":"12345678901234567890"}"#]),
        ([#"{"a":null}"#, #"{"a":null}"#], [#"{"a":""}"#, #"{"a":""}"#]),
    ])
    func columnsHaveOneTypeInAllRows(_ rows: [String], _ written: [String]) {
        #expect(lines(rows) == written)
    }

    /// An entry without an image has no row in a shard.
    @Test func failedEntriesLeaveColumnsTheirTypes() {
        var types = DataColumns(reserving: DataColumns.ReservedNames(names: []))
        let cells = types.cells(of: ExportedImage.fixture("http://h/a", columns: #"{"a":1}"#))
        types.note(cells)
        let missing = types.cells(of: MissingEntry(number: 2, reason: "HTTP 404"))
        types.note(missing, isSample: false)
        #expect(line(cells, types) == #"{"a":1}"#)
        #expect(line(missing, types) == #"{"a":null}"#)
    }

    /// pandas reads a column of integers as such, and pyarrow refuses more than 64 bits.
    @Test(arguments: [
        (["12345678901234567890123456", "1"], [#""12345678901234567890123456""#, #""1""#]),
        (["12345678901234567890123456", "x"], ["12345678901234567890123456", "x"]),
        (["9223372036854775807", "-1"], ["9223372036854775807", "-1"]),
    ])
    func longIntegersAreTexts(_ values: [String], _ written: [String]) {
        var types = DataColumns(reserving: DataColumns.ReservedNames(names: []))
        let rows = values.map {
            types.cells(of: ExportedImage.fixture("http://h/a", columns: #"{"a":"\#($0)"}"#))
        }
        for row in rows { types.note(row) }
        #expect(rows.flatMap(types.texts) == written)
    }

    @Test func ownNamesAreOfTheDataSet() {
        let names = DataColumns.ReservedNames(names: ["status"], suffixes: ["_file_name"])
        let given = ["status", "status_", "Status", "a_file_name", "file", "_", "x_"]
        let expected = ["status_", "status__", "Status", "a_file_name_", "file", "_", "x_"]
        #expect(given.map(names.spelling) == expected)
    }

    /// The list before the cache, in all layouts.
    @Test(arguments: [
        (#"{"caption":"list"}"#, "list"), (#"{"caption":""}"#, "stored"),
        (#"{"caption":null}"#, "stored"), (#"{}"#, "stored"),
    ])
    func listPrecedesStoredAttributes(_ columns: String, _ caption: String) throws {
        let image = try ExportedImage.fixture(
            "http://h/a",
            attributes: [EntryAttribute(name: "caption", value: Array("stored".utf8))],
            columns: columns)
        #expect(image.detail("caption") == caption)
        let types = DataColumns(reserving: DataColumns.ReservedNames(names: []))
        #expect(types.cells(of: image).map(\.text) == [caption])
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
            {"image":"a","file_name":"b","thumb_file_name":"c","images":[1],"width":"d","image_":"e",\
            "class":"x"}
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
                "images_", "width_", "image__", "class",
            ])
        #expect(files.last?.path.hasPrefix("train/x/%2Ea-") == true)
    }
}

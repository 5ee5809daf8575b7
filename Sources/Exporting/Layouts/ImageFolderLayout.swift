import CCSV
internal import Hashing
import PrefetchModel
import Reporting

/// A folder that Hugging Face's ImageFolder reads: `<label>/<name>-<digest>.<extension>`, and
/// `metadata.jsonl` or `metadata.csv` with `file_name`, `url`, `width`, `height`, and the list's
/// columns and attributes.
///
/// Images without a label are in the folder itself. The digest is the URL's, since files of
/// different URLs often have the same name.
struct ImageFolderLayout: LayoutMaking {
    let rules: PathRules
    let label: String
    let metadata: ImageFolderMetadata

    private var index: String { "metadata.\(metadata.rawValue)" }
    var indexes: [String] { [index] }
    var hasSharedFiles: Bool { true }

    func path(of image: ExportedImage) throws(NamingProblem) -> String {
        let label = image.detail(label)
        let path = URLParts(image.normalizedURL).path
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last ?? ""[...].utf8
        let stem = Substring(last).percentDecoded.stemAndExtension.stem
        let digest = NameDigest.sha256.hexadecimal(of: image.url).prefix(8)
        let ending = "-\(digest).\(image.stored.format.fileExtension)"
        return try rules.path(
            [label.map { rules.name(Array($0.utf8)) } ?? "", rules.name(stem + Array(ending.utf8))])
    }

    func files(of rows: [ExportPlan.Row], missing: [Int]) -> [PlannedFile] {
        let rows = rows.filter { !$0.isRepeated }
        let tables = rows.map(columns)
        // All rows have the same columns: the reader infers their types from the file.
        var known: Set = ["file_name"]
        let names = tables.flatMap { $0.map(\.name) }.filter { known.insert($0).inserted }
        let bytes =
            switch metadata {
            case .jsonl: jsonLines(rows, tables, names)
            case .csv: table(rows, tables, names)
            }
        return imageFiles(of: rows) { .fixed($0.fetchedAt) } + [indexFile(index, bytes, of: rows)]
    }

    private typealias Cell = (name: String, text: String, json: [UInt8])

    private func columns(of row: ExportPlan.Row) -> [Cell] {
        func number(_ name: String, _ value: Int?) -> Cell {
            let text = value.map(String.init)
            return (name, text ?? "", Array((text ?? "null").utf8))
        }
        func string(_ name: String, _ text: String) -> Cell {
            var json: [UInt8] = []
            json.append(jsonString: text)
            return (name, text, json)
        }
        var cells = [
            string("url", row.image.url), number("width", row.image.stored.knownWidth),
            number("height", row.image.stored.knownHeight),
        ]
        for column in row.image.listColumns {
            cells.append((column.name, column.isNull ? "" : column.text, column.json))
        }
        cells += row.image.attributes.map {
            string($0.name, String(decoding: $0.value, as: UTF8.self))
        }
        return cells
    }

    private func jsonLines(
        _ rows: [ExportPlan.Row], _ tables: [[Cell]], _ names: [String]
    ) -> [UInt8] {
        var lines: [UInt8] = []
        for (row, cells) in zip(rows, tables) {
            var object = JSONObject()
            object.add("file_name", row.path)
            for name in names {
                object.add(
                    name, RawJSON(cells.first { $0.name == name }?.json ?? Array("null".utf8)))
            }
            lines += object.bytes + [UInt8(ascii: "\n")]
        }
        return lines
    }

    private func table(
        _ rows: [ExportPlan.Row], _ tables: [[Cell]], _ names: [String]
    ) -> [UInt8] {
        let lines = zip(rows, tables).map { row, cells in
            [row.path] + names.map { name in cells.first { $0.name == name }?.text ?? "" }
        }
        return ([["file_name"] + names] + lines).flatMap { line in
            Array(line.map(ImageFolderLayout.quoted).joined(separator: ",".utf8)) + "\n".utf8
        }
    }

    /// A value in quotation marks, by libcsv.
    private static func quoted(_ value: String) -> [UInt8] {
        let source = Array(value.utf8)
        // Each byte may be doubled.
        return [UInt8](unsafeUninitializedCapacity: 2 * source.count + 2) { buffer, count in
            count = csv_write(buffer.baseAddress, buffer.count, source, source.count)
        }
    }
}

import CCSV
internal import Hashing
import PrefetchModel
import Reporting

/// A folder that Hugging Face's ImageFolder reads: `train/<label>/<name>-<digest>.<extension>`, and
/// `train/metadata.jsonl` or `metadata.csv` with `file_name`, `url`, `width`, `height`, the
/// `variant` if there are several, and the list's columns and attributes: a row for each image of
/// each entry.
///
/// Images without a label are in `train` itself. The digest is the URL's, since files of different
/// URLs often have the same name; of a URL's further images, also their content's. The reader takes
/// folders for splits by words in their names, and skips hidden ones (`data_files.py` of
/// `datasets`), so labels have none of these words: ``SplitNames``.
struct ImageFolderLayout: LayoutMaking {
    let rules: PathRules
    let label: String
    let metadata: ImageFolderMetadata

    private static let folder = "train"
    private var index: String { "\(ImageFolderLayout.folder)/metadata.\(metadata.rawValue)" }
    var indexes: [String] { [index] }
    var hasSharedFiles: Bool { true }

    func path(of image: ExportedImage) throws(NamingProblem) -> String {
        try path(of: image, digest: NameDigest.sha256.hexadecimal(of: image.url))
    }

    func otherPath(of image: ExportedImage) throws(NamingProblem) -> String? {
        try path(
            of: image,
            digest: NameDigest.sha256.hexadecimal(
                of: "\(image.url)\n\(image.variant)\n\(image.stored.digest)"))
    }

    private func path(
        of image: ExportedImage, digest: String
    ) throws(NamingProblem) -> String {
        let label = image.detail(label).map { SplitNames.escaped(Array($0.utf8)) } ?? []
        let url = URLParts.withoutSecrets(image.normalizedURL)
        let path = URLParts(url).path
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last ?? ""[...].utf8
        let stem = Substring(last).percentDecoded.stemAndExtension.stem
        let ending = "-\(digest.prefix(8)).\(image.stored.format.fileExtension)"
        return try rules.path([
            ImageFolderLayout.folder, rules.name(label),
            rules.name(SplitNames.visible(stem) + Array(ending.utf8)),
        ])
    }

    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile] {
        let hasVariants = Set(rows.map(\.image.variant)).count > 1
        var columns = DataColumns(
            reserving: DataColumns.ReservedNames(
                names: ImageFolderLayout.ownNames.union(hasVariants ? ["variant"] : []),
                suffixes: ["_file_name", "_file_names"]))
        for row in rows { columns.note(columns.cells(of: row.image)) }
        let bytes =
            switch metadata {
            case .jsonl: jsonLines(rows, columns, hasVariants)
            case .csv: table(rows, columns, hasVariants)
            }
        return imageFiles(of: rows) { .fixed($0.fetchedAt) } + [indexFile(index, bytes, of: rows)]
    }

    /// The reader takes the last four for images.
    private static let ownNames: Set = [
        "url", "width", "height", "file_name", "file_names", "image", "images",
    ]

    private func fileName(of row: ExportPlan.Row) -> String {
        String(row.path.dropFirst(ImageFolderLayout.folder.count + 1))
    }

    private func jsonLines(
        _ rows: [ExportPlan.Row], _ columns: DataColumns, _ hasVariants: Bool
    ) -> [UInt8] {
        var lines: [UInt8] = []
        for row in rows {
            var object = JSONObject()
            object.add("file_name", fileName(of: row))
            object.add("url", row.image.shownURL)
            object.add("width", row.image.stored.knownWidth)
            object.add("height", row.image.stored.knownHeight)
            if hasVariants { object.add("variant", row.image.variant) }
            for (name, value) in columns.values(of: columns.cells(of: row.image)) {
                object.add(name, value)
            }
            lines += object.bytes + [UInt8(ascii: "\n")]
        }
        return lines
    }

    private func table(
        _ rows: [ExportPlan.Row], _ columns: DataColumns, _ hasVariants: Bool
    ) -> [UInt8] {
        let lines = rows.map { row in
            [
                fileName(of: row), row.image.shownURL,
                row.image.stored.knownWidth.map(String.init) ?? "",
                row.image.stored.knownHeight.map(String.init) ?? "",
            ] + (hasVariants ? [row.image.variant] : [])
                + columns.texts(of: columns.cells(of: row.image))
        }
        let head =
            ["file_name", "url", "width", "height"] + (hasVariants ? ["variant"] : [])
            + columns.names
        return ([head] + lines).flatMap { line in
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

/// Names of folders that `datasets` takes for splits, or leaves out.
enum SplitNames {
    private static let words = [
        "train", "training", "validation", "valid", "dev", "val", "test", "testing", "eval",
        "evaluation",
    ].map { Array($0.utf8) }

    /// Returns a folder's name with the first letter of such words percent-encoded.
    static func escaped(_ name: [UInt8]) -> [UInt8] {
        var name = visible(name)
        while let start = start(ofWordIn: name) {
            // The digits of an escape separate words, too: `%65val`.
            name.replaceSubrange(start...start, with: URLParts.percentEncoded(name[start]).utf8)
        }
        return name
    }

    /// Returns a name without a first dot or two underscores, which hide it.
    static func visible(_ name: some Collection<UInt8>) -> [UInt8] {
        let name = Array(name)
        guard let first = name.first,
            first == UInt8(ascii: ".") || name.starts(with: "__".utf8)
        else { return name }
        return Array(URLParts.percentEncoded(first).utf8) + name.dropFirst()
    }

    private static func start(ofWordIn name: [UInt8]) -> Int? {
        var start = name.startIndex
        while start < name.endIndex {
            let end = name[start...].firstIndex(where: isSeparator) ?? name.endIndex
            if words.contains(where: { $0.elementsEqual(name[start..<end]) }) { return start }
            start = end + 1
        }
        return nil
    }

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte.isDecimalDigit || "-._ ".utf8.contains(byte)
    }
}

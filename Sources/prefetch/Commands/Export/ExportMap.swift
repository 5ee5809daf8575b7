import ArgumentParser
import Exporting
import FileOutput
import PrefetchModel
import Reporting

enum ExportMap {
    /// Values separated by tabs, under a row of names. In a path, control characters are
    /// percent-encoded.
    static func table(_ rows: [ExportPlan.Row]) -> [UInt8] {
        var text = "url\tvariant\tpath\twidth\theight\tsha256\n"
        for row in rows {
            let stored = row.image.stored
            let width = stored.knownWidth.map(String.init) ?? ""
            let height = stored.knownHeight.map(String.init) ?? ""
            text +=
                "\(row.image.url)\t\(row.image.variant)\t\(encoded(row.path))\t\(width)\t\(height)"
            text += "\t\(stored.digest)\n"
        }
        return Array(text.utf8)
    }

    private static func encoded(_ path: String) -> String {
        guard path.utf8.contains(where: { $0 < 0x20 }) else { return path }
        return path.unicodeScalars.map { scalar in
            scalar.value < 0x20
                ? URLParts.percentEncoded(UInt8(scalar.value)) : String(scalar)
        }.joined()
    }

    static func jsonLines(_ rows: [ExportPlan.Row]) -> [UInt8] {
        var lines: [UInt8] = []
        for row in rows {
            var object = JSONObject()
            object.add("url", row.image.url)
            object.add("variant", row.image.variant)
            object.add("path", row.path)
            object.add("width", row.image.stored.knownWidth)
            object.add("height", row.image.stored.knownHeight)
            object.add("sha256", row.image.stored.digest.description)
            lines += object.bytes
            lines.append(UInt8(ascii: "\n"))
        }
        return lines
    }
}

/// Flags of `export` about its maps: the path of each image's file.
struct ExportMapOptions: ParsableArguments {
    @Option(
        help: .value("file", "Write a table of URL, variant, path, width, height and SHA-256."),
        completion: .file())
    var map: String?

    @Option(
        name: .customLong("map-json"),
        help: .value("file", "The same as JSON Lines."), completion: .file())
    var mapJSON: String?

    var files: [WrittenFiles.Use] {
        WrittenFiles.uses([("--map", map), ("--map-json", mapJSON)])
    }

    /// Checks that the maps can be written.
    ///
    /// - Throws: also for a map in the exported folder.
    func check(outside folder: String) throws {
        for file in files.map(\.path) where file != "-" {
            guard !WrittenFiles.isInside(file, folder: folder) else {
                throw UserError(
                    .usage, "\(file): a map cannot be in the exported folder",
                    hint: "name a file outside of \(folder)")
            }
            try FilePlace(file).checkReplacing()
        }
    }

    func write(_ rows: [ExportPlan.Row]) throws {
        for (path, bytes) in [(map, ExportMap.table), (mapJSON, ExportMap.jsonLines)] {
            if let path { try OutputFile.replace(path, with: bytes(rows)) }
        }
    }
}

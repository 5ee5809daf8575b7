import ArgumentParser
import CacheStorage
import Exporting
import FileOutput
import Pages
import PrefetchModel
import Reporting

/// Flags of `export` about its maps: files with the path of each image's file.
struct ExportMapOptions: ParsableArguments {
    @Option(
        help: .value("file", "Write a table of URL, variant, path, width, height and SHA-256."),
        completion: .file())
    var map: String?

    @Option(
        name: .customLong("map-json"),
        help: .value(
            "file",
            """
            The same as JSON Lines, with format, placeholders (thumbhash, color) and caption.
            """), completion: .file())
    var mapJSON: String?

    @Option(
        help: .value(
            "file",
            """
            Write a <picture> element for each image, with its formats and widths, relative to \
            this file, or to a bucket's prefix; for mirror and pattern.
            """), completion: .file())
    var snippet: String?

    /// Whether they have captions and placeholders.
    var describesImages: Bool { mapJSON != nil || snippet != nil }

    var files: [WrittenFiles.Use] {
        WrittenFiles.uses([("--map", map), ("--map-json", mapJSON), ("--snippet", snippet)])
    }

    /// Checks that the maps can be written.
    ///
    /// - Throws: also for a map in the exported folder.
    func check(outside folder: String?) throws {
        for file in files.map(\.path) where file != "-" {
            if let folder, WrittenFiles.isInside(file, folder: folder) {
                throw UserError(
                    .usage, "\(file): a map cannot be in the exported folder",
                    hint: "name a file outside of \(folder)")
            }
            try FilePlace(file).checkReplacing()
        }
    }

    func check(_ layout: ExportLayout, caption: String?) throws {
        guard snippet == nil || layout.isForPages else {
            throw ValidationError("--snippet needs --layout mirror or --name")
        }
        guard caption == nil || layout == .webdataset || describesImages else {
            throw ValidationError("--caption needs --layout webdataset, --map-json or --snippet")
        }
    }

    /// Writes the maps of files in a folder; nil for a bucket, which has no path.
    func write(_ rows: [ExportPlan.Row], in folder: String?, caption: String) throws {
        let isPrivate = rows.contains {
            RedactedURL.maskingSecrets(in: $0.image.url) != $0.image.url
        }
        let mode: UInt32 = isPrivate ? 0o600 : 0o666
        if let map { try OutputFile.replace(map, with: ExportMapOptions.table(rows), mode: mode) }
        if let mapJSON {
            try OutputFile.replace(
                mapJSON, with: ExportMapOptions.jsonLines(rows, caption), mode: mode)
        }
        let files = [map, mapJSON].compactMap(\.self).filter { $0 != "-" }
        if isPrivate, !files.isEmpty {
            StandardError.message(
                "\(files.map(printable).listed(with: "and")): only for their owner, since URLs have "
                    + "signatures")
        }
        if let snippet {
            let base = folder.map { RelativePath.path(of: $0, fromFolderOf: snippet) } ?? ""
            try OutputFile.replace(snippet, with: ExportMapOptions.snippets(rows, base, caption))
        }
    }

    /// Values separated by tabs, under a row of names. In a path, control characters are
    /// percent-encoded.
    private static func table(_ rows: [ExportPlan.Row]) -> [UInt8] {
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

    private static func jsonLines(_ rows: [ExportPlan.Row], _ caption: String) -> [UInt8] {
        var lines: [UInt8] = []
        for row in rows {
            let stored = row.image.stored
            var object = JSONObject()
            object.add("url", row.image.url)
            object.add("variant", row.image.variant)
            object.add("path", row.path)
            object.add("width", stored.knownWidth)
            object.add("height", stored.knownHeight)
            object.add("sha256", stored.digest.description)
            object.add("format", stored.format.rawValue)
            object.add("thumbhash", row.image.own(EntryAttribute.Own.thumbHash))
            object.add("color", row.image.own(EntryAttribute.Own.colour))
            object.add("caption", row.image.detail(caption))
            lines += object.bytes
            lines.append(UInt8(ascii: "\n"))
        }
        return lines
    }

    /// An element for each entry, in the order of the lists.
    private static func snippets(
        _ rows: [ExportPlan.Row], _ base: String, _ caption: String
    ) -> [UInt8] {
        var files: [Int: [PictureSnippet.SnippetFile]] = [:]
        var images: [ExportedImage] = []
        for row in rows {
            let path = base.isEmpty ? row.path : "\(base)/\(row.path)"
            // Commas and blanks separate the parts of srcset.
            let url = path.utf8.percentEncoded(except: "-._~!$&'()*+;=@/")
            if files[row.image.number] == nil { images.append(row.image) }
            let known = files[row.image.number] ?? []
            // Variants of a small picture may be the same file.
            guard !known.contains(where: { $0.url == url }) else { continue }
            files[row.image.number] =
                known + [PictureSnippet.SnippetFile(url: url, image: row.image.stored)]
        }
        return images.flatMap { image in
            PictureSnippet(
                url: image.shownURL, alternativeText: image.detail(caption) ?? "",
                colour: image.own(EntryAttribute.Own.colour),
                thumbHash: image.own(EntryAttribute.Own.thumbHash),
                files: files[image.number] ?? []
            ).bytes
        }
    }
}

extension ExportedImage {
    fileprivate func own(_ name: String) -> String? {
        ownAttributes.first { $0.name == name }?.text
    }
}

/// The path of a folder as a page elsewhere refers to it.
private enum RelativePath {
    /// Without links resolved, as the user writes both paths; `-` is in the current folder.
    static func path(of folder: String, fromFolderOf file: String) -> String {
        let target = parts(folder)
        let start = file == "-" ? [] : Array(parts(file).dropLast())
        // A path from the root has no way from a relative one, and the other way round.
        guard folder.hasPrefix("/") == file.hasPrefix("/") else {
            return target.joined(separator: "/")
        }
        let shared = zip(target, start).prefix { $0 == $1 }.count
        return (start.dropFirst(shared).map { _ in ".." } + target.dropFirst(shared))
            .joined(separator: "/")
    }

    private static func parts(_ path: String) -> [Substring] {
        path.split(separator: "/").filter { $0 != "." }
    }
}

internal import Hashing
package import PrefetchModel

/// A pattern of file names, like `{host}/{stem}-{variant}-{width}w.{ext}`.
///
/// | field | value |
/// |---|---|
/// | `{host}` | the URL's host, with its port |
/// | `{dir}` | the folders of its path |
/// | `{name}`, `{stem}` | the last part of its path, with and without extension |
/// | `{query}` | its query |
/// | `{ext}`, `{format}` | of the stored variant: `jpg`, `jpeg` |
/// | `{variant}`, `{width}`, `{height}` | of the variant; sizes in pixels |
/// | `{key}` | the cache key |
/// | `{sha256}` | of the stored file; `{sha256:8}` its first 8 digits |
/// | `{n}` | the position in the lists, from 1; `{n:6}` has 6 digits or more |
/// | `{attr.NAME}`, `{column.NAME}` | an attribute; another column of the list |
///
/// `{{` and `}}` are braces. Slashes in values are percent-encoded, except in `{dir}`.
package struct NamePattern: Sendable {
    private enum Field: Hashable {
        case host, dir, name, stem, query, ext, format, variant, width, height, key
        case sha256(digits: Int)
        case number(digits: Int)
        case attribute(String)
        case column(String)
    }

    private enum Piece {
        case text(String)
        case field(Field)
    }

    private let pieces: [Piece]

    package init(_ text: String) throws(UserError) {
        var pieces: [Piece] = []
        var literal = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            guard character == "{" || character == "}" else {
                literal.append(character)
                continue
            }
            if rest.first == character {
                rest.removeFirst()
                literal.append(character)
                continue
            }
            guard character == "{", let end = rest.firstIndex(of: "}") else {
                throw UserError(
                    character == "{"
                        ? "a field has no '}'" : "a '}' has no field; for a brace write '}}'")
            }
            if !literal.isEmpty { pieces.append(.text(literal)) }
            literal = ""
            pieces.append(.field(try NamePattern.field(rest[..<end])))
            rest = rest[rest.index(after: end)...]
        }
        if !literal.isEmpty { pieces.append(.text(literal)) }
        self.pieces = pieces
        try checkLiterals(text)
    }

    package var needsAttributes: Bool {
        pieces.contains { if case .field(.attribute) = $0 { true } else { false } }
    }

    /// The names of the fields, for messages.
    private static let simple: [(name: String, field: Field)] = [
        ("host", .host), ("dir", .dir), ("name", .name), ("stem", .stem), ("query", .query),
        ("ext", .ext), ("format", .format), ("variant", .variant), ("width", .width),
        ("height", .height), ("key", .key),
    ]

    private static func field(_ text: Substring) throws(UserError) -> Field {
        if let found = simple.first(where: { $0.name == text }) { return found.field }
        if let name = name(text, after: "attr.") { return .attribute(name) }
        if let name = name(text, after: "column.") { return .column(name) }
        if let digits = try digits(text, of: "sha256", most: 64, otherwise: 64) {
            return .sha256(digits: digits)
        }
        if let digits = try digits(text, of: "n", most: 18, otherwise: 1) {
            return .number(digits: digits)
        }
        let names = simple.map(\.name) + ["sha256", "n", "attr.NAME", "column.NAME"]
        throw UserError(
            "unknown field '{\(text)}'; known are \(names.joined(separator: ", "))")
    }

    private static func name(_ text: Substring, after prefix: String) -> String? {
        text.hasPrefix(prefix) && text.count > prefix.count
            ? String(text.dropFirst(prefix.count)) : nil
    }

    private static func digits(
        _ text: Substring, of name: String, most: Int, otherwise: Int
    ) throws(UserError) -> Int? {
        if text == name { return otherwise }
        guard text.hasPrefix(name + ":") else { return nil }
        guard let digits = Int(text.dropFirst(name.count + 1)), (1...most).contains(digits) else {
            throw UserError("{\(name):N} takes a number of digits from 1 to \(most)")
        }
        return digits
    }

    private func checkLiterals(_ text: String) throws(UserError) {
        let segments = text.split(separator: "/", omittingEmptySubsequences: false)
        guard !text.isEmpty, segments.last?.isEmpty == false else {
            throw UserError("it names no file")
        }
        guard segments.first?.isEmpty == false, !segments.contains(".."), !segments.contains(".")
        else {
            throw UserError("it must be a relative path without '.' and '..'")
        }
    }

    /// The path of an image's file.
    ///
    /// - Throws: ``NamingProblem`` if the image lacks a value, if its values make a name that a web
    ///   server could obey or run, and as ``PathRules/path(_:)``.
    func path(of image: ExportedImage, by rules: PathRules) throws(NamingProblem) -> String {
        let parts = URLParts(image.normalizedURL)
        // Each name is completed before it is checked: two values may make a dot-dot together.
        var names: [[UInt8]] = [[]]
        var literals = [ServedName.Literals()]
        var isFirst = true
        func beginName() {
            names.append([])
            literals.append(ServedName.Literals())
        }
        for piece in pieces {
            switch piece {
            case .text(let text):
                let segments = text.split(separator: "/", omittingEmptySubsequences: false)
                for (index, segment) in segments.enumerated() {
                    if index > 0 {
                        beginName()
                        isFirst = true
                    }
                    names[names.count - 1] += segment.utf8
                    literals[names.count - 1].texts.append(String(segment))
                    if isFirst { literals[names.count - 1].areFirst = !segment.isEmpty }
                    isFirst = isFirst && segment.isEmpty
                }
            case .field(.dir):
                let segments = parts.path.utf8.split(separator: UInt8(ascii: "/"))
                let folders = parts.path.hasSuffix("/") ? segments : segments.dropLast()
                for (index, folder) in folders.enumerated() {
                    if index > 0 { beginName() }
                    names[names.count - 1] += Substring(folder).percentDecoded
                }
                isFirst = false
            case .field(let field):
                names[names.count - 1] += try value(of: field, image, parts)
                isFirst = false
            }
        }
        let made = names.map(rules.name)
        try ServedName.check(made, literals)
        return try rules.path(made)
    }

    private func value(
        of field: Field, _ image: ExportedImage, _ parts: URLParts
    ) throws(NamingProblem) -> [UInt8] {
        func present(_ value: String?, _ name: String) throws(NamingProblem) -> [UInt8] {
            guard let value else { throw NamingProblem(message: "it has no \(name)") }
            return Array(value.utf8)
        }
        let last =
            parts.path.utf8.split(
                separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
            ).last.map { Substring($0).percentDecoded } ?? []
        let file = last.isEmpty ? Array("index.html".utf8) : last
        switch field {
        case .host: return Array(parts.host.utf8)
        case .dir: preconditionFailure("folders are several names")
        case .name: return file
        case .stem: return Array(file.stemAndExtension.stem)
        case .query:
            return URLParts(URLParts.withoutSecrets(image.normalizedURL)).query?.percentDecoded
                ?? []
        case .ext: return Array(image.stored.format.fileExtension.utf8)
        case .format: return Array(image.stored.format.rawValue.utf8)
        case .variant: return Array(image.variant.utf8)
        case .width: return try present(image.stored.knownWidth.map(String.init), "known width")
        case .height: return try present(image.stored.knownHeight.map(String.init), "known height")
        case .key: return Array(URLParts.withoutSecrets(image.key).utf8)
        case .sha256(let digits): return Array(image.stored.digest.description.utf8.prefix(digits))
        case .number(let digits): return Array(image.number.padded(to: digits).utf8)
        case .attribute(let name):
            return try present(
                image.attribute(name).map(URLParts.withoutSecrets), "attribute '\(name)'")
        case .column(let name):
            return try present(
                image.listColumns.text(of: name).map(URLParts.withoutSecrets), "column '\(name)'")
        }
    }
}

extension Int {
    /// The number with zeros before it, if it has fewer digits.
    func padded(to digits: Int) -> String {
        let text = String(self)
        return String(repeating: "0", count: Swift.max(0, digits - text.utf8.count)) + text
    }
}

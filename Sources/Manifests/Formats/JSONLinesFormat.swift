import CJSON
import PrefetchModel

/// The format `jsonl`: one JSON object per line, parsed by JSON for Modern C++.
///
/// - Members are the columns of a table, see ``ColumnRules``. Null and an empty text are no value
///   of a field.
/// - A field that may occur several times (`header`, `variant`) takes an array of them.
/// - Blank lines are skipped.
final class JSONLinesFormat: LineFormat {
    private let name: String
    private let rules: ColumnRules
    private let keepsColumns: Bool
    /// The names of the last lines' members. Most lines have the same ones in the same order.
    private var known: [Name] = []

    private struct Name {
        let text: [UInt8]
        let role: ColumnRules.Role
        let field: [UInt8]
        /// In quotation marks.
        let quoted: [UInt8]
    }

    private struct Member {
        /// An index into ``known``.
        let name: Int
        let kind: cjson_kind
        /// Ranges of ``bytes``.
        let text: Range<Int>
        let json: Range<Int>
    }

    /// The members of the present line.
    private var members: [Member] = []
    private var bytes: [UInt8] = []
    private var foreign = ForeignColumns()

    /// Lines with other names each must not fill the memory.
    private static let maximumNames = 1024

    init(name: String, options: ManifestOptions) {
        self.name = name
        rules = options.columns
        keepsColumns = options.keepsColumns
    }

    func take(_ line: Line, to entries: EntryAppender) throws(ManifestError) {
        let bytes = UnsafeBufferPointer(rebasing: line.text[...].trimmed)
        guard !bytes.isEmpty else { return }
        do throws(LineFailure) {
            guard !line.isLong else {
                throw .problem(.tooLong("line", entries.options.maximumLineBytes))
            }
            try read(bytes)
            try append(line.number, to: entries)
        } catch {
            let problem = try error.problem(in: name)
            let excerpt = LineExcerpt.json(bytes)
            excerpt.withUnsafeBufferPointer { text in
                entries.appendBad(text, problem, columns: foreign.object, line: line.number)
            }
        }
        foreign.removeAll()
    }

    private func read(_ line: UnsafeBufferPointer<UInt8>) throws(LineFailure) {
        members.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        if known.count > JSONLinesFormat.maximumNames { known.removeAll() }
        var position = 0
        let status = line.visitJSON(CJSON_OBJECT, memberVisited, self, &position)
        guard status == CJSON_OK else {
            throw .problem(
                LineProblem(
                    status == CJSON_OTHER
                        ? "not a JSON object; a line has one object"
                        : "invalid JSON at byte \(position)"))
        }
    }

    /// Called for each member of the present line.
    fileprivate func add(_ value: cjson_value) {
        let name = UnsafeRawBufferPointer(start: value.name, count: value.name_count)
        let text = copy(value.text, value.text_count)
        let json = value.kind == CJSON_STRING ? text : copy(value.json, value.json_count)
        members.append(Member(name: index(of: name), kind: value.kind, text: text, json: json))
    }

    private func copy(_ start: UnsafePointer<CChar>, _ count: Int) -> Range<Int> {
        let first = bytes.count
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
        return first..<bytes.count
    }

    private func index(of name: UnsafeRawBufferPointer) -> Int {
        let next = members.count
        if next < known.count, known[next].text.elementsEqual(name) { return next }
        if let found = known.firstIndex(where: { $0.text.elementsEqual(name) }) { return found }
        let text = String(decoding: name, as: UTF8.self)
        let (role, field) = rules.role(of: text)
        known.append(
            Name(
                text: Array(name), role: role, field: Array(field.utf8),
                quoted: ForeignColumns.quoted(text)))
        return known.count - 1
    }

    private func append(_ line: Int, to entries: EntryAppender) throws(LineFailure) {
        var url: (member: Int, rank: Int)?
        for (index, member) in members.enumerated() {
            if case .url(let rank) = known[member.name].role, rank < url?.rank ?? .max {
                url = (index, rank)
            }
        }
        var fields = EntryFields()
        try bytes.withUnsafeBufferPointer { bytes throws(LineFailure) in
            for (index, member) in members.enumerated() where keepsColumns && index != url?.member {
                guard known[member.name].role != .field else { continue }
                let name = known[member.name].quoted
                let value = UnsafeBufferPointer(rebasing: bytes[member.json])
                if member.kind == CJSON_STRING {
                    foreign.add(quotedName: name, text: value)
                } else {
                    foreign.add(quotedName: name, json: value)
                }
            }
            do throws(LineProblem) {
                for member in members where known[member.name].role == .field {
                    try add(member, bytes, to: &fields)
                }
                try fields.check(in: entries.options.variants)
            } catch {
                throw .problem(error)
            }
            guard let url else {
                let name =
                    rules.urlColumn ?? ColumnRules.commonNames.prefix(3).joined(separator: "', '")
                throw .problem(LineProblem("no member '\(LineExcerpt.text(of: name))' with a URL"))
            }
            let member = members[url.member]
            guard member.kind == CJSON_STRING else {
                throw .problem(LineProblem("the URL is not a JSON string"))
            }
            let text = UnsafeBufferPointer(rebasing: bytes[member.text].trimmed)
            do throws(LineProblem) {
                try LineProblem.check(url: text, "line")
            } catch {
                throw .problem(error)
            }
            fields.columns = foreign.object
            try entries.append(text, fields, line: line)
        }
    }

    /// Adds the value of a field.
    private func add(
        _ member: Member, _ bytes: UnsafeBufferPointer<UInt8>, to fields: inout EntryFields
    ) throws(LineProblem) {
        let name = known[member.name].field
        switch member.kind {
        case CJSON_NULL: return
        case CJSON_STRING, CJSON_NUMBER:
            let value = bytes[member.text].trimmed
            guard !value.isEmpty else { return }
            try name.withUnsafeBufferPointer { name throws(LineProblem) in
                try fields.add(name[...], value)
            }
        case CJSON_ARRAY:
            let elements = Elements()
            let json = UnsafeBufferPointer(rebasing: bytes[member.json])
            elements.read(json)
            for element in elements.texts {
                guard let element else { throw EntryFields.problemOfKind(name) }
                try name.withUnsafeBufferPointer { name throws(LineProblem) in
                    try element.withUnsafeBufferPointer { element throws(LineProblem) in
                        try fields.add(name[...], element[...])
                    }
                }
            }
        default: throw EntryFields.problemOfKind(name)
        }
    }
}

/// The elements of an array.
private final class Elements {
    /// Nil for an element that is neither a string nor a number.
    private(set) var texts: [[UInt8]?] = []

    func read(_ json: UnsafeBufferPointer<UInt8>) {
        var position = 0
        // It was read before, so it is valid.
        _ = json.visitJSON(CJSON_ARRAY, elementVisited, self, &position)
    }

    func add(_ value: cjson_value) {
        let isText = value.kind == CJSON_STRING || value.kind == CJSON_NUMBER
        texts.append(
            isText
                ? Array(UnsafeRawBufferPointer(start: value.text, count: value.text_count)) : nil)
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Visits the members of an object, or the elements of an array; `object` is for the visitor.
    fileprivate func visitJSON(
        _ kind: cjson_kind, _ visitor: cjson_visitor, _ object: AnyObject, _ position: inout Int
    ) -> cjson_status {
        guard let baseAddress else { return CJSON_INVALID }
        let text = UnsafeRawPointer(baseAddress).assumingMemoryBound(to: CChar.self)
        let context = Unmanaged.passUnretained(object).toOpaque()
        return cjson_visit(text, count, kind, visitor, context, &position)
    }
}

private func memberVisited(
    _ value: UnsafePointer<cjson_value>, _ context: UnsafeMutableRawPointer
) {
    Unmanaged<JSONLinesFormat>.fromOpaque(context).takeUnretainedValue().add(value.pointee)
}

private func elementVisited(
    _ value: UnsafePointer<cjson_value>, _ context: UnsafeMutableRawPointer
) {
    Unmanaged<Elements>.fromOpaque(context).takeUnretainedValue().add(value.pointee)
}

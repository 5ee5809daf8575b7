import CJSON
import Glibc
import PrefetchModel

/// The format `jsonl`: one JSON object per line, parsed by JSON for Modern C++.
///
/// - Members are the columns of a table, see ``ColumnRules``. Null and an empty text are no value
///   of a field.
/// - A field that may occur several times (`header`, `variant`) takes an array of them.
/// - Blank lines are skipped, as are lines that begin with `#`.
final class JSONLinesFormat: ColumnFormat {
    private let rules: ColumnRules
    private let keepsColumns: Bool
    /// The names of the last lines' members. Most lines have the same ones in the same order.
    private var known: [MemberName] = []

    var named = NamedFields()
    var hasDoubt: Bool {
        known.contains { $0.role == .field(isAssigned: false) }
            || known.lazy.filter { if case .url = $0.role { true } else { false } }.count > 1
    }

    private struct MemberName {
        let text: [UInt8]
        var role: ColumnRules.Role
        let field: [UInt8]
        /// In quotation marks.
        let quoted: [UInt8]
    }

    private let reader = cjson_make()
    /// For the URLs of a line, while the line's own reader keeps the other members.
    private let arrayReader = cjson_make()
    private var foreign = ForeignColumns()
    /// The present line's URL, in the reader's memory; empty without one.
    private var url = UnsafeBufferPointer<UInt8>(start: nil, count: 0)

    /// Lines with other names each must not fill the memory.
    private static let maximumNames = 1024

    init(options: ManifestOptions) {
        var rules = options.columns
        // Members always have names.
        rules.hasHeader = true
        self.rules = rules
        keepsColumns = options.keepsColumns
    }

    deinit {
        cjson_free(reader)
        cjson_free(arrayReader)
    }

    func take(_ line: ListLine, to entries: EntryAppender) throws {
        guard !line.bytes[...].isBlankOrComment else { return }
        let bytes = UnsafeBufferPointer(rebasing: line.text[...].trimmed)
        url = UnsafeBufferPointer(start: nil, count: 0)
        do {
            guard !line.isLong else {
                throw LineProblem.tooLong("line", entries.options.maximumLineBytes)
            }
            try append(try members(of: bytes), line.number, to: entries)
        } catch let problem as LineProblem {
            // Anything but the URL may be a secret.
            entries.appendBad(url, problem, columns: foreign.object, line: line.number)
        }
        foreign.removeAll()
    }

    /// Returns the members of a line's object, valid until the next call.
    private func members(
        of line: UnsafeBufferPointer<UInt8>
    ) throws -> UnsafeBufferPointer<cjson_value> {
        // The parser takes a NUL byte for the end.
        if let end = line.firstIndex(of: 0) {
            throw LineProblem("invalid JSON at byte \(end + 1)")
        }
        let result = reader.read(line, CJSON_OBJECT)
        switch result.status {
        case CJSON_OK: return UnsafeBufferPointer(start: result.values, count: result.count)
        case CJSON_OTHER:
            throw LineProblem("not a JSON object; a line has one object")
        case CJSON_DEEP:
            throw LineProblem("JSON of more than \(CJSON_MAXIMUM_DEPTH) levels; flatten it")
        default:
            throw LineProblem("invalid JSON at byte \(result.position)")
        }
    }

    /// Returns the name of the member at `position`.
    private func name(of member: cjson_value, at position: Int) -> MemberName {
        let bytes = member.nameBytes
        if position < known.count, known[position].text.isEqual(to: bytes) {
            return known[position]
        }
        if let found = known.first(where: { $0.text.isEqual(to: bytes) }) { return found }
        let text = String(decoding: bytes, as: UTF8.self)
        var (role, field) = rules.role(of: text)
        if named.others.contains(text) { role = .other }
        let name = MemberName(
            text: Array(bytes), role: role, field: Array(field.utf8),
            quoted: ForeignColumns.quoted(text))
        if known.count < JSONLinesFormat.maximumNames { known.append(name) }
        return name
    }

    private func append(
        _ members: UnsafeBufferPointer<cjson_value>, _ line: Int, to entries: EntryAppender
    ) throws {
        var places: [Int] = []
        var urls: [(member: cjson_value, name: [UInt8], rank: Int)] = []
        for (position, member) in members.enumerated() {
            let name = name(of: member, at: position)
            switch name.role {
            case .other: addForeign(member, name.quoted)
            case .url(let rank): urls.append((member, name.quoted, rank))
            case .field: places.append(position)
            }
        }
        let chosen = chooseURL(urls, entries)
        for (index, other) in urls.enumerated() where index != chosen {
            addForeign(other.member, other.name)
        }
        let url = chosen.map { urls[$0].member }
        if let url, url.kind == CJSON_STRING { self.url = url.bytes }
        var fields = try fields(places, of: members, line, entries.options.variants)
        guard let url else {
            let names = ColumnRules.commonNames.prefix(3).joined(separator: "', '")
            throw LineProblem("no member '\(LineExcerpt.text(of: rules.urlColumn ?? names))'")
        }
        fields.values.columns = foreign.object
        if !url.hasValue, urls.contains(where: \.member.hasValue) {
            throw LineProblem.withoutURL("line").hidingImages
        }
        switch url.kind {
        case CJSON_STRING:
            try entries.append(url.trimmedBytes, fields, unit: "line", line: line)
        case CJSON_ARRAY:
            try append(urls: url.bytes, fields, line, to: entries)
        case CJSON_NULL:
            throw LineProblem.withoutURL("line")
        default:
            throw LineProblem("the URL is not a JSON string, or an array of them")
        }
    }

    /// Returns the index of the line's URL among the members that may be it: that of the column
    /// with URLs, see ``NamedFields/urlRank``. In a line without that member it is the first one
    /// with a URL.
    private func chooseURL(
        _ members: [(member: cjson_value, name: [UInt8], rank: Int)], _ entries: EntryAppender
    ) -> Int? {
        guard members.count > 1 || named.seeksURL else { return members.indices.first }
        let hasBase = entries.options.baseURL != nil
        let first = { (isWanted: (cjson_value) -> Bool) in
            members.indices.filter { isWanted(members[$0].member) }
                .min { members[$0].rank < members[$1].rank }
        }
        let withURL = first { $0.hasURL(hasBase: hasBase) }
        if named.seeksURL { named.note(urlRanks: withURL.map { [members[$0].rank] } ?? []) }
        return members.firstIndex { $0.rank == named.urlRank } ?? withURL ?? first { _ in true }
    }

    /// Reads the members that are fields.
    private func fields(
        _ places: [Int], of members: UnsafeBufferPointer<cjson_value>, _ line: Int,
        _ variants: VariantSet?
    ) throws -> EntryFields {
        guard !places.isEmpty else { return EntryFields() }
        let (fields, others) = try named.read(
            places, of: line, in: variants,
            column: { place in
                let name = name(of: members[place], at: place)
                let text = String(decoding: name.text, as: UTF8.self)
                return (text, name.role == .field(isAssigned: true))
            },
            add: { place, fields in
                let name = name(of: members[place], at: place)
                try add(members[place], name.field, to: &fields)
            })
        for place in others {
            let name = name(of: members[place], at: place)
            if let index = known.firstIndex(where: { $0.text == name.text }) {
                known[index].role = .other
            }
            addForeign(members[place], name.quoted)
        }
        return fields
    }

    /// Appends an entry with several URLs, a JSON array.
    private func append(
        urls: UnsafeBufferPointer<UInt8>, _ given: EntryFields, _ line: Int,
        to entries: EntryAppender
    ) throws {
        var fields = given
        let result = arrayReader.read(urls, CJSON_ARRAY)
        let elements = UnsafeBufferPointer(start: result.values, count: result.count)
        if result.status == CJSON_OK, elements.isEmpty { throw LineProblem.withoutURL("line") }
        guard let first = elements.first, elements.allSatisfy({ $0.kind == CJSON_STRING }) else {
            throw LineProblem("the URL is not a JSON string, or an array of them")
        }
        url = first.trimmedBytes
        for element in elements.dropFirst() where !element.trimmedBytes.isEmpty {
            try fields.addURL(element.trimmedBytes[...])
        }
        try entries.append(url, fields, unit: "line", line: line)
    }

    private func addForeign(_ member: cjson_value, _ quotedName: [UInt8]) {
        guard keepsColumns else { return }
        if member.kind == CJSON_STRING {
            foreign.add(quotedName: quotedName, text: member.bytes)
        } else {
            foreign.add(quotedName: quotedName, json: member.bytes)
        }
    }

    /// Adds the value of a field.
    private func add(_ member: cjson_value, _ name: [UInt8], to fields: inout EntryFields) throws {
        func add(_ value: EntryFields.Bytes) throws {
            try name.withUnsafeBufferPointer { name in
                try fields.add(name[...], value)
            }
        }
        switch member.kind {
        case CJSON_NULL: return
        case CJSON_STRING, CJSON_NUMBER:
            let value = member.bytes[...].trimmed
            if !value.isEmpty { try add(value) }
        case CJSON_ARRAY:
            // The members' own reader must not read in between.
            let reader = cjson_make()
            defer { cjson_free(reader) }
            let result = reader.read(member.bytes, CJSON_ARRAY)
            for element in UnsafeBufferPointer(start: result.values, count: result.count) {
                guard element.kind == CJSON_STRING || element.kind == CJSON_NUMBER else {
                    throw EntryFields.problemOfKind(name)
                }
                try add(element.bytes[...])
            }
        default: throw EntryFields.problemOfKind(name)
        }
    }
}

extension OpaquePointer {
    fileprivate func read(_ json: UnsafeBufferPointer<UInt8>, _ kind: cjson_kind) -> cjson_result {
        guard let start = UnsafeRawPointer(json.baseAddress) else {
            return cjson_result(status: CJSON_INVALID, position: 0, values: nil, count: 0)
        }
        return cjson_read(self, start.assumingMemoryBound(to: CChar.self), json.count, kind)
    }
}

extension cjson_value {
    fileprivate var nameBytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: name, count: name_count)
    }

    /// The decoded string, or the JSON.
    fileprivate var bytes: UnsafeBufferPointer<UInt8> {
        UnsafeRawBufferPointer(start: text, count: text_count).assumingMemoryBound(to: UInt8.self)
    }

    fileprivate var hasValue: Bool { kind != CJSON_NULL && !bytes.isEmpty }

    /// Whether it may be a URL, or is an array whose first text may.
    fileprivate func hasURL(hasBase: Bool) -> Bool {
        switch kind {
        case CJSON_STRING: bytes[...].trimmed.mayBeURL(hasBase: hasBase)
        case CJSON_ARRAY:
            bytes[...].drop { $0 != UInt8(ascii: "\"") }.dropFirst().mayBeURL(hasBase: hasBase)
        default: false
        }
    }

    fileprivate var trimmedBytes: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[...].trimmed)
    }
}

extension [UInt8] {
    fileprivate func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        return withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, let first = other.baseAddress else { return true }
            return memcmp(start, first, bytes.count) == 0
        }
    }
}

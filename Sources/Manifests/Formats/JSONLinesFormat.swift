import CJSON
import Glibc
import PrefetchModel

/// The format `jsonl`: one JSON object per line, parsed by JSON for Modern C++.
///
/// - Members are the columns of a table, see ``ColumnRules``. Null and an empty text are no value
///   of a field.
/// - A field that may occur several times (`header`, `variant`) takes an array of them, or an
///   object of names and values, as does `attr`.
/// - The URL may be an array, see ``ManifestOptions/readsEachURL``, or an object with a member for
///   it. A line without a URL is skipped: null, false, empty, or without the member.
/// - Blank lines are skipped, as are lines that begin with `#`.
/// - JSON as Python writes it is read: `NaN` and infinities as null, lone surrogates as U+FFFD.
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
    private let cells: CellURLs
    private var foreign = ForeignColumns()
    /// The present line's URL, in the reader's memory; empty without one.
    private var url = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
    /// Whether a line so far has a member for URLs.
    private var hasMember = false

    /// Lines with other names each must not fill the memory.
    private static let maximumNames = 1024

    init(options: ManifestOptions) {
        var rules = options.columns
        // Members always have names.
        (rules.hasHeader, rules.hasObjects) = (true, true)
        self.rules = rules
        keepsColumns = options.keepsColumns
        cells = CellURLs(options)
    }

    /// The member that all lines lack; nil if one has it.
    var missingMember: String? {
        if hasMember { return nil }
        let names =
            rules.urlColumns.isEmpty ? Array(ColumnRules.commonNames.prefix(3)) : rules.urlColumns
        return "no member '\(LineExcerpt.text(of: names.joined(separator: "', '")))'"
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
            let members = try members(of: bytes, line.number, entries)
            try append(members, line.number, to: entries)
        } catch let problem as LineProblem {
            // Anything but the URL may be a secret.
            entries.appendBad(url, problem, columns: foreign.object, line: line.number)
        }
        for name in foreign.leftOut { entries.noteLeftOut(name, line: line.number) }
        foreign.removeAll()
    }

    /// Returns the members of a line's object, valid until the next call.
    private func members(
        of line: UnsafeBufferPointer<UInt8>, _ number: Int, _ entries: EntryAppender
    ) throws -> UnsafeBufferPointer<cjson_value> {
        // The parser takes a NUL byte for the end.
        if let end = line.firstIndex(of: 0) {
            throw LineProblem("invalid JSON at byte \(end + 1)")
        }
        let result = reader.read(line, CJSON_OBJECT)
        if result.has_lone_surrogate { entries.notes.replacedText.note(number) }
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
        if !urls.isEmpty { hasMember = true }
        let chosen =
            rules.urlColumns.count > 1
            ? Array(urls.indices) : chooseURL(urls, entries).map { [$0] } ?? []
        for (index, other) in urls.enumerated() where !chosen.contains(index) {
            addForeign(other.member, other.name)
        }
        let texts = chosen.map { urls[$0].member }
        if let url = texts.first, url.kind == CJSON_STRING { self.url = url.bytes }
        var fields = try fields(places, of: members, line, entries.options.variants)
        fields.values.columns = foreign.object
        var count = 0
        for text in texts {
            do {
                count += try append(text, fields, line, to: entries)
            } catch let problem as LineProblem where texts.count > 1 {
                entries.appendBad(text.bytes, problem, columns: foreign.object, line: line)
                count += 1
            }
        }
        guard count == 0 else { return }
        if !fields.otherURLs.isEmpty {
            let none = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
            return try append(none, fields, line, to: entries)
        }
        let problem = LineProblem.withoutURL("line")
        throw urls.isEmpty || urls.contains(where: \.member.hasValue)
            ? problem.hidingImages : problem
    }

    /// Appends the entries of a member.
    ///
    /// - Returns: The number of its URLs.
    private func append(
        _ member: cjson_value, _ given: EntryFields, _ line: Int, to entries: EntryAppender
    ) throws -> Int {
        var fields = given
        var urls: [[UInt8]]
        switch member.kind {
        case CJSON_STRING:
            let text = cells.trimmed(member.bytes[...])
            guard let several = cells.several(in: text) else {
                guard !text.isEmpty else { return 0 }
                try append(UnsafeBufferPointer(rebasing: text), fields, line, to: entries)
                return 1
            }
            guard several.count < 2 || entries.options.readsEachURL else {
                throw LineProblem.several(in: "one text")
            }
            urls = several.map(Array.init)
        case CJSON_ARRAY:
            urls = try self.urls(ofArray: member.bytes)
            guard urls.count > 1, !entries.options.readsEachURL else { break }
            entries.notes.mirrors.note(line)
            guard urls.count <= EntryExtras.maximumAlternatives + 1 else {
                throw LineProblem(
                    "\(urls.count) URLs in an array, which has up to "
                        + "\(EntryExtras.maximumAlternatives + 1) mirrors of one image; --each makes "
                        + "each an entry")
            }
            for url in urls.dropFirst() { try url.withSlice { try fields.addURL($0) } }
            urls.removeSubrange(1...)
        case CJSON_OBJECT: urls = try url(ofObject: member.bytes).map { [$0] } ?? []
        case CJSON_NULL: return 0
        case CJSON_BOOLEAN where member.bytes.first == UInt8(ascii: "f"): return 0
        default: throw JSONLinesFormat.wrongKind
        }
        for url in urls {
            try url.withUnsafeBufferPointer { try append($0, fields, line, to: entries) }
        }
        return urls.count
    }

    /// Appends an entry. A bad URL does not affect the others of its line.
    private func append(
        _ url: UnsafeBufferPointer<UInt8>, _ fields: EntryFields, _ line: Int,
        to entries: EntryAppender
    ) throws {
        entries.examine(url, line: line)
        do {
            try entries.append(url, fields, unit: "line", line: line)
        } catch let problem as LineProblem {
            entries.appendBad(url, problem, columns: foreign.object, line: line)
        }
    }

    private static let wrongKind = LineProblem("the URL is not a JSON string, or an array of them")

    /// Returns the URLs of an array, without empty elements.
    private func urls(ofArray json: UnsafeBufferPointer<UInt8>) throws -> [[UInt8]] {
        let result = arrayReader.read(json, CJSON_ARRAY)
        // An object's own reader must not read in between.
        let elements = UnsafeBufferPointer(start: result.values, count: result.count)
            .map { (kind: $0.kind, bytes: Array($0.bytes)) }
        return try elements.compactMap { element -> [UInt8]? in
            switch element.kind {
            case CJSON_STRING:
                let url = element.bytes.withSlice { Array(cells.trimmed($0)) }
                return url.isEmpty ? nil : url
            case CJSON_OBJECT:
                return try element.bytes.withUnsafeBufferPointer { try url(ofObject: $0) }
            case CJSON_NULL: return nil
            default: throw JSONLinesFormat.wrongKind
            }
        }
    }

    /// Returns the URL of an object, such as `{"src": "https://…"}`; nil for one without members.
    private func url(ofObject json: UnsafeBufferPointer<UInt8>) throws -> [UInt8]? {
        let result = arrayReader.read(json, CJSON_OBJECT)
        let members = UnsafeBufferPointer(start: result.values, count: result.count)
        if members.isEmpty { return nil }
        let named = members.compactMap { member -> (rank: Int, url: [UInt8])? in
            let name = String(decoding: member.nameBytes, as: UTF8.self)
            guard [CJSON_STRING, CJSON_NULL].contains(member.kind),
                let rank = ColumnRules.rank(of: name)
            else { return nil }
            let isNull = member.kind == CJSON_NULL
            return (rank, isNull ? [] : Array(cells.trimmed(member.bytes[...])))
        }
        guard let url = named.filter({ !$0.url.isEmpty }).min(by: { $0.rank < $1.rank })?.url
        else {
            if named.isEmpty { throw JSONLinesFormat.wrongKind }
            return nil
        }
        return url
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
        switch member.kind {
        case CJSON_NULL: return
        case CJSON_STRING, CJSON_NUMBER:
            guard !name.elementsEqual(ObjectField.attr.rawValue.utf8) else {
                throw EntryFields.problem("field 'attr' takes an object of names and values")
            }
            let value = member.bytes[...].trimmed
            if !value.isEmpty { try name.withSlice { try fields.add($0, value) } }
        case CJSON_ARRAY, CJSON_OBJECT:
            // The members' own reader must not read in between.
            let reader = cjson_make()
            defer { cjson_free(reader) }
            let result = reader.read(member.bytes, member.kind)
            for element in UnsafeBufferPointer(start: result.values, count: result.count) {
                try add(element, of: member.kind, name, to: &fields)
            }
        default: throw EntryFields.problemOfKind(name)
        }
    }

    /// Adds an element of an array of values, or a member of an object of names and values.
    private func add(
        _ element: cjson_value, of kind: cjson_kind, _ name: [UInt8], to fields: inout EntryFields
    ) throws {
        let isNull = element.kind == CJSON_NULL
        let isOfObject = isNull || element.kind == CJSON_BOOLEAN
        guard
            [CJSON_STRING, CJSON_NUMBER].contains(element.kind)
                || kind == CJSON_OBJECT && isOfObject
        else {
            guard kind == CJSON_OBJECT, element.name_count > 0 else {
                throw EntryFields.problemOfKind(name)
            }
            let member = LineExcerpt.text(of: String(decoding: element.nameBytes, as: UTF8.self))
            let field = String(decoding: name, as: UTF8.self)
            throw EntryFields.problem(
                "field '\(field)': '\(member)' takes one string or number")
        }
        guard kind == CJSON_OBJECT else {
            return try name.withSlice { try fields.add($0, element.bytes[...]) }
        }
        let value = isNull ? [] : Array(element.bytes)
        let field = String(decoding: name, as: UTF8.self)
        guard let form = ObjectField(rawValue: field) else {
            throw EntryFields.problemOfKind(name)
        }
        switch form {
        // Null removes a header field, and sets no attribute.
        case .header:
            let text = Array(element.nameBytes) + [UInt8(ascii: ":")] + value
            try name.withSlice { name in try text.withSlice { try fields.add(name, $0) } }
        case .variant where !isNull:
            let text = Array(element.nameBytes) + [UInt8(ascii: "=")] + value
            try name.withSlice { name in try text.withSlice { try fields.add(name, $0) } }
        case .attr where !isNull:
            let name = Array("attr.".utf8) + Array(element.nameBytes)
            try name.withSlice { name in try value.withSlice { try fields.add(name, $0) } }
        default: break
        }
    }

    /// The members that take an object of names and values.
    private enum ObjectField: String {
        case header, variant, attr
    }
}

extension [UInt8] {
    fileprivate func withSlice<Value>(
        _ body: (Slice<UnsafeBufferPointer<UInt8>>) throws -> Value
    ) rethrows -> Value {
        try withUnsafeBufferPointer { try body($0[...]) }
    }
}

extension OpaquePointer {
    fileprivate func read(_ json: UnsafeBufferPointer<UInt8>, _ kind: cjson_kind) -> cjson_result {
        guard let start = UnsafeRawPointer(json.baseAddress) else {
            return cjson_result(
                status: CJSON_INVALID, position: 0, values: nil, count: 0,
                has_lone_surrogate: false)
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

    fileprivate var hasValue: Bool {
        kind != CJSON_NULL && !bytes.isEmpty && !bytes.elementsEqual("[]".utf8)
            && !bytes.elementsEqual("{}".utf8) && !bytes.elementsEqual("false".utf8)
    }

    /// Whether it may be a URL, or is an array whose first text may, or has a URL somewhere.
    fileprivate func hasURL(hasBase: Bool) -> Bool {
        switch kind {
        case CJSON_STRING: bytes[...].trimmed.mayBeURL(hasBase: hasBase)
        case CJSON_ARRAY where bytes.dropFirst().first == UInt8(ascii: "\""):
            bytes[...].dropFirst(2).mayBeURL(hasBase: hasBase)
        case CJSON_ARRAY, CJSON_OBJECT:
            bytes[...].split(separator: UInt8(ascii: "\"")).contains(where: \.isAbsoluteURL)
        default: false
        }
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

import PrefetchModel

/// The fields of an entry, in all formats of lists.
///
/// - `priority`: `high`, `normal`, `low`, or an integer within -100…100;
/// - `key`: the cache key, 1…2048 bytes of UTF-8 without control characters;
/// - `ttl`: how long the image is fresh, written like a flag's duration: `500ms`, `30s`, `5m`,
///   `2h`, `7d`; a bare number counts seconds. At most 36500d and 32 bytes of text; `0` is always
///   stale;
/// - `attr.NAME`: an extended attribute. The value is taken byte for byte: it may be empty, contain
///   `=`, and be other bytes than UTF-8. ``EntryAttribute`` has the limits. At most 64 per entry;
/// - `header`: `NAME:VALUE`, a header field for the entry's requests, replacing the run's field
///   with that name; without VALUE it removes the field. VALUE is UTF-8 and isn't percent-decoded.
///   `HeaderField.init(requestLine:)` has the refused names. At most 64 per entry, 8 KiB in total;
/// - `url`: another URL of the image, requested if those before it fail. At most 8;
/// - `sha256`: the SHA-256 of the file at the URL, 64 hexadecimal digits. Another file is a
///   `corrupt-image`, and a stored copy of another file is requested again;
/// - `encode`: the format of the variant `main`: `same`, `jpeg`, `png`, `webp`, `avif`, `auto` or
///   `original`; a run with `--strip all` refuses `original`;
/// - `quality`: the quality of the variant `main`, 1…100;
/// - `resize`: the size of the variant `main`, see ``ResizeGeometry``;
/// - `crop` and `transform`: a crop and the steps of the variant `main`, see ``EntryExtras``;
/// - `animated`: the treatment of animations in the variant `main`: `keep`, `first` or `refuse`;
///   `original` requires `keep`;
/// - `variant=NAME=SPEC`: a variant in addition to the run's, with another name;
/// - `variants`: comma-separated names of the run's variants and the line's own, each once: the
///   entry gets only these of the run's. All other fields about `main` need it among them.
///
/// Each field may occur once, `attr.` once per NAME, `header`, `url` and `variant` any number of
/// times.
struct EntryFields {
    private(set) var priority: Priority?
    private(set) var key: [UInt8]?
    /// The fields that the record itself doesn't hold, without those about variants. The formats
    /// set the columns, and the appender the alternatives.
    var values = EntryExtras.empty
    private var headerBytes = 0
    /// The values of `url`.
    private(set) var otherURLs: [[UInt8]] = []
    private var variants = VariantFields()

    typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

    /// The fields that the record itself doesn't hold; nil without any.
    var extras: EntryExtras? {
        if variants.changesNothing { return values.withoutVariants }
        var extras = values
        extras.main = variants.main
        extras.variants = variants.selection
        extras.ownVariants = variants.own
        return extras
    }

    private static let attributePrefix = "attr."
    /// Longer than any sensible number. Parsing 64 KiB of digits would take milliseconds.
    private static let maximumTimeToLiveBytes = 32
    private static let maximumKeyBytes = 2048
    /// Longer names are not repeated in a message.
    private static let maximumShownBytes = 64

    /// Adds a field; its value may be any bytes.
    ///
    /// - Throws: a problem that names the field.
    mutating func add(_ name: Bytes, _ value: Bytes) throws {
        if name.elementsEqual("priority".utf8) {
            guard priority == nil else { throw EntryFields.problem("duplicate field 'priority'") }
            priority = try EntryFields.priority(value)
        } else if name.elementsEqual("key".utf8) {
            guard key == nil else { throw EntryFields.problem("duplicate field 'key'") }
            try EntryFields.checkKey(UnsafeBufferPointer(rebasing: value))
            key = Array(value)
        } else if name.elementsEqual("ttl".utf8) {
            guard values.timeToLive == nil else {
                throw EntryFields.problem("duplicate field 'ttl'")
            }
            values.timeToLive = try EntryFields.timeToLive(value)
        } else if name.elementsEqual("header".utf8) {
            try addHeader(value)
        } else if name.elementsEqual("url".utf8) {
            try addURL(value)
        } else if name.elementsEqual("sha256".utf8) {
            guard values.sourceDigest == nil else {
                throw EntryFields.problem("duplicate field 'sha256'")
            }
            values.sourceDigest = ContentDigest(hexadecimal: String(decoding: value, as: UTF8.self))
            guard values.sourceDigest != nil else {
                throw EntryFields.problem("sha256", takes: "64 hexadecimal digits", value)
            }
        } else if name.starts(with: EntryFields.attributePrefix.utf8) {
            try addAttribute(name, value)
        } else if let field = VariantFields.VariantField(name) {
            try variants.add(field, value)
        } else {
            throw EntryFields.problemOfUnknown(name)
        }
    }

    /// Checks the combination of all fields. Called once, after the last one.
    ///
    /// - Throws: a problem if fields contradict each other or the run.
    mutating func check(in known: VariantSet?) throws {
        if !variants.isEmpty { try variants.check(in: known) }
    }

    /// Whether a name is that of a field.
    static func isName(_ name: String) -> Bool {
        names.contains(name) || name.hasPrefix(attributePrefix) && name != attributePrefix
    }

    private mutating func addAttribute(_ field: Bytes, _ value: Bytes) throws {
        let nameBytes = field.dropFirst(EntryFields.attributePrefix.utf8.count)
        guard let name = String(validating: nameBytes, as: UTF8.self) else {
            throw EntryFields.problem("an attribute's name is not UTF-8")
        }
        let attribute = try EntryFields.checked { () throws(UserError) in
            try EntryAttribute(name: name, value: Array(value))
        }
        guard !values.attributes.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
            let shown = EntryFields.shown(field).map { "field '\($0)'" }
            throw EntryFields.problem("duplicate \(shown ?? "attribute")")
        }
        guard values.attributes.count < EntryExtras.maximumAttributes else {
            throw EntryFields.problem("more than \(EntryExtras.maximumAttributes) attributes")
        }
        values.attributes.append(attribute)
    }

    private mutating func addHeader(_ value: Bytes) throws {
        guard let text = String(validating: value, as: UTF8.self) else {
            throw EntryFields.problem("a header is not UTF-8")
        }
        guard values.headers.count < EntryExtras.maximumHeaders else {
            throw EntryFields.problem("more than \(EntryExtras.maximumHeaders) headers")
        }
        headerBytes += value.count
        guard headerBytes <= EntryExtras.maximumHeaderBytes else {
            throw EntryFields.problem(
                "more than \(EntryExtras.maximumHeaderBytes) bytes of headers")
        }
        values.headers.append(
            try EntryFields.checked { () throws(UserError) in
                try HeaderField(requestLine: text, form: "header=Name:value")
            })
    }

    /// Adds another URL.
    mutating func addURL(_ value: Bytes) throws {
        guard otherURLs.count < EntryExtras.maximumAlternatives else {
            throw EntryFields.problem("more than \(EntryExtras.maximumAlternatives) fields 'url'")
        }
        guard !value.isEmpty else { throw EntryFields.problem("field 'url' is empty") }
        otherURLs.append(Array(value))
    }

    private static func timeToLive(_ value: Bytes) throws -> Duration {
        guard value.count <= maximumTimeToLiveBytes,
            let duration = Duration(quantity: String(decoding: value, as: UTF8.self))
        else { throw problem("ttl", takes: Duration.quantityForm + ", at most 36500d", value) }
        return duration
    }

    private static func priority(_ value: Bytes) throws -> Priority {
        switch String(decoding: value.prefix(8), as: UTF8.self) {
        case "high" where value.count == 4: return .high
        case "normal" where value.count == 6: return .normal
        case "low" where value.count == 3: return .low
        case let text:
            guard value.count <= 8, let number = Int(text), let priority = Priority(number) else {
                throw problem("priority", takes: "high, normal, low or -100 to 100", value)
            }
            return priority
        }
    }

    private static func checkKey(_ value: UnsafeBufferPointer<UInt8>) throws {
        guard (1...maximumKeyBytes).contains(value.count) else {
            throw problem("field 'key' takes 1 to \(maximumKeyBytes) bytes")
        }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw problem("field 'key' takes UTF-8")
        }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { throw problem("field 'key' takes no control characters") }
    }

    /// The problem of a JSON value that is no text, number or array of these.
    static func problemOfKind(_ name: [UInt8]) -> LineProblem {
        let text = name.withUnsafeBufferPointer { shown($0[...]) }
        return problem(
            "\(text.map { "field '\($0)'" } ?? "a field") takes a string, a number, or an array of them"
        )
    }

    static func problemOfQuotes(_ name: Bytes, _ text: String) -> LineProblem {
        problem("\(shown(name).map { "field '\($0)'" } ?? "a field"): \(text)")
    }

    private static func problemOfUnknown(_ name: Bytes) -> LineProblem {
        guard let text = shown(name) else {
            return problem("an unknown field after the URL; \(knownNames)")
        }
        let lower = text.lowercased()
        let near = names.first { lower.isNearly($0) }
        let advice =
            near.map { "did you mean '\($0)'?" }
            // The dot may be missing.
            ?? (lower.hasPrefix("attr") ? "did you mean 'attr.NAME'?" : knownNames)
        return problem("unknown field '\(text)'; \(advice)")
    }

    static let names =
        ["priority", "key", "ttl", "header", "url", "sha256"]
        + VariantFields.VariantField.allCases.map(\.rawValue)
    private static let knownNames =
        "known are \((names + ["attr.NAME"]).joined(separator: ", "))"

    /// The name, if a message may repeat it; nil if it is long or has other bytes than letters,
    /// digits and `-_.`: it may be part of a URL with a password.
    private static func shown(_ name: Bytes) -> String? {
        guard isPlain(name, with: "-_."), (1...maximumShownBytes).contains(name.count) else {
            return nil
        }
        return String(decoding: name, as: UTF8.self)
    }

    /// Whether all bytes are letters, digits or some other characters.
    private static func isPlain(_ text: Bytes, with others: String) -> Bool {
        text.allSatisfy { $0.isLetter || $0.isDecimalDigit || others.utf8.contains($0) }
    }

    static func checked<Value>(
        _ make: () throws(UserError) -> Value,
        _ problem: (UserError) -> LineProblem = { EntryFields.problem($0.message) }
    ) throws -> Value {
        do { return try make() } catch { throw problem(error) }
    }

    static func problem(_ message: String) -> LineProblem {
        LineProblem(message, namesField: true)
    }

    /// The problem of a value that a parser rejects. Its message, which may repeat a part of the
    /// value, is used unless the value may be part of a URL with a password.
    static func problem(_ name: String, because message: String, _ value: Bytes) -> LineProblem {
        let isShown = isPlain(value, with: "-_.,^!%=+:#~") && value.count <= 4 * maximumShownBytes
        return problem(
            isShown ? "field '\(name)': \(message)" : "field '\(name)' has an invalid value")
    }

    /// The problem of an invalid value. The message repeats the value unless it may be part of a
    /// URL with a password.
    static func problem(_ name: String, takes allowed: String, _ value: Bytes) -> LineProblem {
        let isShown =
            isPlain(value, with: "-_.,^!%") && (1...maximumShownBytes).contains(value.count)
        let text = isShown ? ", not '\(String(decoding: value, as: UTF8.self))'" : ""
        return problem("field '\(name)' takes \(allowed)\(text)")
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    /// Without white space around it.
    var trimmed: Self {
        func isSpace(_ byte: UInt8) -> Bool { byte.isBlank || byte == 0x0A || byte == 0x0D }
        var rest = drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }

    /// Whether it begins like an absolute URL that can be requested.
    var isAbsoluteURL: Bool {
        let scheme = prefix { $0 != UInt8(ascii: ":") }
        guard (4...5).contains(scheme.count),
            self[scheme.endIndex...].starts(with: "://".utf8)
        else { return false }
        return ["http", "https"].contains { scheme.map(\.lowercased).elementsEqual($0.utf8) }
    }

    /// Whether it can be requested: with a base also a relative URL, so any text but `data:`.
    func mayBeURL(hasBase: Bool) -> Bool {
        guard hasBase else { return isAbsoluteURL }
        return !isEmpty && !hasDataScheme
    }

    /// Whether a line with these bytes is no entry in lists that have comments.
    var isBlankOrComment: Bool { trimmed.first.map { $0 == UInt8(ascii: "#") } ?? true }
}

extension Sequence<UInt8> {
    /// Whether it begins like a `data:` URL.
    var hasDataScheme: Bool { prefix(5).map(\.lowercased).elementsEqual("data:".utf8) }
}

extension UInt8 {
    /// Space or tab.
    var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}

package import PrefetchModel

/// The request fields that selected a stored response, with their values (RFC 9111 §4.1).
///
/// The canonical text has one line for each varied field, sorted by name and separated by `\n`:
/// the name in lower case, a colon, and, if the request had the field, a space and its value. The
/// text `*` stands for a response that no later request selects.
package enum Vary {
    /// The text of `Vary: *`, which no request matches.
    package static let any = "*"

    /// The canonical text for the values of a response's `Vary` fields; nil when they name nothing.
    ///
    /// A value that is not a list of field names counts as `*`: the selecting fields are unknown.
    package static func text(_ values: [String], request: [HeaderField]) -> String? {
        if matchesNothing(values) { return any }
        let names = names(values)
        return names.isEmpty ? nil : text(names: names, request: request)
    }

    /// Whether a request with these fields selects the stored response (§4.1).
    ///
    /// False for `*`, and for text that ``text(_:request:)`` does not write, such as mere names.
    ///
    /// Builds the text again, in time proportional to it. A run over many rows caches the results
    /// by text, since its own fields seldom change.
    package static func matches(_ text: String, request: [HeaderField]) -> Bool {
        var names: [String] = []
        for line in lines(of: text) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
            let name = FieldSyntax.text(line[..<colon])
            guard name == name.lowercased(), FieldSyntax.isToken(line[..<colon]) else {
                return false
            }
            names.append(name)
        }
        return self.text(names: names, request: request).utf8.elementsEqual(text.utf8)
    }

    static func fieldValue(of text: String) -> String {
        lines(of: text).map { FieldSyntax.text($0.prefix { $0 != UInt8(ascii: ":") }) }
            .joined(separator: ", ")
    }

    private static func lines(of text: String) -> [Substring.UTF8View] {
        text[...].utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { Substring($0).utf8 }
    }

    /// Whether no later request matches the response: a member is `*`, or no field name.
    static func matchesNothing(_ values: [String]) -> Bool {
        values.contains { value in
            FieldSyntax.members(of: value).contains {
                !FieldSyntax.isToken($0) || $0.elementsEqual(any.utf8)
            }
        }
    }

    static func names(_ values: [String]) -> [String] {
        let names = values.flatMap { FieldSyntax.members(of: $0) }
        return Set(names.map { FieldSyntax.text($0).lowercased() }).sorted()
    }

    private static func text(names: [String], request: [HeaderField]) -> String {
        names.map { name in
            // A field with an empty value differs from a missing one (§4.1).
            guard let value = request.combinedValue(of: name) else { return name + ":" }
            return name + ": " + normalised(value)
        }.joined(separator: "\n")
    }

    /// Removes insignificant white space: at the ends, around commas, and all but one of several
    /// in a row. Quoted strings keep theirs.
    private static func normalised(_ value: String) -> String {
        var result: [UInt8] = []
        var isQuoted = false
        var isEscaped = false
        for byte in value.utf8 {
            // A line break would end the text's line; no field value has one.
            let isSpace = FieldSyntax.isWhiteSpace(byte) || byte == 0x0A || byte == 0x0D
            if isQuoted {
                result.append(isSpace ? FieldSyntax.space : byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == FieldSyntax.backslash {
                    isEscaped = true
                } else if byte == FieldSyntax.quote {
                    isQuoted = false
                }
                continue
            }
            if isSpace {
                if let last = result.last, last != FieldSyntax.space, last != FieldSyntax.comma {
                    result.append(FieldSyntax.space)
                }
                continue
            }
            if byte == FieldSyntax.comma, result.last == FieldSyntax.space {
                result.removeLast()
            }
            result.append(byte)
            isQuoted = byte == FieldSyntax.quote
        }
        if !isQuoted, result.last == FieldSyntax.space {
            result.removeLast()
        }
        return FieldSyntax.text(result)
    }
}

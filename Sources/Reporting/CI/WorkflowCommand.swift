/// Commands of GitHub Actions' runner, which are lines of a step's standard output or error.
enum WorkflowCommand {
    /// An annotation, `::error file=m.txt,line=12,title=http-status::message`.
    static func annotation(
        _ level: String, file: String?, line: Int?, title: String, message: String
    ) -> String {
        let properties = [
            file.map { "file=\(property($0))" }, line.map { "line=\($0)" },
            "title=\(property(title))",
        ]
        return
            "::\(level) \(properties.compactMap(\.self).joined(separator: ","))::\(data(message))"
    }

    // The runner compares code units, so Unicode scalars are compared here: the characters of Swift
    // include combining marks, and CR LF is one.

    /// Escapes the text after the second `::`, like GitHub's own toolkit.
    static func data(_ text: String) -> String { escaped(text, ["%", "\r", "\n"]) }

    static func property(_ text: String) -> String {
        escaped(text, ["%", "\r", "\n", ":", ","])
    }

    private static func escaped(_ text: String, _ special: Set<Unicode.Scalar>) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            guard special.contains(scalar) else {
                result.append(scalar)
                continue
            }
            let digits = String(scalar.value, radix: 16, uppercase: true)
            result += "%\(digits.count == 1 ? "0" : "")\(digits)".unicodeScalars
        }
        return String(result)
    }

    /// Inserts a space into texts that the runner would take for commands: `::` at the start of a
    /// line, or `##[` anywhere. A list or a server could write `::stop-commands::` otherwise.
    static func defused(_ text: String) -> String {
        let special: [UInt8] = [UInt8(ascii: "#"), UInt8(ascii: ":")]
        guard text.utf8.contains(where: special.contains) else { return text }
        var result = String.UnicodeScalarView()
        var isAtStart = true
        // The number of `:` at the start of the line, or of `#`, directly before.
        var colons = 0
        var hashes = 0
        for scalar in text.unicodeScalars {
            if scalar == ":", isAtStart {
                colons += 1
                if colons == 2 { result.append(" ") }
            } else if scalar == "[", hashes >= 2 {
                result.append(" ")
            }
            hashes = scalar == "#" ? hashes + 1 : 0
            let isLineEnd = scalar == "\n" || scalar == "\r"
            if isLineEnd || !(scalar == ":" || scalar.properties.isWhitespace) {
                isAtStart = isLineEnd
                colons = 0
            }
            result.append(scalar)
        }
        return String(result)
    }
}

/// Keys and values as TOML writes them.
enum TOMLText {
    /// A bare key, or a quoted one: `"http1.1"`.
    static func key(_ name: String) -> String {
        name.contains(".") ? quoted(name) : name
    }

    /// A decimal number if the value is one, else a basic string.
    static func value(_ text: String, isNumber: Bool = true) -> String {
        let digits = text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        let isPlain = digits && (1...15).contains(text.utf8.count) && !text.hasPrefix("0")
        return isNumber && (isPlain || text == "0") ? text : quoted(text)
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\u{0}"..<"\u{20}", "\u{7F}"..."\u{9F}", "\u{200B}"..."\u{200F}",
                "\u{2028}"..."\u{202E}", "\u{2060}"..."\u{206F}", "\u{FEFF}":
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

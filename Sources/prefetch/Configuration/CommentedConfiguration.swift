import ConfigurationFiles

/// The text of a new configuration file, from the table of flags: every key with its help.
///
/// `#key = value` sets the default; `# key = …`, with a space, shows the form of a key without one.
enum CommentedConfiguration {
    static var lines: [String] {
        var lines = [
            "# Configuration of prefetch. Keys are the names of the flags of `prefetch run`.",
            "# Remove the # before a key to set it; `prefetch config check` finds mistakes.",
        ]
        for section in RunFlags.sections {
            lines += ["", "# ---- \(section.heading.rawValue)"]
            for row in RunFlags.rows(section.heading) where row.isConfigurable {
                lines += [""]
                lines += wrapped(row.help + note(on: row)).map { "# \($0)" } + [example(of: row)]
            }
        }
        return lines + [""] + tables
    }

    private static let columns = 78

    private static func note(on row: FlagRow) -> String {
        var note =
            row.isRepeatable || row.choices.isEmpty
            ? "" : " Values: \(row.choices.joined(separator: ", "))."
        switch row.projectRule {
        case .allowed: break
        case .refused: note += " Not in a project's file."
        case .refusedWithSecrets: note += " In a project's file without credentials."
        case .refusedWithOverlays: note += " In a project's file without overlays."
        }
        return note
    }

    private static func example(of row: FlagRow) -> String {
        let key = TOMLText.key(row.name)
        guard let value = row.value else { return "#\(key) = false" }
        if row.isRepeatable { return "# \(key) = [\(TOMLText.value(value, isNumber: false))]" }
        guard let text = row.defaultText else {
            return "# \(key) = \(TOMLText.value(value.uppercased()))"
        }
        return "#\(key) = \(TOMLText.value(text))"
    }

    private static func wrapped(_ text: String) -> [String] {
        var lines = [""]
        for word in text.split(separator: " ") {
            let last = lines[lines.count - 1]
            if last.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if last.count + 1 + word.count > columns {
                lines.append(String(word))
            } else {
                lines[lines.count - 1] += " \(word)"
            }
        }
        return lines
    }

    private static let tables = """
        # ---- Tables, behind all keys

        # Keys for `prefetch run --profile nightly`.
        # [profile.nightly]
        # refresh = "all"

        # Another stored form of each image; keys as above, or spec = "256x256,webp".
        # [variant.thumb]
        # resize = "256x256"
        # encode = "webp"

        # Keys about requests and responses for some hosts; the most specific pattern counts.
        # [host."*.example.com"]
        # header = ["Referer: https://example.com/"]

        # The rules of --prune.
        # [prune]
        # unlisted-for = "30d"

        # A list for `prefetch run @shop`; also format, columns, base-url and so on. Paths are
        # relative to the folder of this file.
        # [list.shop]
        # file = "shop.csv"
        # url-column = "picture"
        """.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
}

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

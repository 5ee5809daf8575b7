internal import Glibc
internal import PrefetchModel

/// Commands in the log of a CI service: GitHub Actions' lines on standard output or error, and the
/// marks of Azure Pipelines and TeamCity.
enum WorkflowCommand {
    /// Whether the log is one of GitHub (also Forgejo and Gitea), Azure or TeamCity, which obey
    /// commands in printed lines.
    static let areObeyed =
        value("GITHUB_ACTIONS") == "true" || value("TF_BUILD") != ""
        || value("TEAMCITY_VERSION") != ""

    private static func value(_ name: String) -> String {
        getenv(name).map { String(cString: $0) } ?? ""
    }

    /// An annotation, `::error file=m.txt,line=12,title=http-status::message`.
    static func annotation(
        _ level: String, file: String? = nil, line: Int? = nil, title: String = "prefetch",
        message: String
    ) -> String {
        let properties = [
            file.map { "file=\(property(defused($0)))" }, line.map { "line=\($0)" },
            "title=\(property(defused(title)))",
        ]
        return
            "::\(level) \(properties.compactMap(\.self).joined(separator: ","))::"
            + data(defused(message))
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

    /// The bytes without the texts that a CI service takes for commands, which a list or a server
    /// could write: `::` at the start of a line, after anything but ASCII text, and anywhere `##[`,
    /// or `##` before a letter (`##vso[`, `##teamcity[`). A space is inserted, or in a line of JSON
    /// `\u0023`, which keeps the value. Lines end with LF or CR, as for GitHub's runner.
    static func defused(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 16)
        var line = Line()
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"): line = Line()
            case UInt8(ascii: ":") where line.isAtStart:
                line.colons += 1
                if line.colons == 2 { result.append(UInt8(ascii: " ")) }
            case UInt8(ascii: "{") where line.isEmpty: line.isJSON = true
            case UInt8(ascii: "#") where line.isJSON && line.hashes > 0:
                result += "\\u0023".utf8
                continue
            case _ where line.hashes > 1 && (byte == UInt8(ascii: "[") || byte.isLetter):
                result.append(UInt8(ascii: " "))
            default: break
            }
            line.note(byte)
            result.append(byte)
        }
        return result
    }

    /// The same for a text.
    static func defused(_ text: String) -> String {
        text.withBytes { String(decoding: defused(UnsafeRawBufferPointer($0)), as: UTF8.self) }
    }

    private struct Line {
        var isJSON = false
        var isEmpty = true
        /// Whether a runner may skip all of it as white space, except for the colons.
        var isAtStart = true
        var colons = 0
        /// The number of `#` directly before.
        var hashes = 0

        mutating func note(_ byte: UInt8) {
            guard byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") else { return }
            isEmpty = false
            hashes = byte == UInt8(ascii: "#") ? hashes + 1 : 0
            guard byte != UInt8(ascii: ":") else { return }
            colons = 0
            isAtStart = isAtStart && (byte <= 0x20 || byte >= 0x80)
        }
    }
}

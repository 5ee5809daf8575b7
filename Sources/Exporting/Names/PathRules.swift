import Glibc
internal import Hashing
import PrefetchModel

/// The rules for the names of exported files.
///
/// | in a name | in its file |
/// |---|---|
/// | control characters, slashes, bytes that are no UTF-8 | percent-encoded |
/// | `.` and `..` | `%2E`, `%2E%2E` |
/// | device names of Windows, like `CON.jpg` | `%43ON.jpg` |
/// | more than 255 bytes | its beginning, `~`, 16 digits of its SHA-256, its extension |
/// | for Windows and macOS also `<>:"\|?*`, and a dot or space at the end | percent-encoded |
///
/// So no name leads out of its folder, and none is one that a file system refuses.
struct PathRules: Sendable {
    /// Whether the target ignores case, as Windows and macOS do.
    let isCaseInsensitive: Bool

    /// `NAME_MAX` of Linux, and the limit of APFS and NTFS.
    static let maximumNameBytes = 255
    /// `PATH_MAX` of Linux less the final NUL byte.
    static let maximumPathBytes = 4095

    /// Each open folder of a path takes a descriptor.
    private static let mostFolders = 100

    private static let longestKeptExtension = 16
    private static let deviceNames: Set<String> = Set(
        ["con", "prn", "aux", "nul", "conin$", "conout$"]
            + ["com", "lpt"].flatMap { name in
                (0...9).map { "\(name)\($0)" } + ["\(name)¹", "\(name)²", "\(name)³"]
            })

    /// The file name for the bytes of a name; empty for an empty one.
    func name(_ bytes: some Collection<UInt8>) -> String {
        if isPlain(bytes) { return String(decoding: bytes, as: UTF8.self) }
        var name = ""
        for piece in Unicode.UTF8.pieces(of: bytes) {
            switch piece {
            case .invalid(let byte): name += URLParts.percentEncoded(byte)
            case .scalar(let scalar) where isForbidden(scalar):
                for byte in String(scalar).utf8 { name += URLParts.percentEncoded(byte) }
            case .scalar(let scalar): name.unicodeScalars.append(scalar)
            }
        }
        if name == "." || name == ".." { return name.replacing(".", with: "%2E") }
        if name.hasPrefix(ExportState.name) { name = "%2E" + name.dropFirst() }
        if isDevice(name) { name = encoding(at: name.startIndex, of: name) }
        if isCaseInsensitive, name.hasSuffix(".") || name.hasSuffix(" ") {
            name = encoding(at: name.index(before: name.endIndex), of: name)
        }
        return shortened(name)
    }

    /// Whether bytes are a name as they are, by a quick test that most names pass: a name without
    /// escapes that may be no device's.
    func isPlain(_ bytes: some Collection<UInt8>) -> Bool {
        guard let first = bytes.first, first != UInt8(ascii: ".") else { return false }
        var count = 0
        var stem = 0
        var last = first
        for byte in bytes {
            guard isPlain(byte) else { return false }
            if stem == 0, byte == UInt8(ascii: ".") { stem = count }
            count += 1
            last = byte
        }
        if stem == 0 { stem = count }
        // Devices of plain characters have three or four.
        let mayBeDevice = (3...4).contains(stem) && "AaCcLlNnPp".utf8.contains(first)
        return !mayBeDevice && count <= PathRules.maximumNameBytes && last != UInt8(ascii: ".")
    }

    private func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-")...UInt8(ascii: "."),
            UInt8(ascii: "_"):
            true
        case UInt8(ascii: "="), UInt8(ascii: "&"), UInt8(ascii: ":"), UInt8(ascii: "?"),
            UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "~"):
            !isCaseInsensitive
        default: false
        }
    }

    /// The path of these file names; empty ones are left out.
    ///
    /// - Throws: ``NamingProblem`` for a path that is too long, or empty.
    func path(_ names: [String]) throws(NamingProblem) -> String {
        let path = names.filter { !$0.isEmpty }.joined(separator: "/")
        guard !path.isEmpty else { throw NamingProblem(message: "its name is empty") }
        guard path.utf8.count <= PathRules.maximumPathBytes else {
            let most = PathRules.maximumPathBytes
            throw NamingProblem(message: "its path has more than \(most) bytes")
        }
        return path
    }

    /// Checks the limits of a path that other rules made.
    ///
    /// - Throws: ``NamingProblem`` for a path that no file system takes.
    static func check(_ path: String) throws(NamingProblem) {
        let (folders, longest) = path.withBytes { bytes in
            var (folders, start, longest) = (0, 0, 0)
            for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "/") {
                longest = max(longest, index - start)
                folders += 1
                start = index + 1
            }
            return (folders, max(longest, bytes.count - start))
        }
        guard longest <= maximumNameBytes else {
            throw NamingProblem(message: "its name has more than \(maximumNameBytes) bytes")
        }
        guard folders <= mostFolders else {
            throw NamingProblem(message: "it is in more than \(mostFolders) folders")
        }
    }

    /// The value by which paths of the same file are equal.
    func identity(of path: String) -> PathIdentity {
        isCaseInsensitive
            ? .folded(path.lowercased()) : .exact(PathBytes(path: path))
    }

    private func isForbidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\0"..."\u{1F}", "\u{7F}"..."\u{9F}", "/": true
        case "<", ">", ":", "\"", "\\", "|", "?", "*": isCaseInsensitive
        default: false
        }
    }

    private func isDevice(_ name: String) -> Bool {
        let stem = name.prefix { $0 != "." }
        guard (3...7).contains(stem.count) else { return false }
        return PathRules.deviceNames.contains(stem.lowercased())
    }

    private func encoding(at index: String.Index, of name: String) -> String {
        let encoded = String(name[index]).utf8.map(URLParts.percentEncoded).joined()
        return name[..<index] + encoded + name[name.index(after: index)...]
    }

    private func shortened(_ name: String) -> String {
        guard name.utf8.count > PathRules.maximumNameBytes else { return name }
        let (stem, found) = Array(name.utf8).stemAndExtension
        let ending = found.flatMap { $0.count <= PathRules.longestKeptExtension ? $0 : nil }
        let tail =
            "~" + NameDigest.sha256.hexadecimal(of: name).prefix(16)
            + (ending.map { "." + String(decoding: $0, as: UTF8.self) } ?? "")
        var start = (ending == nil ? Array(name.utf8)[...] : stem)
            .prefix(PathRules.maximumNameBytes - tail.utf8.count)
        // Not within a character.
        while let last = start.last, last & 0xC0 == 0x80 { start.removeLast() }
        if let last = start.last, last >= 0xC0 { start.removeLast() }
        return String(decoding: start, as: UTF8.self) + tail
    }
}

enum PathIdentity: Hashable, Sendable {
    case exact(PathBytes)
    /// Strings are equal whatever the normalisation of their characters, as on APFS.
    case folded(String)
}

/// The reason that an image has no name in a layout.
package struct NamingProblem: Error {
    package let message: String
    /// Whether the image has a name, which a web server would not treat as an image.
    package private(set) var isUnsafe = false
}

extension Unicode.UTF8 {
    fileprivate enum TextUnit {
        case scalar(Unicode.Scalar)
        case invalid(UInt8)
    }

    /// The characters of a text, and the bytes that belong to none.
    fileprivate static func pieces(of bytes: some Collection<UInt8>) -> [TextUnit] {
        var pieces: [TextUnit] = []
        var rest = Array(bytes)[...]
        while let first = rest.first {
            let length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
            if let text = String(validating: rest.prefix(length), as: UTF8.self),
                let scalar = text.unicodeScalars.first, scalar.utf8.count == length
            {
                pieces.append(.scalar(scalar))
                rest.removeFirst(length)
            } else {
                pieces.append(.invalid(first))
                rest.removeFirst()
            }
        }
        return pieces
    }
}

/// Comparisons of paths by their bytes, as the file system compares them: Swift's strings are equal
/// whatever the normalisation of their characters.
extension StringProtocol {
    /// Negative, zero or positive, as of `memcmp`; a prefix precedes longer paths.
    private func compareBytes(_ other: some StringProtocol) -> Int {
        withBytes { left in
            other.withBytes { right in
                let count = Swift.min(left.count, right.count)
                if count > 0, let left = left.baseAddress, let right = right.baseAddress {
                    let order = memcmp(left, right, count)
                    if order != 0 { return Int(order) }
                }
                return left.count - right.count
            }
        }
    }

    func precedes(bytesOf other: some StringProtocol) -> Bool { compareBytes(other) < 0 }
    func equals(bytesOf other: some StringProtocol) -> Bool { compareBytes(other) == 0 }
}

extension String {
    /// The folders of a relative path, the innermost first.
    var parents: [String] {
        var parents: [String] = []
        var rest = self[...]
        while let slash = rest.utf8.lastIndex(of: UInt8(ascii: "/")) {
            rest = rest[..<slash]
            parents.append(String(rest))
        }
        return parents
    }
}

/// Equal for paths of the same bytes.
struct PathBytes: Hashable, Sendable {
    let path: String

    static func == (one: PathBytes, other: PathBytes) -> Bool {
        one.path.equals(bytesOf: other.path)
    }

    func hash(into hasher: inout Hasher) {
        path.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

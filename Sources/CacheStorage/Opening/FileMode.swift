package import Glibc

/// The permission bits of a cache's files: 0600, 0640, 0644 or 0604. Its folders have the matching
/// execute bits: 0750 for files of 0640.
package struct FileMode: Hashable, Sendable, CustomStringConvertible {
    /// The read bits of group and others.
    private static let readable: mode_t = 0o044

    /// 0600
    package static let ownersAlone = FileMode(others: 0)

    package let ofFiles: mode_t

    private init(others: mode_t) {
        ofFiles = 0o600 | others
    }

    package init?(bits: Int64) {
        guard let bits = mode_t(exactly: bits), bits & ~FileMode.readable == 0o600 else {
            return nil
        }
        self.init(others: bits & FileMode.readable)
    }

    /// Parses octal digits as `chmod` does, with or without a leading zero; nil for any other text.
    package init?(text: some StringProtocol) {
        guard (3...4).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
            let bits = Int64(text, radix: 8)
        else { return nil }
        self.init(bits: bits)
    }

    /// The file mode that matches a folder's bits; nil if others may do anything but read it.
    init?(ofFolder bits: mode_t) {
        self.init(bits: Int64(bits & 0o666))
        guard ofFolders == bits & 0o777 else { return nil }
    }

    package var ofFolders: mode_t { ofFiles | (ofFiles & 0o444) >> 2 }

    /// Whether users other than the owner may read.
    package var isShared: Bool { ofFiles & FileMode.readable != 0 }

    /// `0640`
    package var description: String { FileMode.text(ofFiles) }

    /// `0750`
    package var ofFoldersText: String { FileMode.text(ofFolders) }

    /// The text of a content file's permissions if they differ from a cache's mode, else nil.
    /// Without a mode, any that leave the file to its owner are right.
    static func difference(of bits: mode_t, from mode: FileMode?) -> String? {
        let isRight = mode.map { bits & 0o777 == $0.ofFiles } ?? (bits & 0o077 == 0)
        return isRight ? nil : text(bits & 0o777)
    }

    static func text(_ bits: mode_t) -> String {
        let digits = String(bits, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

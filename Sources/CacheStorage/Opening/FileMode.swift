import Glibc

/// Who may read a cache: the permission bits of its files. Its folders have the execute bits that go with them: 0750
/// for files of 0640.
///
/// The owner reads and writes, nobody else writes, and nothing is executed: 0600, 0640, 0644 and 0604 are all that there
/// are.
package struct FileMode: Hashable, Sendable, CustomStringConvertible {
    /// What others may have: to read.
    private static let readable: mode_t = 0o044

    /// 0600
    package static let ownersAlone = FileMode(others: 0)

    let ofFiles: mode_t

    private init(others: mode_t) {
        ofFiles = 0o600 | others
    }

    /// Nil for any other bits.
    package init?(bits: Int64) {
        guard let bits = mode_t(exactly: bits), bits & ~FileMode.readable == 0o600 else {
            return nil
        }
        self.init(others: bits & FileMode.readable)
    }

    /// Takes what `chmod` takes: octal digits, with or without a zero in front. Nil for any other text.
    package init?(text: some StringProtocol) {
        guard (3...4).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
            let bits = Int64(text, radix: 8)
        else { return nil }
        self.init(bits: bits)
    }

    /// Those of a folder of which the bits are given; nil where it lets others do more than read, or less.
    init?(ofFolder bits: mode_t) {
        self.init(bits: Int64(bits & 0o666))
        guard ofFolders == bits & 0o777 else { return nil }
    }

    var ofFolders: mode_t { ofFiles | (ofFiles & 0o444) >> 2 }

    /// Whether others than the owner may read.
    package var isShared: Bool { ofFiles & FileMode.readable != 0 }

    /// `0640`
    package var description: String { FileMode.text(ofFiles) }

    /// `0750`
    package var ofFoldersText: String { FileMode.text(ofFolders) }

    private static func text(_ bits: mode_t) -> String { "0" + String(bits, radix: 8) }
}

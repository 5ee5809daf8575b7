import PrefetchModel

/// A bucket and a prefix of its keys: `s3://BUCKET/PREFIX`.
package struct ObjectLocation: Hashable, Sendable, CustomStringConvertible {
    let bucket: String
    /// Without slashes at its ends; empty for the whole bucket.
    package let prefix: String

    /// Nil for any other text.
    package init?(_ text: String) {
        guard text.hasPrefix("s3://") else { return nil }
        let parts = text.dropFirst(5).split(
            separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let bucket = parts.first, (1...255).contains(bucket.utf8.count),
            bucket.utf8.allSatisfy({
                $0.isLetter || $0.isDecimalDigit || "-._".utf8.contains($0)
            })
        else { return nil }
        self.bucket = String(bucket)
        var prefix = parts.count > 1 ? parts[1] : ""
        while prefix.hasPrefix("/") { prefix.removeFirst() }
        while prefix.hasSuffix("/") { prefix.removeLast() }
        // A key has 1,024 bytes at most, and dots would be taken for folders.
        guard prefix.utf8.count <= 800, prefix.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            !prefix.split(separator: "/", omittingEmptySubsequences: false).contains(where: {
                $0 == "." || $0 == ".." || $0.isEmpty && !prefix.isEmpty
            })
        else { return nil }
        self.prefix = String(prefix)
    }

    package var description: String {
        prefix.isEmpty ? "s3://\(bucket)" : "s3://\(bucket)/\(prefix)"
    }

    /// The key of an object by its name below the prefix.
    package func key(_ name: String) -> String { prefix.isEmpty ? name : "\(prefix)/\(name)" }
}

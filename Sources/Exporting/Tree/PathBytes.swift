import Glibc
import PrefetchModel

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

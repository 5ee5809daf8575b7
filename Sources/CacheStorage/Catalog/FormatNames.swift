import Glibc
import PrefetchModel

/// Looks up formats by the bytes of their names, without creating a string for each row.
struct FormatNames {
    private let formats = ImageFormat.allCases.map { (name: Array($0.rawValue.utf8), format: $0) }
    /// The index of the previous row's format, which is usually repeated.
    private var last = 0

    mutating func format(of name: UnsafeRawBufferPointer) -> ImageFormat? {
        if !isEqual(name, formats[last].name) {
            guard let found = formats.firstIndex(where: { isEqual(name, $0.name) }) else {
                return nil
            }
            last = found
        }
        return formats[last].format
    }

    private func isEqual(_ left: UnsafeRawBufferPointer, _ right: [UInt8]) -> Bool {
        guard left.count == right.count, let start = left.baseAddress else { return false }
        return right.withUnsafeBytes { right in
            right.baseAddress.map { memcmp(start, $0, right.count) == 0 } ?? false
        }
    }
}

internal import Glibc
import PrefetchModel

/// Writes into memory that is large enough.
struct Pen {
    var position: UnsafeMutableRawPointer

    private static let hexadecimalDigits: StaticString = "0123456789abcdef"

    mutating func write(_ byte: UInt8) {
        position.storeBytes(of: byte, as: UInt8.self)
        position += 1
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        memcpy(position, start, bytes.count)
        position += bytes.count
    }

    mutating func write(_ bytes: [UInt8]) { bytes.withUnsafeBytes { write($0) } }

    /// The text needs no escapes.
    mutating func write(text: String) {
        // Inlined like the standard library's version; called for each line.
        var text = text
        text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }

    /// - Precondition: the number is not negative.
    mutating func write(_ number: Int) {
        var count = 1
        var rest = number
        while rest > 9 {
            rest /= 10
            count += 1
        }
        rest = number
        for offset in stride(from: count - 1, through: 0, by: -1) {
            position.storeBytes(
                of: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10),
                toByteOffset: offset, as: UInt8.self)
            rest /= 10
        }
        position += count
    }

    /// Two digits a byte, in lower case.
    mutating func writeHexadecimal(_ bytes: UnsafeRawBufferPointer) {
        let digits = Pen.hexadecimalDigits.utf8Start
        for byte in bytes {
            position.storeBytes(of: digits[Int(byte >> 4)], as: UInt8.self)
            position.storeBytes(of: digits[Int(byte & 15)], toByteOffset: 1, as: UInt8.self)
            position += 2
        }
    }

    /// The path of a content file below its folder, as in ``StoredImage/relativePath``.
    mutating func write(pathOf digest: UnsafeRawBufferPointer, _ format: ImageFormat) {
        writeHexadecimal(UnsafeRawBufferPointer(rebasing: digest.prefix(1)))
        write(UInt8(ascii: "/"))
        writeHexadecimal(digest)
        write(UInt8(ascii: "."))
        write(text: format.fileExtension)
    }
}

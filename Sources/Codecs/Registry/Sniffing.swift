package import PrefetchModel

/// The format of the first bytes, whatever a header or a name says; nil for an unknown one.
///
/// Looks at 32 bytes at most; at ``signatureBytes`` for the brands of an ISO base media file, and
/// at ``SVGContainer/prologBytes`` for the prolog of an SVG. An incomplete signature is not
/// recognised.
package func sniffed(_ bytes: UnsafeRawBufferPointer) -> ImageFormat? {
    ImageFormat.allCases.first { $0.isAnnounced(by: bytes) }
}

/// Whether bytes without a known signature may be cut from the beginning of an image: a part of a
/// signature, or what may precede the first element of an SVG.
package func mayBecomeImage(_ bytes: UnsafeRawBufferPointer) -> Bool {
    incompleteSignatures.contains { signature in
        bytes.count < signature.count && zip(bytes, signature).allSatisfy { $1 == nil || $0 == $1 }
    } || mayBecomeISOBaseMedia(bytes) || SVGContainer.beginning(of: bytes) == .undecided
}

/// The bytes that decide about each format, nil for any value. The lengths of a BMP and an icon
/// are those of the parts of their headers that are checked.
private let incompleteSignatures: [[UInt8?]] = [
    [0xFF, 0xD8, 0xFF],
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A],
    Array("GIF87a".utf8), Array("GIF89a".utf8),
    Array("RIFF".utf8) + unknown(4) + Array("WEBP".utf8),
    Array("BM".utf8) + unknown(16),
    [0, 0, 1, 0] + unknown(18), [0, 0, 2, 0] + unknown(18),
    [0x49, 0x49, 0x2A, 0], [0x4D, 0x4D, 0, 0x2A],
    [0x49, 0x49, 0x2B, 0, 8, 0, 0, 0], [0x4D, 0x4D, 0, 0x2B, 0, 8, 0, 0],
    [0xFF, 0x0A], boxed("JXL "),
    [0xFF, 0x4F, 0xFF, 0x51], boxed("jP  "),
    Array("%PDF-".utf8),
    // Byte order marks before an SVG.
    [0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE],
]

private func unknown(_ count: Int) -> [UInt8?] { Array(repeating: nil, count: count) }

/// Whether the `ftyp` box, with brands that decide, is incomplete.
private func mayBecomeISOBaseMedia(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let type = Array("ftyp".utf8)
    guard bytes.count >= 8 else {
        // The box has less than 64 KiB.
        return bytes.prefix(2).allSatisfy { $0 == 0 }
            && zip(bytes.dropFirst(4), type).allSatisfy(==)
    }
    let end = max(16, min(bytes.bigEndian32(at: 0), signatureBytes))
    return bytes.holds("ftyp", at: 4) && bytes.count < end
}

extension ImageFormat {
    /// Whether a file begins with this format's signature.
    fileprivate func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool {
        if let codec { return codec.isAnnounced(bytes) }
        return container?.isAnnounced(by: bytes) ?? false
    }
}

/// The number of bytes that ``sniffed(_:)`` looks at, except for XML, see
/// ``SVGContainer/beginning(of:)``.
let signatureBytes = 256

func isWebP(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.holds("RIFF", at: 0) && bytes.holds("WEBP", at: 8)
}

func isGIF(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.holds("GIF87a", at: 0) || bytes.holds("GIF89a", at: 0)
}

/// The signature box of JPEG XL (ISO/IEC 18181-2) and JPEG 2000 (ISO/IEC 15444-1, I.5.1).
func boxed(_ type: StaticString) -> [UInt8] {
    [0, 0, 0, 0x0C] + (0..<4).map { type.utf8Start[$0] } + [0x0D, 0x0A, 0x87, 0x0A]
}

/// The format by the `ftyp` box's brands (ISO/IEC 14496-12, 4.3): the major one decides, then the
/// compatible ones, since many files have the general `mif1` first.
func isoBaseMediaFormat(_ bytes: UnsafeRawBufferPointer) -> ImageFormat? {
    guard bytes.count >= 16, bytes.holds("ftyp", at: 4) else { return nil }
    let last = min(bytes.bigEndian32(at: 0), signatureBytes)
    let end = min(last, bytes.count)
    var isImage = false
    for offset in [8] + Array(stride(from: 16, to: max(end - 3, 16), by: 4)) {
        if bytes.holds("avif", at: offset) || bytes.holds("avis", at: offset) { return .avif }
        for brand in ["heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"]
            as [StaticString]
        where bytes.holds(brand, at: offset) {
            isImage = true
        }
    }
    // The brand of AVIF may follow.
    return isImage && bytes.count >= last ? .heif : nil
}

/// Type 1 (icon) or 2 (cursor), at least one picture, and its reserved byte 0.
func isIcon(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= 22 else { return false }
    return bytes[0] == 0 && bytes[1] == 0 && (bytes[2] == 1 || bytes[2] == 2) && bytes[3] == 0
        && (bytes[4] != 0 || bytes[5] != 0) && bytes[9] == 0
}

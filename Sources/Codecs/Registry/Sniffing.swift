package import PrefetchModel

/// The format of the first bytes, by signature alone; nil for an unknown one.
///
/// Looks at 32 bytes at most; at ``signatureBytes`` for the brands of an ISO base media file, and
/// at ``SVGContainer/prologBytes`` for the prolog of an SVG. An incomplete signature is not
/// recognised.
package func sniffed(_ bytes: UnsafeRawBufferPointer) -> ImageFormat? {
    ImageFormat.allCases.first { $0.recognition(of: bytes) == .recognised }
}

/// Whether bytes without a known signature may be cut from the beginning of an image: a part of a
/// signature, or what may precede the first element of an SVG.
package func mayBecomeImage(_ bytes: UnsafeRawBufferPointer) -> Bool {
    ImageFormat.allCases.contains { $0.recognition(of: bytes) == .undecided }
}

/// Whether a file is of a format, as far as its beginning shows.
enum Recognition: Hashable {
    case recognised
    /// More bytes may show it.
    case undecided
    case other

    /// Compares the beginning with signatures; nil stands for any byte.
    init(of bytes: UnsafeRawBufferPointer, by signatures: [UInt8?]...) {
        let matching = signatures.filter { signature in
            zip(bytes, signature).allSatisfy { $1 == nil || $0 == $1 }
        }
        if matching.contains(where: { $0.count <= bytes.count }) {
            self = .recognised
        } else {
            self = matching.isEmpty ? .other : .undecided
        }
    }

    /// The same where a complete signature needs `isRight` as well.
    func confirmed(_ isRight: @autoclosure () -> Bool) -> Recognition {
        self == .recognised && !isRight() ? .other : self
    }
}

/// Bytes of any value in a signature.
private func unknown(_ count: Int) -> [UInt8?] { Array(repeating: nil, count: count) }

extension ImageFormat {
    /// Compares the beginning of a file with the format's signatures. Must not require more than
    /// ``signatureBytes`` bytes.
    fileprivate func recognition(of bytes: UnsafeRawBufferPointer) -> Recognition {
        switch self {
        case .jpeg: Recognition(of: bytes, by: [0xFF, 0xD8, 0xFF])
        case .png: Recognition(of: bytes, by: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        case .webp:
            Recognition(of: bytes, by: Array("RIFF".utf8) + unknown(4) + Array("WEBP".utf8))
        case .gif: Recognition(of: bytes, by: Array("GIF87a".utf8), Array("GIF89a".utf8))
        case .bmp:
            // Two letters alone begin many a text, so the header's size must be a known one too.
            Recognition(of: bytes, by: Array("BM".utf8) + unknown(16)).confirmed(
                [12, 16, 40, 52, 56, 64, 108, 124].contains(bytes.littleEndian32(at: 14)))
        case .tiff:
            Recognition(
                of: bytes, by: [0x49, 0x49, 0x2A, 0], [0x4D, 0x4D, 0, 0x2A],
                [0x49, 0x49, 0x2B, 0, 8, 0, 0, 0], [0x4D, 0x4D, 0, 0x2B, 0, 8, 0, 0])
        case .avif, .heif: isoBaseMediaRecognition(of: bytes, as: self)
        case .jpegXL: Recognition(of: bytes, by: [0xFF, 0x0A], boxed("JXL "))
        case .jpeg2000:
            Recognition(of: bytes, by: boxed("jP  "), JPEG2000Container.startOfCodestream)
        case .icon:
            // Type 1 (icon) or 2 (cursor), at least one picture, and its reserved byte 0.
            Recognition(of: bytes, by: [0, 0, 1, 0] + unknown(18), [0, 0, 2, 0] + unknown(18))
                .confirmed((bytes[4] != 0 || bytes[5] != 0) && bytes[9] == 0)
        case .svg: SVGContainer.recognition(of: bytes)
        case .pdf: Recognition(of: bytes, by: Array("%PDF-".utf8))
        case .psd:
            // The version, and six bytes of 0.
            Recognition(
                of: bytes, by: Array("8BPS\0\u{1}\0\0\0\0\0\0".utf8),
                Array("8BPS\0\u{2}\0\0\0\0\0\0".utf8))
        case .dds:
            Recognition(of: bytes, by: Array("DDS ".utf8) + unknown(4)).confirmed(
                bytes.littleEndian32(at: 4) == DDSContainer.headerBytes)
        case .qoi:
            // Three or four channels, and one of two colour spaces.
            Recognition(of: bytes, by: Array("qoif".utf8) + unknown(10)).confirmed(
                (3...4).contains(bytes[12]) && bytes[13] <= 1)
        case .pnm: PNMContainer.recognition(of: bytes)
        case .icns:
            // The lengths of the file and the first element. Four letters make a larger one.
            Recognition(of: bytes, by: Array("icns".utf8) + unknown(12)).confirmed(
                (16..<1 << 29).contains(bytes.bigEndian32(at: 4))
                    && (8...bytes.bigEndian32(at: 4)).contains(bytes.bigEndian32(at: 12)))
        case .exr:
            Recognition(of: bytes, by: EXRContainer.magic + [2])
        }
    }
}

/// The number of bytes that ``sniffed(_:)`` looks at, except for XML, see
/// ``SVGContainer/recognition(of:)``.
let signatureBytes = 256

/// Whether a file's own bytes tell where it ends. In an AVIF, libavif checks that the data of each
/// item is there.
package func statesItsEnd(_ file: UnsafeRawBufferPointer) -> Bool {
    guard let format = sniffed(file), format.codec == nil else { return true }
    return format.container?.statesItsEnd(file) ?? true
}

/// The signature box of JPEG XL (ISO/IEC 18181-2) and JPEG 2000 (ISO/IEC 15444-1, I.5.1).
private func boxed(_ type: StaticString) -> [UInt8] {
    [0, 0, 0, 0x0C] + (0..<4).map { type.utf8Start[$0] } + [0x0D, 0x0A, 0x87, 0x0A]
}

/// Whether the `ftyp` box names the format.
private func isoBaseMediaRecognition(
    of bytes: UnsafeRawBufferPointer, as format: ImageFormat
) -> Recognition {
    if isoBaseMediaFormat(bytes) == format { return .recognised }
    return mayBecomeISOBaseMedia(bytes) ? .undecided : .other
}

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

/// The format by the `ftyp` box's brands (ISO/IEC 14496-12, 4.3): the major one decides, then the
/// compatible ones, since many files have the general `mif1` first.
private func isoBaseMediaFormat(_ bytes: UnsafeRawBufferPointer) -> ImageFormat? {
    guard bytes.count >= 16, bytes.holds("ftyp", at: 4) else { return nil }
    let last = min(bytes.bigEndian32(at: 0), signatureBytes)
    let end = min(last, bytes.count)
    var isImage = false
    for offset in [8] + Array(stride(from: 16, to: max(end - 3, 16), by: 4)) {
        if bytes.holds("avif", at: offset) || bytes.holds("avis", at: offset) { return .avif }
        for brand in ["heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "mif3"]
            as [StaticString]
        where bytes.holds(brand, at: offset) {
            isImage = true
        }
    }
    // The brand of AVIF may follow.
    return isImage && bytes.count >= last ? .heif : nil
}

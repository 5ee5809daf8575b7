internal import PrefetchModel

/// The metadata that `--strip none` carries from a file into a file of new pixels.
struct CarriedMetadata {
    enum MetadataKind: String, CaseIterable {
        /// A TIFF structure.
        case exif = "EXIF"
        /// A packet in UTF-8.
        case xmp = "XMP"
        /// The part of an XMP that exceeds a segment of a JPEG: such segments, as they are.
        case extendedXMP = "extended XMP"
        /// Data sets of IIM 4.2.
        case iptc = "IPTC"
    }

    static let none = CarriedMetadata()

    private var parts: [MetadataKind: [UInt8]] = [:]

    subscript(kind: MetadataKind) -> [UInt8]? {
        get { parts[kind] }
        set { parts[kind] = newValue }
    }

    init(exif: [UInt8]? = nil, xmp: [UInt8]? = nil) {
        self[.exif] = exif
        self[.xmp] = xmp
    }

    var isEmpty: Bool { parts.isEmpty }

    /// Returns the metadata that a format has room for, and the kinds of the rest.
    func fitting(_ room: MetadataRoom) -> (kept: CarriedMetadata, leftOut: [MetadataKind]) {
        var kept = self
        let leftOut = MetadataKind.allCases.filter { parts[$0].map(\.count) ?? 0 > room[$0] }
        for kind in leftOut { kept[kind] = nil }
        return (kept, leftOut)
    }

    /// Returns the metadata of pixels that have their orientation applied, without the parts that
    /// break their formats: libpng warns of such EXIF, and libavif refuses the picture.
    func upright(_ note: WarningNote) -> CarriedMetadata {
        var result = self
        var malformed: [String] = []
        func change(
            _ kind: MetadataKind, _ isWhole: ([UInt8]) -> Bool, _ change: ([UInt8]) -> [UInt8]
        ) {
            guard let part = parts[kind] else { return }
            let isRight = isWhole(part)
            if !isRight { malformed.append(kind.rawValue) }
            result[kind] = isRight ? change(part) : nil
        }
        change(
            .exif, { $0.withUnsafeBytes { ExifOrientation.isWhole(tiff: $0) } },
            ExifOrientation.uprightTIFF)
        change(.xmp, XMPPacket.isWhole, XMPPacket.upright)
        note.noteMalformed(malformed, "item")
        return result
    }
}

/// The most bytes of each kind of metadata that a format holds; 0 without a place for it.
struct MetadataRoom {
    var exif = Int.max
    var xmp = Int.max
    var extendedXMP = 0
    var iptc = 0

    subscript(kind: CarriedMetadata.MetadataKind) -> Int {
        switch kind {
        case .exif: exif
        case .xmp: xmp
        case .extendedXMP: extendedXMP
        case .iptc: iptc
        }
    }
}

/// A packet of XMP (ISO 16684-1).
enum XMPPacket {
    /// Whether it is text with an element, without characters that XML forbids (section 2.2).
    static func isWhole(_ packet: [UInt8]) -> Bool {
        packet.contains(UInt8(ascii: "<"))
            && packet.allSatisfy { $0 >= 0x20 || [0x09, 0x0A, 0x0D].contains($0) }
            && String(validating: packet, as: UTF8.self) != nil
    }

    /// Properties that do not hold for new pixels, with the digit to write over their values: the
    /// orientation, a motion video and a gain map.
    private static let properties: [(name: [UInt8], digit: UInt8)] = [
        (Array("tiff:Orientation".utf8), UInt8(ascii: "1")),
        (Array("Camera:MotionPhoto".utf8), UInt8(ascii: "0")),
        (Array("Camera:MicroVideo".utf8), UInt8(ascii: "0")),
        (Array("hdrgm:Version".utf8), UInt8(ascii: "0")),
    ]

    /// Returns the packet of pixels that have their orientation applied and no companions.
    static func upright(_ packet: [UInt8]) -> [UInt8] {
        var result = packet
        for (name, digit) in properties {
            for place in digits(of: name, in: packet) { result[place] = digit }
        }
        return result
    }

    /// The places of a property's digits: `tiff:Orientation="6"`, or `<tiff:Orientation>6<`.
    private static func digits(of name: [UInt8], in packet: [UInt8]) -> [Int] {
        let before = Set("\t\n\r =\"'>".utf8)
        return packet.indices.flatMap { start -> [Int] in
            guard packet[start] == name[0], packet[start...].starts(with: name) else { return [] }
            let value = packet[(start + name.count)...].drop { before.contains($0) }
            return value.indices.prefix {
                packet[$0] == UInt8(ascii: ".") || isDigit(packet[$0])
            }.filter { isDigit(packet[$0]) }
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}

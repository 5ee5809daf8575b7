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
    static func isWhole(_ packet: [UInt8]) -> Bool {
        packet.contains(UInt8(ascii: "<")) && String(validating: packet, as: UTF8.self) != nil
    }

    /// Returns the packet with orientation 1 in place of another.
    static func upright(_ packet: [UInt8]) -> [UInt8] {
        var result = packet
        for place in orientations(in: packet) { result[place] = UInt8(ascii: "1") }
        return result
    }

    /// The places of the values: `tiff:Orientation="6"`, or `<tiff:Orientation>6<`.
    private static func orientations(in packet: [UInt8]) -> [Int] {
        let name = Array("tiff:Orientation".utf8)
        let other = Set("\t\n\r =\"'>".utf8)
        return packet.indices.compactMap { start in
            guard packet[start] == name[0], packet[start...].starts(with: name) else { return nil }
            let value = packet[(start + name.count)...].firstIndex { !other.contains($0) }
            return value.flatMap {
                (UInt8(ascii: "2")...UInt8(ascii: "8")).contains(packet[$0]) ? $0 : nil
            }
        }
    }
}

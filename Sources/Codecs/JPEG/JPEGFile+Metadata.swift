internal import Glibc
internal import PrefetchModel

/// The metadata for new files (XMP Specification, part 3: JPEG).
extension JPEGFile {
    private static let startOfEXIF = Array("Exif\0\0".utf8)
    private static let startOfXMP: StaticString = "http://ns.adobe.com/xap/1.0/\0"
    private static let startOfExtendedXMP: StaticString = "http://ns.adobe.com/xmp/extension/\0"
    private static let startOfResources: StaticString = "Photoshop 3.0\0"
    /// The head of the resource with IPTC's data, without a name.
    private static let startOfIPTC = Array("8BIM\u{04}\u{04}\0\0".utf8)
    private static let mostPayloadBytes = 65533

    /// One segment for each kind; extended XMP has any number.
    static let room = MetadataRoom(
        exif: mostPayloadBytes - startOfEXIF.count,
        xmp: mostPayloadBytes - startOfXMP.utf8CodeUnitCount, extendedXMP: .max,
        // A length and a byte to fill up follow the head.
        iptc: mostPayloadBytes - startOfResources.utf8CodeUnitCount - startOfIPTC.count - 5)

    static func segments(of metadata: CarriedMetadata) -> [UInt8] {
        var result: [UInt8] = []
        if let exif = metadata[.exif] { result += segment(0xE1, startOfEXIF + exif) }
        if let xmp = metadata[.xmp] { result += segment(0xE1, startOfXMP.bytes + xmp) }
        result += metadata[.extendedXMP] ?? []
        if let iptc = metadata[.iptc] {
            let length = UInt32(iptc.count).bigEndianBytes
            let fill: [UInt8] = iptc.count % 2 == 0 ? [] : [0]
            result += segment(
                0xED, startOfResources.bytes + startOfIPTC + length + iptc + fill)
        }
        return result
    }

    var carriedMetadata: CarriedMetadata {
        var metadata = CarriedMetadata(exif: exif, xmp: xmp)
        let extensions = segments.filter { begins($0, 0xE1, JPEGFile.startOfExtendedXMP) }
        if !extensions.isEmpty {
            metadata[.extendedXMP] = extensions.flatMap { source[$0.range] }
        }
        metadata[.iptc] = iptc
        return metadata
    }

    private func begins(_ segment: Segment, _ marker: UInt8, _ name: StaticString) -> Bool {
        segment.marker == marker && segment.payload.count >= name.utf8CodeUnitCount
            && source.holds(name, at: segment.payload.lowerBound)
    }

    private func data(of segment: Segment, after name: StaticString) -> Range<Int> {
        segment.payload.dropFirst(name.utf8CodeUnitCount)
    }

    private var xmp: [UInt8]? {
        segments.first { begins($0, 0xE1, JPEGFile.startOfXMP) }.map {
            Array(source[data(of: $0, after: JPEGFile.startOfXMP)])
        }
    }

    /// The data of the resource 0x0404. The resources may continue in further segments.
    private var iptc: [UInt8]? {
        let name = JPEGFile.startOfResources
        let resources = segments.filter { begins($0, 0xED, name) }.flatMap {
            source[data(of: $0, after: name)]
        }
        return resources.withUnsafeBytes { resources in
            var offset = 0
            while resources.holds("8BIM", at: offset), resources.holds(12, at: offset) {
                let kind = resources.bigEndian16(at: offset + 4)
                // A name and its length, and then the data, fill even numbers of bytes.
                let start = offset + 6 + (Int(resources[offset + 6]) + 2) / 2 * 2
                guard let length = resources.number(at: start, bytes: 4),
                    resources.holds(length, at: start + 4)
                else { return nil }
                if kind == 0x0404 { return Array(resources[start + 4..<start + 4 + length]) }
                offset = start + 4 + (length + 1) / 2 * 2
            }
            return nil
        }
    }
}

/// The companions of the picture.
extension JPEGFile {
    /// Whether the segment is a part of a JUMBF box (ISO/IEC 19566-5, annex D).
    func isManifest(_ segment: Segment) -> Bool {
        begins(segment, 0xEB, "JP") && source.holds("jumb", at: segment.payload.lowerBound + 12)
    }

    var hasManifest: Bool { segments.contains(where: isManifest) }

    var companions: Set<Companion> {
        var found: Set<Companion> = hasManifest ? [.manifest] : []
        guard mayGoOn, var offset = forEachLaterSegment({ _ in }) else { return found }
        if isVideo(in: offset) { found.insert(.video) }
        // Further pictures. One of them may be a gain map.
        var declares = declaresGainMap
        for _ in 0..<JPEGFile.mostPictures {
            guard let start = source.place(of: [0xFF, 0xD8, 0xFF], from: offset) else { break }
            let rest = UnsafeRawBufferPointer(rebasing: source[start...])
            guard let picture = try? JPEGFile(headerOf: rest),
                let end = picture.forEachLaterSegment({ _ in })
            else { break }
            declares = declares || picture.declaresGainMap
            if declares { found.insert(.gainMap) }
            offset = start + end
        }
        return found
    }

    private static let mostPictures = 8

    /// Whether the file ends with other bytes than the marker of the image's end, or announces
    /// pictures behind it, so looking for that marker is worth while.
    private var mayGoOn: Bool {
        !source.suffix(2).elementsEqual([0xFF, 0xD9])
            || declaresGainMap || segments.contains { begins($0, 0xE2, "MPF\0") }
    }

    /// Whether this picture has a gain map or is one: by ISO 21496-1, Adobe or Apple.
    private var declaresGainMap: Bool {
        segments.contains { segment in
            if begins(segment, 0xE2, "urn:iso:std:iso:ts:21496:-1\0") { return true }
            guard begins(segment, 0xE1, JPEGFile.startOfXMP) else { return false }
            let packet = UnsafeRawBufferPointer(rebasing: source[segment.payload])
            return packet.place(of: Array("http://ns.adobe.com/hdr-gain-map/1.0/".utf8)) != nil
                || packet.place(of: Array("urn:com:apple:photo:2020:aux:hdrgainmap".utf8)) != nil
        }
    }

    /// Whether a file of ISO base media (ISO/IEC 14496-12) begins behind the image.
    private func isVideo(in start: Int) -> Bool {
        var offset = start
        while let type = source.place(of: Array("ftyp".utf8), from: offset) {
            let length = source.number(at: type - 4, bytes: 4) ?? 0
            if type - 4 >= start, (16...1024).contains(length) { return true }
            offset = type + 4
        }
        return false
    }
}

extension StaticString {
    fileprivate var bytes: [UInt8] {
        Array(UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount))
    }
}

extension UnsafeRawBufferPointer {
    /// The first place of the bytes; nil without one.
    fileprivate func place(of part: [UInt8], from offset: Int = 0) -> Int? {
        guard let start = baseAddress, let first = part.first else { return nil }
        var offset = offset
        while offset <= count - part.count,
            let found = memchr(start + offset, Int32(first), count - offset)
        {
            offset = UnsafeRawPointer(found) - start
            if self[offset...].starts(with: part) { return offset }
            offset += 1
        }
        return nil
    }
}

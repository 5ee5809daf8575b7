internal import PrefetchModel

/// HEIF (ISO/IEC 23008-12) over ISO base media files (ISO/IEC 14496-12): HEIC, and AVIF where it is not decoded.
/// The boxes fill the file exactly, `ftyp` comes first, and there are a description (`meta`, of a sequence `moov`) and
/// data (`mdat`, or `idat` inside `meta`).
enum HEIFContainer: ImageContainer {
    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool {
        isoBaseMediaFormat(bytes) == .heif
    }

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        var walk = BoxWalk(beginning)
        do throws(CodecError) {
            while let box = try walk.box() {
                // Sequences say it of tracks, in other ways.
                if box.isA("moov") { return .unknown }
                guard box.isA("meta") else { continue }
                guard let size = largestExtent(in: box, of: beginning) else { return .unknown }
                return .known(width: size.width, height: size.height)
            }
        } catch {
            // By a box that is not there as a whole, mostly that of the data.
            return .later
        }
        return .later
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        var walk = BoxWalk(source)
        guard let first = try walk.box(), first.isA("ftyp") else {
            throw .broken("does not begin with a box ftyp")
        }
        var (hasDescription, hasData) = (false, false)
        while let box = try walk.box() {
            try interruption.check(after: 1024)
            if box.isA("meta") {
                hasDescription = true
                if try holdsData(box, source) { hasData = true }
            }
            hasDescription = hasDescription || box.isA("moov")
            hasData = hasData || box.isA("mdat")
        }
        guard hasDescription else { throw .cut("no box meta or moov") }
        guard hasData else { throw .cut("no box mdat") }
    }

    /// Its children stand behind version and flags.
    private static func children(of box: Box, _ source: UnsafeRawBufferPointer) -> BoxWalk {
        BoxWalk(
            source,
            in: min(box.payload.lowerBound + 4, box.payload.upperBound)..<box.payload.upperBound)
    }

    private static func holdsData(
        _ meta: Box, _ source: UnsafeRawBufferPointer
    ) throws(CodecError) -> Bool {
        var walk = children(of: meta, source)
        var holdsData = false
        while let box = try walk.box() { holdsData = holdsData || box.isA("idat") }
        return holdsData
    }

    /// The property `ispe` (ISO/IEC 23008-12, 6.5.3) of the largest item: a picture of tiles is larger than each of
    /// them, and thumbnails are smaller. Before any rotation.
    private static func largestExtent(
        in meta: Box, of source: UnsafeRawBufferPointer
    ) -> (width: Int, height: Int)? {
        var largest: (width: Int, height: Int)?
        do throws(CodecError) {
            var boxes = children(of: meta, source)
            while let properties = try boxes.box() {
                guard properties.isA("iprp") else { continue }
                var containers = BoxWalk(source, in: properties.payload)
                while let container = try containers.box() {
                    guard container.isA("ipco") else { continue }
                    var walk = BoxWalk(source, in: container.payload)
                    while let box = try walk.box() {
                        guard box.isA("ispe"), box.payload.count >= 12,
                            let width = source.number(at: box.payload.lowerBound + 4, bytes: 4),
                            let height = source.number(at: box.payload.lowerBound + 8, bytes: 4)
                        else { continue }
                        // Each has 32 bits.
                        if largest.map({
                            width.multipliedFullWidth(by: height)
                                > $0.width.multipliedFullWidth(by: $0.height)
                        }) ?? true {
                            largest = (width, height)
                        }
                    }
                }
            }
        } catch {
            return nil
        }
        return largest.flatMap { $0.width > 0 && $0.height > 0 ? $0 : nil }
    }
}

/// As HEIF, by its own brands.
enum AVIFContainer: ImageContainer {
    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool {
        isoBaseMediaFormat(bytes) == .avif
    }

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        HEIFContainer.size(in: beginning)
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        try HEIFContainer.check(source, memoryBytes: memoryBytes, interruption)
    }
}

internal import PrefetchModel

/// HEIF (ISO/IEC 23008-12) in ISO base media files (ISO/IEC 14496-12).
///
/// The boxes fill the file exactly, and `ftyp` is the first. The file has a description (`meta`, or
/// `moov` in sequences) and data (`mdat`, or `idat` inside `meta`). AVIF differs by its brands.
enum HEIFContainer: ImageContainer {
    /// The error of a file with incomplete boxes; nil for others.
    static func truncation(of source: UnsafeRawBufferPointer) -> CodecError? {
        do throws(CodecError) {
            _ = try check(source, memoryBytes: 0, Interruption(CodecLimits(), nil))
        } catch {
            if case .corrupt(_, isTruncated: true) = error { return error }
        }
        return nil
    }

    /// Why a file is refused however other formats are treated; nil for others.
    ///
    /// A box `mini` before `meta` decides, not the brands, since `mif3` may be any of them.
    static func refusal(of beginning: UnsafeRawBufferPointer) -> String? {
        var walk = BoxWalk(beginning)
        var next = 0
        // The type of an incomplete box suffices.
        while !beginning.holds("mini", at: next + 4) {
            guard let box = try? walk.box(), !box.isA("meta"), !box.isA("moov") else { return nil }
            next = box.payload.upperBound
        }
        return "a HEIF of the brand mif3, with a box mini in place of meta"
    }

    static func statesItsEnd(_ source: UnsafeRawBufferPointer) -> Bool {
        var walk = BoxWalk(source)
        return !walk.reachesOpenEnd()
    }

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        // A box is incomplete, usually the one with the data.
        (try? statedSize(in: beginning)) ?? .later
    }

    private static func statedSize(
        in beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> DeclaredSize {
        var walk = BoxWalk(beginning)
        while let box = try walk.box() {
            // Sequences store the size per track, in another form.
            if box.isA("moov") { return .unknown }
            guard box.isA("meta") else { continue }
            guard let size = try? largestExtent(in: box, of: beginning) else { return .unknown }
            return .known(width: size.width, height: size.height)
        }
        return .later
    }

    static func orientation(in beginning: UnsafeRawBufferPointer) -> Int {
        var walk = BoxWalk(beginning)
        while let box = try? walk.box(), !box.isA("moov") {
            if box.isA("meta") { return orientation(in: box, of: beginning) }
        }
        return ExifOrientation.upright
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
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
        return nil
    }

    /// Returns the boxes inside `meta`, which follow its version and flags.
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

    /// Returns the turn of the main item by its first `irot` and `imir` (ISO/IEC 23008-12, 6.5.10
    /// and 6.5.12), which apply in this order (ISO/IEC 23000-22, 7.3.6.7).
    private static func orientation(in meta: Box, of source: UnsafeRawBufferPointer) -> Int {
        var main: Int?
        var properties: Box?
        var boxes = children(of: meta, source)
        while let box = try? boxes.box() {
            if box.isA("pitm") { main = FieldReader.mainItem(in: box, of: source) }
            if box.isA("iprp") { properties = box }
        }
        guard let main, let properties else { return ExifOrientation.upright }
        let associations = ItemAssociations(of: properties, in: source)
        let entry = associations.entries.first { $0.item == main }
        let indexes = Set(entry.map { associations.properties(of: $0).map { $0.index } } ?? [])
        var (angle, axis): (Int?, Int?)
        var parts = BoxWalk(source, in: properties.payload)
        while let part = try? parts.box() {
            guard part.isA("ipco") else { continue }
            var walk = BoxWalk(source, in: part.payload)
            var index = 0
            while let property = try? walk.box() {
                defer { index += 1 }
                guard indexes.contains(index),
                    let value = source.number(at: property.payload.lowerBound, bytes: 1)
                else { continue }
                if property.isA("irot") { angle = angle ?? value & 3 }
                if property.isA("imir") { axis = axis ?? value & 1 }
            }
        }
        // Anticlockwise.
        let turn = ExifOrientation.Mapping([1, 8, 3, 6][angle ?? 0])
        guard let axis else { return turn.orientation }
        // Left and right exchanged, or top and bottom.
        return turn.followed(by: ExifOrientation.Mapping(axis == 1 ? 2 : 4)).orientation
    }

    /// Returns the largest `ispe` property (ISO/IEC 23008-12, 6.5.3), before any rotation. Tiles
    /// and thumbnails are smaller than the picture itself.
    private static func largestExtent(
        in meta: Box, of source: UnsafeRawBufferPointer
    ) throws(CodecError) -> (width: Int, height: Int)? {
        var largest: (width: Int, height: Int)?
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
                    // Both sides have 32 bits, so the product may exceed `Int`.
                    if largest.map({
                        width.multipliedFullWidth(by: height)
                            > $0.width.multipliedFullWidth(by: $0.height)
                    }) ?? true {
                        largest = (width, height)
                    }
                }
            }
        }
        return largest.flatMap { $0.width > 0 && $0.height > 0 ? $0 : nil }
    }
}

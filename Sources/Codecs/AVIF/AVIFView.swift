#if AVIF
    /// The file as libavif should see it.
    ///
    /// Version 0.11 refuses files with a track of sound, takes any auxiliary track for alpha, and
    /// does not know that a box of length 0 extends to the end of the file (ISO/IEC 14496-12, 4.2).
    /// Version 1.4 refuses groups of items that have fields of their own, such as pyramids. Turns
    /// and apertures that are not marked as essential are refused from 1.2 on; libheif shows them.
    /// Versions before 1.1 refuse or misread some places of items. All refuse two boxes `ipma` of
    /// one version and the same flags (ISO/IEC 23008-12, 9.3.1), which other readers take together.
    enum AVIFView {
        /// Calls `body` with a copy in which the groups of items, and the tracks that are neither
        /// picture nor alpha, are free space, every box has its length, such boxes `ipma` are one,
        /// turns and apertures are essential, and places have one form; with the file where it can
        /// stay as it is.
        static func read<Result>(
            _ source: UnsafeRawBufferPointer,
            _ body: (UnsafePointer<UInt8>, Int) throws(CodecError) -> Result
        ) throws(CodecError) -> Result {
            let start = try source.start
            let pieces = pieces(of: source)
            if pieces.isWhole(source) { return try body(start, source.count) }
            let copy = try ImageBytes(joining: pieces, of: source, for: "libavif")
            return try copy.withUnsafeBytes { (copy) throws(CodecError) in
                try body(copy.start, copy.count)
            }
        }

        /// Whether reading takes a copy of the file.
        static func isCopied(_ source: UnsafeRawBufferPointer) -> Bool {
            !pieces(of: source).isWhole(source)
        }

        private static func pieces(of source: UnsafeRawBufferPointer) -> [ImagePiece] {
            var changes: [(range: Range<Int>, bytes: [UInt8])] = []
            func change(_ offset: Int, _ bytes: [UInt8]) {
                changes.append((offset..<offset + bytes.count, bytes))
            }
            var walk = BoxWalk(source)
            // Only whole boxes are changed; libavif reports a damaged one.
            while let box = try? walk.box() {
                let total = box.payload.upperBound - box.start
                if box.isOpenEnded, total <= UInt32.max {
                    change(box.start, UInt32(total).bigEndianBytes)
                }
                if box.isA("meta") {
                    changes += descriptionChanges(in: box, of: source)
                }
                guard box.isA("moov") else { continue }
                HEIFTrack.forEach(in: box, of: source) { track in
                    // Real files have a few of them.
                    guard changes.count < CodecLimits.maximumPieces, track.isHidden else { return }
                    change(track.box.start + 4, Array("free".utf8))
                }
            }
            changes.sort { $0.range.lowerBound < $1.range.lowerBound }
            return Array(source: 0..<source.count, without: changes.map(\.range)) {
                changes[$0].bytes
            }
        }

        private static func descriptionChanges(
            in meta: Box, of source: UnsafeRawBufferPointer
        ) -> [(range: Range<Int>, bytes: [UInt8])] {
            var changes: [(range: Range<Int>, bytes: [UInt8])] = []
            var hasGroups = false
            var parts = BoxWalk(source, in: meta.payload.dropFirst(4), allowsOpenEnds: true)
            while let part = try? parts.box() {
                let range = part.start..<part.payload.upperBound
                switch part.type {
                case Box.code("grpl") where !hasGroups:
                    hasGroups = true
                    changes.append((part.start + 4..<part.start + 8, Array("free".utf8)))
                case Box.code("iprp"):
                    let marks = essentialMarks(of: part, in: source)
                    if let joined = joinedAssociations(
                        of: part, in: source, essential: Set(marks.map(\.range.lowerBound)))
                    {
                        changes.append((range, joined))
                    } else {
                        changes += marks
                    }
                case Box.code("iloc"):
                    if let plain = plainLocations(of: part, in: source) {
                        changes.append((part.payload, plain))
                    }
                default: break
                }
            }
            return changes
        }

        // MARK: Properties

        /// The marks that are missing in the file, with which browsers show it too: they refuse
        /// turns and apertures without (MIAF, ISO/IEC 23000-22, 7.3.9).
        static func essentialMarks(
            in source: UnsafeRawBufferPointer
        ) -> [(range: Range<Int>, bytes: [UInt8])] {
            guard let meta = try? Box.first("meta", of: source),
                let properties = try? Box.first(
                    "iprp", of: source, in: meta.payload.dropFirst(4), allowsOpenEnds: true)
            else { return [] }
            return essentialMarks(of: properties, in: source)
        }

        private static func essentialMarks(
            of properties: Box, in source: UnsafeRawBufferPointer
        ) -> [(range: Range<Int>, bytes: [UInt8])] {
            var types: [UInt32] = []
            var marks: [(range: Range<Int>, bytes: [UInt8])] = []
            var parts = BoxWalk(source, in: properties.payload)
            while let part = try? parts.box() {
                if part.isA("ipco") {
                    var walk = BoxWalk(source, in: part.payload)
                    while types.count < CodecLimits.maximumPieces, let box = try? walk.box() {
                        types.append(box.type)
                    }
                }
            }
            let associations = ItemAssociations(of: properties, in: source)
            for entry in associations.entries {
                for (property, place) in associations.properties(of: entry)
                where types.indices.contains(property) && source[place] < 0x80
                    && [Box.code("irot"), Box.code("imir"), Box.code("clap")]
                        .contains(types[property])
                {
                    guard marks.count < CodecLimits.maximumPieces else { return marks }
                    marks.append((place..<place + 1, [source[place] | 0x80]))
                }
            }
            return marks
        }

        /// Returns a box `iprp` with one `ipma` for each version and flags, and free space behind
        /// it that makes both as long as before; nil for a box without need, or a damaged one.
        ///
        /// Items are in ascending order.
        private static func joinedAssociations(
            of properties: Box, in source: UnsafeRawBufferPointer, essential: Set<Int>
        ) -> [UInt8]? {
            let associations = ItemAssociations(of: properties, in: source)
            var seen: Set<Int> = []
            let kinds = associations.kinds.filter { seen.insert($0).inserted }
            // The new lengths have 32 bits.
            guard associations.isComplete, associations.kinds.count > kinds.count,
                properties.payload.upperBound - properties.start <= UInt32.max
            else { return nil }
            let entries = Dictionary(grouping: associations.entries, by: \.kind)
            var others: [UInt8] = []
            var walk = BoxWalk(source, in: properties.payload)
            while let part = try? walk.box() {
                if !part.isA("ipma") { others += source[part.start..<part.payload.upperBound] }
            }
            func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
                UInt32(8 + payload.count).bigEndianBytes + Array(type.utf8) + payload
            }
            for kind in kinds {
                let sorted = (entries[kind] ?? []).sorted { $0.item < $1.item }
                let head =
                    UInt32(truncatingIfNeeded: kind).bigEndianBytes
                    + UInt32(sorted.count).bigEndianBytes
                let entries = sorted.flatMap(\.bytes).map {
                    essential.contains($0) ? source[$0] | 0x80 : source[$0]
                }
                others += box("ipma", head + entries)
            }
            let joined = box("iprp", others)
            // A box that is left out takes sixteen bytes at least.
            let room = properties.payload.upperBound - properties.start - joined.count - 8
            guard room >= 0 else { return nil }
            return joined + box("free", [UInt8](repeating: 0, count: room))
        }

        // MARK: Places

        /// Returns the payload of a box `iloc` without indexes, and from version 1 on without base
        /// offsets, as long as before; nil for one without them, or without room.
        ///
        /// libavif 0.11 refuses indexes, which only other constructions use. libavif 1.0 misreads
        /// them, and refuses base offsets of version 1 and 2.
        private static func plainLocations(
            of box: Box, in source: UnsafeRawBufferPointer
        ) -> [UInt8]? {
            var fields = FieldReader(source, box.payload)
            guard let head = fields.next(4), let sizes = fields.next(2) else { return nil }
            let (version, lengthBytes) = (head >> 24, sizes >> 8 & 15)
            guard version == 1 || version == 2, sizes & 0xFF != 0,
                let count = fields.next(version == 1 ? 2 : 4)
            else { return nil }
            var plain = UInt32(head).bigEndianBytes + [0x40 | UInt8(lengthBytes), 0]
            func append(_ value: Int, _ bytes: Int) {
                plain += UInt64(value).bigEndianBytes.suffix(bytes)
            }
            append(count, version == 1 ? 2 : 4)
            for _ in 0..<count {
                guard let name = fields.next(version == 1 ? 2 : 4), let kinds = fields.next(4),
                    let base = fields.next(sizes >> 4 & 15), let extents = fields.next(2)
                else { return nil }
                append(name, version == 1 ? 2 : 4)
                append(kinds, 4)
                append(extents, 2)
                for _ in 0..<extents {
                    guard fields.next(sizes & 15) != nil, let offset = fields.next(sizes >> 12),
                        let length = fields.next(lengthBytes),
                        base <= UInt32.max, offset <= Int(UInt32.max) - base,
                        plain.count < box.payload.count
                    else { return nil }
                    append(base + offset, 4)
                    append(length, lengthBytes)
                }
            }
            let room = box.payload.count - plain.count
            return room < 0 ? nil : plain + [UInt8](repeating: 0, count: room)
        }
    }
#endif

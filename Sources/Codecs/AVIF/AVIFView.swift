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
                var tracks = BoxWalk(source, in: box.payload, allowsOpenEnds: true)
                while let track = try? tracks.box() {
                    guard track.isA("trak"), isHidden(track, in: source) else { continue }
                    // Real files have a few of them.
                    guard changes.count < CodecLimits.maximumPieces else { break }
                    change(track.start + 4, Array("free".utf8))
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
                guard part.isA("ipma") else { continue }
                FieldReader.forEachAssociation(in: part, of: source) { _, property, place in
                    guard types.indices.contains(property), source[place] < 0x80,
                        [Box.code("irot"), Box.code("imir"), Box.code("clap")]
                            .contains(types[property]),
                        marks.count < CodecLimits.maximumPieces
                    else { return }
                    marks.append((place..<place + 1, [source[place] | 0x80]))
                }
            }
            return marks
        }

        /// Returns a box `iprp` with one `ipma` for each version and flags, and free space behind
        /// it that makes both as long as before; nil for a box without need, or a damaged one.
        ///
        /// Items are in ascending order. Of an item in several boxes, the first counts.
        private static func joinedAssociations(
            of properties: Box, in source: UnsafeRawBufferPointer, essential: Set<Int>
        ) -> [UInt8]? {
            var others: [UInt8] = []
            var kinds: [Int] = []
            var entries: [Int: [(item: Int, bytes: Range<Int>)]] = [:]
            var items: Set<Int> = []
            var boxes = 0
            var walk = BoxWalk(source, in: properties.payload)
            while let part = try? walk.box() {
                guard part.isA("ipma") else {
                    others += source[part.start..<part.payload.upperBound]
                    continue
                }
                guard let kind = source.number(at: part.payload.lowerBound, bytes: 4),
                    let found = FieldReader.associations(in: part, of: source),
                    items.count + found.count <= CodecLimits.maximumPieces
                else { return nil }
                boxes += 1
                if entries[kind] == nil { kinds.append(kind) }
                entries[kind, default: []] += found.filter { items.insert($0.item).inserted }
            }
            guard boxes > kinds.count else { return nil }
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
        /// 0.11 refuses indexes, which only other constructions use; 1.0 misreads them, and refuses
        /// those base offsets.
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

        // MARK: Tracks

        /// Whether a track is neither picture nor alpha.
        private static func isHidden(_ track: Box, in source: UnsafeRawBufferPointer) -> Bool {
            func first(_ type: StaticString, in outer: Box?, after skipped: Int = 0) -> Box? {
                guard let payload = outer?.payload, payload.count >= skipped else { return nil }
                return try? Box.first(
                    type, of: source, in: payload.dropFirst(skipped), allowsOpenEnds: true)
            }
            let media = first("mdia", in: track)
            guard let handler = first("hdlr", in: media), handler.payload.count >= 12 else {
                return false
            }
            let type = handler.payload.lowerBound + 8
            guard source.holds("pict", at: type) || source.holds("auxv", at: type) else {
                return true
            }
            // An `auxi` in the sample description may name something else, such as depth. The
            // fields of a visual sample entry precede it (ISO/IEC 14496-12, 12.1.3).
            let table = first("stbl", in: first("minf", in: media))
            let entry = first("av01", in: first("stsd", in: table), after: 8)
            guard let auxiliary = first("auxi", in: entry, after: 78) else { return false }
            return !AVIFItems.namesAlpha(
                UnsafeRawBufferPointer(rebasing: source[auxiliary.payload]))
        }
    }
#endif

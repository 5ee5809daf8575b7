#if AVIF
    /// The boxes that hold neither pictures nor their description: `uuid`, which only some programs
    /// know, JUMBF, user data, and the video of a motion photo (`mpvd`).
    ///
    /// Looked for in the file, in `meta`, and in `moov` and its tracks.
    struct AVIFPrivateBoxes {
        private let source: UnsafeRawBufferPointer
        private var found: [Box] = []
        /// The begin of the private boxes that end the file; its end without any.
        private var tail: Int
        private(set) var hasManifest = false
        private(set) var hasVideo = false

        init(_ source: UnsafeRawBufferPointer) {
            self.source = source
            tail = source.count
            var walk = BoxWalk(source)
            while let box = try? walk.box() {
                if note(box) {
                    tail = min(tail, box.start)
                    continue
                }
                tail = source.count
                if box.isA("meta") { look(in: box.payload.dropFirst(4)) }
                if box.isA("moov") { look(in: box.payload, entersTracks: true) }
            }
        }

        private mutating func look(in payload: Range<Int>, entersTracks: Bool = false) {
            var walk = BoxWalk(source, in: payload, allowsOpenEnds: true)
            while let box = try? walk.box() {
                if !note(box), entersTracks, box.isA("trak") { look(in: box.payload) }
            }
        }

        /// The identifier of C2PA's boxes.
        private static let provenance: [UInt8] = [
            0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C,
            0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
        ]

        /// Whether the box is private.
        private mutating func note(_ box: Box) -> Bool {
            switch box.type {
            case Box.code("uuid"):
                let isProvenance = source[box.payload].starts(with: AVIFPrivateBoxes.provenance)
                hasManifest = hasManifest || isProvenance
            case Box.code("jumb"): hasManifest = true
            case Box.code("mpvd"): hasVideo = true
            case Box.code("udta"): break
            default: return false
            }
            if found.count < CodecLimits.maximumPieces { found.append(box) }
            return true
        }

        /// Free space for each of them, since tables hold file offsets; nothing at the file's end.
        var replacements: [(range: Range<Int>, bytes: [UInt8])] {
            let inside = found.filter { $0.start < tail }.map { box in
                let type = box.start + 4
                let free = Array("free".utf8) + source[type + 4..<box.payload.lowerBound]
                return (
                    type..<box.payload.upperBound,
                    free + [UInt8](repeating: 0, count: box.payload.count)
                )
            }
            return inside + (tail < source.count ? [(tail..<source.count, [])] : [])
        }
    }
#endif

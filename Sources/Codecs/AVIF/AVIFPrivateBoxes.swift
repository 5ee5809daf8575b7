#if AVIF
    /// The boxes that hold neither pictures nor their description: `uuid`, which only some programs
    /// know, JUMBF, user data, and the video of a motion photo (`mpvd`).
    ///
    /// Looked for in the file, in `moov` and its tracks, and in each box `meta` and its properties.
    struct AVIFPrivateBoxes {
        private enum Place {
            case file, movie, track, description, properties

            /// The types that are private here; `uuid` and some others are everywhere.
            var types: [UInt32] {
                switch self {
                case .file:
                    [Box.code("Exif"), Box.code("bxml"), Box.code("meco"), Box.code("xml ")]
                case .movie, .track, .description: []
                case .properties: [Box.code("crtt"), Box.code("mdft"), Box.code("udes")]
                }
            }
        }

        /// The boxes of `meta` that describe pictures (ISO/IEC 14496-12, 8.11). Others hold
        /// metadata, such as `xml ` or `ilst`.
        private static let descriptive: [UInt32] = [
            Box.code("hdlr"), Box.code("pitm"), Box.code("iinf"), Box.code("iref"),
            Box.code("iprp"), Box.code("iloc"), Box.code("idat"), Box.code("grpl"),
            Box.code("dinf"), Box.code("ipro"), Box.code("free"), Box.code("skip"),
        ]

        private let source: UnsafeRawBufferPointer
        /// In the order of the file.
        private(set) var found: [Box] = []
        /// The begin of the private boxes that end the file; its end without any.
        private(set) var tail: Int
        /// The boxes `meta` of the file, of the movie and its tracks.
        private(set) var descriptions: [(box: Box, isOfTrack: Bool)] = []
        /// The ranges that hold no boxes, in the order of the file.
        private(set) var contents: [Range<Int>] = []
        private(set) var hasManifest = false
        private(set) var hasVideo = false

        init(_ source: UnsafeRawBufferPointer) {
            self.source = source
            tail = source.count
            var walk = BoxWalk(source)
            var end = 0
            while let box = try? walk.box() {
                end = box.payload.upperBound
                if note(box, in: .file) {
                    tail = min(tail, box.start)
                    continue
                }
                tail = source.count
                switch box.type {
                case Box.code("ftyp"): break
                case Box.code("meta"): look(intoDescription: box, in: .file)
                case Box.code("moov"): look(into: box.payload, of: .movie)
                default: contents.append(box.payload)
                }
            }
            if end < source.count {
                tail = source.count
                contents.append(end..<source.count)
            }
        }

        private mutating func look(into payload: Range<Int>, of place: Place) {
            var walk = BoxWalk(source, in: payload, allowsOpenEnds: true)
            while let box = try? walk.box() {
                if note(box, in: place) { continue }
                switch (place, box.type) {
                case (.movie, Box.code("trak")): look(into: box.payload, of: .track)
                case (.movie, Box.code("meta")), (.track, Box.code("meta")):
                    look(intoDescription: box, in: place)
                case (.description, Box.code("idat")): contents.append(box.payload)
                case (.description, Box.code("iprp")):
                    var walk = BoxWalk(source, in: box.payload)
                    while let part = try? walk.box() {
                        if part.isA("ipco") { look(into: part.payload, of: .properties) }
                    }
                default: break
                }
            }
        }

        private mutating func look(intoDescription box: Box, in place: Place) {
            if descriptions.count < CodecLimits.maximumPieces {
                descriptions.append((box, place == .track))
            }
            // QuickTime's has neither version nor flags.
            let head = source.holds("hdlr", at: box.payload.lowerBound + 4) ? 0 : 4
            look(into: box.payload.dropFirst(head), of: .description)
        }

        /// The identifier of C2PA's boxes.
        private static let provenance: [UInt8] = [
            0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C,
            0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
        ]

        /// Whether the box is private.
        private mutating func note(_ box: Box, in place: Place) -> Bool {
            switch box.type {
            case Box.code("uuid"):
                let isProvenance = source[box.payload].starts(with: AVIFPrivateBoxes.provenance)
                hasManifest = hasManifest || isProvenance
            case Box.code("jumb"): hasManifest = true
            case Box.code("mpvd"): hasVideo = true
            case Box.code("udta"): break
            default:
                let isKnown =
                    place == .description
                    ? AVIFPrivateBoxes.descriptive.contains(box.type)
                    : !place.types.contains(box.type)
                if isKnown { return false }
            }
            if found.count < CodecLimits.maximumPieces { found.append(box) }
            return true
        }
    }
#endif

#if AVIF || HEIF
    /// The boxes that hold neither pictures nor their description, and the places of data.
    ///
    /// A box is private unless readers of pictures and sound need it where it is. Unknown boxes are
    /// private, and so are free space, user data, `uuid`, JUMBF, the video of a motion photo
    /// (`mpvd`), and tracks of text.
    struct HEIFPrivateBoxes {
        private let source: UnsafeRawBufferPointer
        /// In the order of the file.
        private(set) var found: [Box] = []
        /// The begin of the private boxes that end the file; its end without any.
        private(set) var tail: Int
        /// The boxes `meta` of the file, of the movie and its tracks.
        private(set) var descriptions: [(box: Box, isOfTrack: Bool)] = []
        /// The ranges that hold no boxes, in the order of the file.
        private(set) var contents: [Range<Int>] = []
        /// The times of creation and change of the movie and its tracks.
        private(set) var times: [Range<Int>] = []
        /// The data of the tracks that stay; nil if one does not tell where it is.
        private(set) var samples: [Range<Int>]? = []
        private(set) var hasManifest = false
        private(set) var hasVideo = false

        init(_ source: UnsafeRawBufferPointer) {
            self.source = source
            tail = source.count
            var walk = BoxWalk(source)
            var end = 0
            while let box = try? walk.box() {
                end = box.payload.upperBound
                if look(at: box, in: HEIFPrivateBoxes.file) {
                    tail = min(tail, box.start)
                } else {
                    tail = source.count
                }
            }
            if end < source.count {
                tail = source.count
                contents.append(end..<source.count)
            }
        }

        // MARK: Known boxes

        private static let file: UInt32 = 0

        /// The boxes of the file and of others that describe pictures and sound (ISO/IEC 14496-12,
        /// 23008-12, 23000-22, 14496-15, AV1-ISOBMFF).
        private static let known: [UInt32: Set<UInt32>] = [
            file: Box.codes("ftyp meta moov mdat"),
            Box.code("moov"): Box.codes("mvhd trak meta"),
            Box.code("trak"): Box.codes("tkhd tref edts mdia meta"),
            Box.code("edts"): Box.codes("elst"),
            Box.code("mdia"): Box.codes("mdhd hdlr minf"),
            Box.code("minf"): Box.codes("vmhd smhd nmhd dinf stbl"),
            Box.code("dinf"): Box.codes("dref"),
            Box.code("stbl"): Box.codes(
                "stsd stts ctts cslg stsc stsz stz2 stco co64 stss stsh sdtp sbgp sgpd"),
            Box.code("av01"): entry.union(Box.codes("av1C")),
            Box.code("hvc1"): entry.union(Box.codes("hvcC")),
            Box.code("hev1"): entry.union(Box.codes("hvcC")),
            Box.code("meta"): Box.codes("hdlr pitm iinf iref iprp iloc idat grpl dinf ipro"),
            Box.code("grpl"): Box.codes("altr ster pymd eqiv"),
            Box.code("iprp"): Box.codes("ipco ipma"),
            Box.code("ipco"): Box.codes(
                """
                ispe pixi av1C colr pasp clap irot imir auxC a1op a1lx lsel clli mdcv cclv amve reve \
                ndwt rloc rref iscl hvcC lhvC oinf tols avcC jpgC j2kH cmpd uncC
                """),
        ]

        private static let entry = Box.codes("colr pasp clap ccst auxi clli mdcv cclv amve btrt")

        /// The boxes that tell their number of entries, of any type. Boxes behind are private.
        private static let counted: Set<UInt32> = Box.codes("stsd dref iinf")

        // MARK: Looking

        /// Looks into a box. Returns whether it is private.
        private mutating func look(at box: Box, in place: UInt32) -> Bool {
            guard HEIFPrivateBoxes.known[place]?.contains(box.type) == true, isKept(box) else {
                note(box)
                return true
            }
            switch box.type {
            case Box.code("mdat"), Box.code("idat"): contents.append(box.payload)
            case Box.code("mvhd"), Box.code("tkhd"), Box.code("mdhd"):
                let isLong = source.number(at: box.payload.lowerBound, bytes: 1) == 1
                times.append(box.payload.dropFirst(4).prefix(isLong ? 16 : 8))
            case Box.code("meta"):
                if descriptions.count < CodecLimits.maximumPieces {
                    descriptions.append((box, place == Box.code("trak")))
                }
            case Box.code("trak"):
                if let chunks = HEIFTrack(box, of: source).chunks {
                    samples?.append(contentsOf: chunks)
                } else {
                    samples = nil
                }
            default: break
            }
            look(into: box)
            return false
        }

        private mutating func look(into box: Box) {
            if HEIFPrivateBoxes.counted.contains(box.type) {
                var fields = FieldReader(source, box.payload)
                guard let head = fields.next(4),
                    let count = fields.next(box.isA("iinf") && head >> 24 == 0 ? 2 : 4)
                else { return }
                var walk = BoxWalk(source, in: fields.offset..<box.payload.upperBound)
                var index = 0
                while let part = try? walk.box() {
                    if index >= count {
                        note(part)
                    } else if HEIFTrack.entries.contains(part.type) {
                        // Entries of other types could nest without end.
                        look(into: part)
                    }
                    index += 1
                }
            } else if HEIFPrivateBoxes.known[box.type] != nil {
                var walk = BoxWalk(
                    source, in: box.payload.dropFirst(headBytes(of: box)), allowsOpenEnds: true)
                while let part = try? walk.box() { _ = look(at: part, in: box.type) }
            }
        }

        /// The bytes before the boxes within another.
        private func headBytes(of box: Box) -> Int {
            switch box.type {
            // QuickTime's has neither version nor flags.
            case Box.code("meta"): source.holds("hdlr", at: box.payload.lowerBound + 4) ? 0 : 4
            case let type where HEIFTrack.entries.contains(type): HEIFTrack.entryBytes
            default: 0
            }
        }

        private func isKept(_ box: Box) -> Bool {
            switch box.type {
            case Box.code("trak"):
                let shown = ["pict", "auxv", "vide", "soun"] as [StaticString]
                let handler = HEIFTrack(box, of: source).handler
                return handler.map(shown.map(Box.code).contains) ?? true
            case Box.code("grpl"):
                // Some readers take free space inside for a group.
                var walk = BoxWalk(source, in: box.payload)
                while let group = try? walk.box() {
                    guard HEIFPrivateBoxes.known[box.type]?.contains(group.type) == true else {
                        return false
                    }
                }
                return true
            default: return true
            }
        }

        /// The identifier of C2PA's boxes.
        private static let provenance: [UInt8] = [
            0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C,
            0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
        ]

        private mutating func note(_ box: Box) {
            switch box.type {
            case Box.code("uuid"):
                let isProvenance = source[box.payload].starts(with: HEIFPrivateBoxes.provenance)
                hasManifest = hasManifest || isProvenance
            case Box.code("jumb"): hasManifest = true
            case Box.code("mpvd"): hasVideo = true
            default: break
            }
            if found.count < CodecLimits.maximumPieces { found.append(box) }
        }
    }
#endif

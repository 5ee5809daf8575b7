#if AVIF || HEIF
    internal import PrefetchModel

    /// The metadata of a HEIF or AVIF by its places in the file, since versions of libraries find
    /// different parts of it.
    ///
    /// Metadata are the private boxes, and all items except coded pictures, of each box `meta`,
    /// whether or not they belong to the picture that is shown. So are other bytes between
    /// pictures and samples, and times.
    struct HEIFMetadata {
        private let source: UnsafeRawBufferPointer
        private let boxes: HEIFPrivateBoxes
        private var items: [(type: UInt32, extents: [Range<Int>])] = []
        /// The data of pictures and tracks.
        private var pictures: [Range<Int>] = []
        private var arePicturesKnown: Bool
        /// The EXIF and XMP of the picture that is shown.
        private var shown: [CarriedMetadata.MetadataKind: [Range<Int>]] = [:]

        /// - Throws: As ``HEIFItems/init(_:)``.
        init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
            self.source = source
            boxes = HEIFPrivateBoxes(source)
            pictures = boxes.samples ?? []
            arePicturesKnown = boxes.samples != nil
            // libavif takes the tracks of a file with this main brand.
            let isSequence = source.holds("avis", at: 8)
            guard max(boxes.found.count, boxes.descriptions.count) < CodecLimits.maximumPieces
            else {
                throw .limitExceeded("more than \(CodecLimits.maximumPieces) boxes of metadata")
            }
            var count = 0
            for (box, isOfTrack) in boxes.descriptions {
                let found = try HEIFItems(of: box, in: source)
                count += found.count
                guard count <= CodecLimits.maximumPieces else {
                    throw .limitExceeded("more than \(CodecLimits.maximumPieces) items")
                }
                items += found.others
                pictures += found.pictures
                arePicturesKnown = arePicturesKnown && found.arePlacesKnown
                guard isOfTrack == isSequence else { continue }
                for kind in [CarriedMetadata.MetadataKind.exif, .xmp] where shown[kind] == nil {
                    shown[kind] = found.extents(of: kind, ofAny: isSequence)
                }
            }
        }

        // MARK: Reading

        var companions: Set<Companion> {
            var found: Set<Companion> = []
            if boxes.hasManifest { found.insert(.manifest) }
            if boxes.hasVideo { found.insert(.video) }
            if (try? HEIFItems(source))?.hasGainMap == true { found.insert(.gainMap) }
            return found
        }

        /// Returns EXIF and XMP of the picture, given the orientation by the container, which
        /// applies: of EXIF that states another one, that orientation alone.
        func carried(turnedTo orientation: Int) -> CarriedMetadata {
            if let exif,
                exif.withUnsafeBytes({ ExifOrientation.value(inTIFF: $0) }) == orientation
            {
                return CarriedMetadata(exif: exif, xmp: xmp)
            }
            let isTurned = orientation != ExifOrientation.upright
            return CarriedMetadata(
                exif: isTurned ? ExifOrientation.minimalTIFF(orientation) : nil, xmp: xmp)
        }

        /// The TIFF structure of the picture's EXIF; nil without a whole one.
        private var exif: [UInt8]? {
            guard let data = data(.exif), let start = HEIFMetadata.tiffStart(in: data) else {
                return nil
            }
            return Array(data[start...])
        }

        private var xmp: [UInt8]? { data(.xmp) }

        private func data(_ kind: CarriedMetadata.MetadataKind) -> [UInt8]? {
            guard let extents = shown[kind] else { return nil }
            var data: [UInt8] = []
            for extent in extents {
                // Extents may overlap.
                guard extent.count <= source.count - data.count else { return nil }
                data += source[extent]
            }
            return data
        }

        /// The begin of the TIFF structure in an item of EXIF: behind four bytes with the number of
        /// others before it (ISO/IEC 23008-12, A.2.1), which some writers state wrongly.
        private static func tiffStart(in data: [UInt8]) -> Int? {
            guard data.count >= 4 else { return nil }
            return data.withUnsafeBytes { data in
                [data.bigEndian32(at: 0), 0, 6].map { 4 + $0 }.first {
                    $0 < data.count
                        && ExifOrientation.isWhole(
                            tiff: UnsafeRawBufferPointer(rebasing: data[$0...]))
                }
            }
        }

        // MARK: Stripping

        /// A range and the bytes to write over it; `head` may be longer.
        private struct Overwriting {
            let range: Range<Int>
            let head: [UInt8]
            var rest: UInt8 = 0

            func bytes(of part: Range<Int>) -> [UInt8] {
                let start = part.lowerBound - range.lowerBound
                let begin = head.dropFirst(start).prefix(part.count)
                return begin + [UInt8](repeating: rest, count: part.count - begin.count)
            }
        }

        /// Returns the file with metadata overwritten in place, since the container's tables hold
        /// file offsets. The profile stays, as part of the picture's description. If all metadata
        /// is kept, only malformed EXIF and XMP is overwritten.
        func pieces(
            keptBy stripping: Recipe.Stripping, _ note: WarningNote,
            besides changes: [(range: Range<Int>, bytes: [UInt8])] = []
        ) -> [ImagePiece] {
            var replaced = changes
            if stripping == .none {
                let repairs = repairs
                note.noteMalformed(repairs.malformed, "item")
                replaced += repairs.replacements
            } else {
                replaced += replacements
            }
            replaced.sort { $0.range.lowerBound < $1.range.lowerBound }
            return Array(source: 0..<source.count, without: replaced.map(\.range)) {
                replaced[$0].bytes
            }
        }

        /// Bytes for each private box and item, since tables hold file offsets: free space, EXIF
        /// without entries, spaces. Zeros for times and all other data except pictures, if it is
        /// known where those are. Bytes of pictures and the other boxes stay. Private boxes at the
        /// file's end are cut off.
        var replacements: [(range: Range<Int>, bytes: [UInt8])] {
            let extents = pictures + items.flatMap(\.extents)
            let tail = extents.contains { $0.upperBound > boxes.tail } ? source.count : boxes.tail
            let inside = boxes.found.filter { $0.start < tail }.map { box in
                Overwriting(
                    range: box.start + 4..<box.payload.upperBound,
                    head: Array("free".utf8) + source[box.start + 8..<box.payload.lowerBound])
            }
            let wholes = boxes.found.map { $0.start..<$0.payload.upperBound }
            let fixed = gaps(between: boxes.contents) + pictures + wholes
            let rest = arePicturesKnown ? boxes.contents : []
            let written =
                parts(of: inside + zeros(boxes.times), without: pictures)
                + parts(of: items.flatMap(empty), without: fixed)
                + parts(of: zeros(rest), without: extents)
            let cut: [(range: Range<Int>, bytes: [UInt8])] =
                tail < source.count ? [(tail..<source.count, [])] : []
            return written.filter { !source[$0.range].elementsEqual($0.bytes) } + cut
        }

        private func zeros(_ ranges: [Range<Int>]) -> [Overwriting] {
            ranges.map { Overwriting(range: $0, head: []) }
        }

        /// Bytes for the malformed EXIF and XMP of the picture, with their names, and for a wrong
        /// offset before EXIF.
        var repairs: (replacements: [(range: Range<Int>, bytes: [UInt8])], malformed: [String]) {
            var repairs: [Overwriting] = []
            var malformed: [String] = []
            if let extents = shown[.exif] {
                let data = data(.exif) ?? []
                if let start = HEIFMetadata.tiffStart(in: data) {
                    let offset = UInt32(start - 4).bigEndianBytes
                    if !data.starts(with: offset) {
                        repairs += overwriting(first(4, of: extents), offset)
                    }
                } else {
                    malformed.append("EXIF")
                    repairs += empty(Box.code("Exif"), extents)
                }
            }
            if let extents = shown[.xmp],
                data(.xmp).flatMap({ String(validating: $0, as: UTF8.self) }) == nil
            {
                malformed.append("XMP")
                repairs += empty(Box.code("mime"), extents)
            }
            let fixed = gaps(between: boxes.contents) + pictures
            return (parts(of: repairs, without: fixed), malformed)
        }

        private func empty(_ type: UInt32, _ extents: [Range<Int>]) -> [Overwriting] {
            switch type {
            case Box.code("Exif"):
                overwriting(extents, [0, 0, 0, 0] + Array("MM\0*\0\0\0\u{08}".utf8))
            case Box.code("mime"): overwriting(extents, [], rest: UInt8(ascii: " "))
            default: overwriting(extents, [])
            }
        }

        private func overwriting(
            _ extents: [Range<Int>], _ head: [UInt8], rest: UInt8 = 0
        ) -> [Overwriting] {
            var left = head[...]
            return extents.map { extent in
                defer { left = left.dropFirst(extent.count) }
                return Overwriting(range: extent, head: Array(left), rest: rest)
            }
        }

        private func first(_ count: Int, of extents: [Range<Int>]) -> [Range<Int>] {
            var left = count
            return extents.map { extent in
                let part = extent.prefix(left)
                left -= part.count
                return part
            }
        }

        /// The ranges before, between and behind others, which are in order.
        private func gaps(between ranges: [Range<Int>]) -> [Range<Int>] {
            zip([0] + ranges.map(\.upperBound), ranges.map(\.lowerBound) + [source.count]).map {
                $0..<$1
            }
        }

        /// Returns the bytes in the order of the file, each place once, without the fixed ranges.
        private func parts(
            of writes: [Overwriting], without fixed: [Range<Int>]
        ) -> [(range: Range<Int>, bytes: [UInt8])] {
            var fixed = fixed.sorted { $0.lowerBound < $1.lowerBound }[...]
            var parts: [(range: Range<Int>, bytes: [UInt8])] = []
            var end = 0
            for write in writes.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
                end = max(end, write.range.lowerBound)
                while end < write.range.upperBound {
                    while let next = fixed.first, next.upperBound <= end { fixed.removeFirst() }
                    let stop = min(fixed.first?.lowerBound ?? source.count, write.range.upperBound)
                    if stop > end {
                        parts.append((end..<stop, write.bytes(of: end..<stop)))
                        end = stop
                    } else {
                        end = fixed.first?.upperBound ?? write.range.upperBound
                    }
                }
            }
            return parts
        }
    }
#endif

#if AVIF || HEIF
    /// A track of a sequence (ISO/IEC 14496-12, 8.3).
    struct HEIFTrack {
        let box: Box
        private let source: UnsafeRawBufferPointer

        /// Iterates over the tracks of a movie, as far as its boxes are whole.
        static func forEach(
            in movie: Box, of source: UnsafeRawBufferPointer, _ body: (HEIFTrack) -> Void
        ) {
            var walk = BoxWalk(source, in: movie.payload, allowsOpenEnds: true)
            while let box = try? walk.box() {
                if box.isA("trak") { body(HEIFTrack(box, of: source)) }
            }
        }

        /// Returns the track of pictures that libavif shows; nil without one.
        static func shown(in source: UnsafeRawBufferPointer) -> HEIFTrack? {
            guard let movie = try? Box.first("moov", of: source) else { return nil }
            var shown: HEIFTrack?
            forEach(in: movie, of: source) { track in
                if shown == nil, track.handler == Box.code("pict"), !track.isHidden,
                    !track.isAuxiliary
                {
                    shown = track
                }
            }
            return shown
        }

        init(_ box: Box, of source: UnsafeRawBufferPointer) {
            self.box = box
            self.source = source
        }

        /// Returns the first box of the last of these types, each within the one before.
        func first(_ path: StaticString...) -> Box? { first(path) }

        private func first(_ path: [StaticString]) -> Box? {
            path.reduce(Optional(box)) { outer, type in
                outer.flatMap { first(type, in: $0.payload) }
            }
        }

        private func first(_ type: StaticString, in payload: Range<Int>) -> Box? {
            try? Box.first(type, of: source, in: payload, allowsOpenEnds: true)
        }

        /// The kind of media; nil if it is not stated.
        var handler: UInt32? {
            guard let handler = first("mdia", "hdlr"), handler.payload.count >= 12 else {
                return nil
            }
            return UInt32(
                truncatingIfNeeded: source.bigEndian32(at: handler.payload.lowerBound + 8))
        }

        /// Whether it belongs to another track of pictures.
        private var isAuxiliary: Bool { first("tref", "auxl") != nil }

        /// Whether it is neither picture nor alpha.
        var isHidden: Bool {
            guard let handler else { return false }
            guard [Box.code("pict"), Box.code("auxv")].contains(handler) else { return true }
            // An `auxi` may name something else, such as depth.
            guard let auxiliary = description("auxi") else { return false }
            return !HEIFItems.namesAlpha(
                UnsafeRawBufferPointer(rebasing: source[auxiliary.payload]))
        }

        /// The types of entries that describe samples of AV1 and HEVC.
        static let entries = Box.codes("av01 hvc1 hev1")

        /// The fields of a visual sample entry, before its boxes (ISO/IEC 14496-12, 12.1.3).
        static let entryBytes = 78

        /// Returns the first box of this type that describes all samples of AV1.
        private func description(_ type: StaticString) -> Box? {
            guard let table = first("mdia", "minf", "stbl", "stsd"),
                let entry = first("av01", in: table.payload.dropFirst(8))
            else { return nil }
            return first(type, in: entry.payload.dropFirst(HEIFTrack.entryBytes))
        }

        /// The brightest light in cd/m² by `clli`; nil where it is unknown.
        var peak: Double? {
            guard let light = description("clli"),
                let peak = FieldReader.peak(in: light, of: source), peak > 0
            else { return nil }
            return Double(peak)
        }

        // MARK: Samples

        /// The bytes of the chunks of samples, as far as they are in the file; nil where the tables
        /// do not tell.
        var chunks: [Range<Int>]? {
            guard let runs = first("mdia", "minf", "stbl", "stsc"),
                let sizes = first("mdia", "minf", "stbl", "stsz")
            else { return nil }
            let short = first("mdia", "minf", "stbl", "stco")
            guard let places = short ?? first("mdia", "minf", "stbl", "co64") else { return nil }
            var run = FieldReader(source, runs.payload)
            var size = FieldReader(source, sizes.payload)
            var place = FieldReader(source, places.payload)
            guard run.skip(4), var runsLeft = run.next(4), size.skip(4),
                let fixedSize = size.next(4), var samplesLeft = size.next(4),
                place.skip(4), let count = place.next(4), count < CodecLimits.maximumPieces
            else { return nil }
            var chunks: [Range<Int>] = []
            var (samples, nextRun) = (0, (first: 1, samples: 0))
            for chunk in 1..<(count + 1) {
                // A run holds for all chunks until the next one.
                while nextRun.first <= chunk {
                    samples = nextRun.samples
                    nextRun.first = .max
                    guard runsLeft > 0 else { break }
                    runsLeft -= 1
                    guard let first = run.next(4), let samples = run.next(4), run.skip(4) else {
                        return nil
                    }
                    nextRun = (first, samples)
                }
                guard let start = place.next(short == nil ? 8 : 4) else { return nil }
                let inChunk = min(samples, samplesLeft)
                samplesLeft -= inChunk
                var (bytes, isTooLong) = inChunk.multipliedReportingOverflow(by: fixedSize)
                for _ in 0..<(fixedSize > 0 ? 0 : inChunk) {
                    guard let next = size.next(4) else { return nil }
                    bytes += next
                }
                if isTooLong { return nil }
                guard start < source.count else { continue }
                chunks.append(start..<start + min(bytes, source.count - start))
            }
            return samplesLeft == 0 ? chunks : nil
        }
    }
#endif

#if TIFF
    internal import PrefetchModel

    /// The metadata of a TIFF: all that neither describes nor is one of its pictures.
    ///
    /// Kept are the header, directories of the chain and their nested ones, the tags below with
    /// their values, and data of pictures. All other bytes are metadata, whether or not something
    /// refers to them.
    struct TIFFMetadata {
        private let source: UnsafeRawBufferPointer
        private var directories: [TIFFDirectory] = []

        /// Tags that readers of pictures use: TIFF 6.0, its technical notes and supplements,
        /// tiles and depth of SGI, the profile, and parameters of LERC.
        private static let shown: Set<Int> = Set(254...259).union([262, 263, 264, 265, 266])
            .union([273, 274, 277, 278]).union(279...284).union([286, 287, 290, 291, 292, 293])
            .union([296, 297, 301, 317, 318, 319, 320, 321]).union(322...328).union([330])
            .union([332, 333, 334, 336]).union(338...341).union([347]).union(512...521)
            .union(529...532).union(32_995...32_998).union([34_675, 50_674])

        private static let mostDirectories = 10_000

        init(_ source: UnsafeRawBufferPointer) {
            self.source = source
            guard let layout = TIFFLayout(source), let first = layout.first else { return }
            var seen: Set<Int> = []
            var next = [first]
            while let offset = next.popLast(), seen.count < TIFFMetadata.mostDirectories {
                guard offset > 0, seen.insert(offset).inserted,
                    let directory = TIFFDirectory(at: offset, layout)
                else { continue }
                directories.append(directory)
                let nested = directory.field(.directories)
                next += (0..<(nested?.count ?? 0)).prefix(TIFFMetadata.mostDirectories)
                    .compactMap { nested?[$0] }
                next.append(directory.next)
            }
        }

        /// The header, values and data of pictures, in any order; adjacent ranges are one.
        private var kept: [Range<Int>] {
            var kept: [Range<Int>] = []
            func keep(_ range: Range<Int>) {
                if let last = kept.last, last.upperBound == range.lowerBound {
                    kept[kept.count - 1] = last.lowerBound..<range.upperBound
                } else {
                    kept.append(range)
                }
            }
            if let layout = directories.first?.layout { keep(0..<layout.headerBytes) }
            for directory in directories {
                for entry in shownEntries(of: directory) {
                    guard let values = directory.values(of: entry)?.place,
                        !directory.place.contains(values.lowerBound)
                    else { continue }
                    keep(values)
                }
                forEachPart(of: directory, keep)
            }
            return kept
        }

        /// Calls `body` with each range of pictures' data.
        private func forEachPart(of directory: TIFFDirectory, _ body: (Range<Int>) -> Void) {
            func note(_ offsets: TIFFField?, _ length: (Int) -> Int) {
                guard let offsets else { return }
                for index in 0..<offsets.count {
                    guard let offset = offsets[index] else { return }
                    guard offset < source.count else { continue }
                    body(offset..<offset + min(length(index), source.count - offset))
                }
            }
            for (offsets, lengths) in TIFFDirectory.dataTags {
                let lengths = directory.field(lengths)
                note(directory.field(offsets)) { index in
                    // Without lengths, only decoders know them.
                    lengths.map { $0[index] ?? 0 } ?? .max
                }
            }
            // Tables of old JPEG (TIFF 6.0, section 22): 64 values, or 16 counts and 256 values.
            note(directory.field(.jpegQuantisation)) { _ in 64 }
            note(directory.field(.jpegDCTables)) { _ in 272 }
            note(directory.field(.jpegACTables)) { _ in 272 }
        }

        private func shownEntries(of directory: TIFFDirectory) -> [Range<Int>] {
            (0..<directory.entries).map(directory.entry).filter {
                TIFFMetadata.shown.contains(directory.tag(of: $0))
            }
        }

        // MARK: Stripping

        /// The file with directories rewritten in place, since they hold file offsets, and zeros
        /// for all other metadata. Metadata at the end is cut off. A directory that shares bytes
        /// with pictures or another stays as it is.
        var stripped: [ImagePiece] {
            var changes: [(range: Range<Int>, bytes: [UInt8])] = []
            var end = 0
            let places = directories.map { ($0.place, Optional($0)) } + kept.map { ($0, nil) }
            let ordered = places.sorted { $0.0.lowerBound < $1.0.lowerBound }
            for (index, (place, directory)) in ordered.enumerated() {
                if place.lowerBound > end {
                    let gap = end..<place.lowerBound
                    if source[gap].contains(where: { $0 != 0 }) {
                        changes.append((gap, [UInt8](repeating: 0, count: gap.count)))
                    }
                }
                let isAlone =
                    place.lowerBound >= end
                    && (index + 1 == ordered.count
                        || ordered[index + 1].0.lowerBound >= place.upperBound)
                if let directory, isAlone, let bytes = rewritten(directory) {
                    changes.append((place, bytes))
                }
                end = max(end, place.upperBound)
            }
            return Array(source: 0..<end, without: changes.map(\.range)) { changes[$0].bytes }
        }

        /// Returns a directory of the shown tags, as long as before; nil if there are no others.
        private func rewritten(_ directory: TIFFDirectory) -> [UInt8]? {
            let shown = shownEntries(of: directory)
            guard shown.count < directory.entries else { return nil }
            let layout = directory.layout
            var bytes = layout.bytes(of: shown.count, layout.countBytes)
            for entry in shown { bytes += source[entry] }
            bytes += layout.bytes(of: directory.next, layout.offsetBytes)
            return bytes + [UInt8](repeating: 0, count: directory.place.count - bytes.count)
        }

        // MARK: Carrying

        var hasManifest: Bool { directories.contains { $0.bytes(.manifest) != nil } }

        /// EXIF, XMP and IPTC of the first picture.
        var carried: CarriedMetadata {
            guard let first = directories.first else { return .none }
            var metadata = CarriedMetadata(
                exif: exif, xmp: first.bytes(.xmp).map { [UInt8](source[$0]) })
            metadata[.iptc] = first.bytes(.iptc).map { [UInt8](source[$0]) }
            return metadata
        }

        /// A TIFF structure of the texts, dates, EXIF and position; nil if they are all missing.
        private var exif: [UInt8]? {
            guard let first = directories.first else { return nil }
            let layout = first.layout
            // Description, camera, software, time, artist, host and copyright.
            let texts: Set<Int> = [270, 271, 272, 305, 306, 315, 316, 33_432]
            let nested = [TIFFTag.exif, .positions].compactMap { tag in
                first.value(of: tag).flatMap { TIFFDirectory(at: $0, layout) }.map { (tag, $0) }
            }
            let entries = (0..<first.entries).map(first.entry).filter {
                texts.contains(first.tag(of: $0))
                    || first.tag(of: $0) == TIFFTag.orientation.rawValue
            }
            let hasTexts = entries.contains { texts.contains(first.tag(of: $0)) }
            guard hasTexts || !nested.isEmpty else { return nil }
            let order: [UInt8] = layout.isLittleEndian ? Array("II".utf8) : Array("MM".utf8)
            let head = order + layout.bytes(of: 42, 2) + layout.bytes(of: 8, 4)
            return head + copy(of: entries, in: first, with: nested, at: head.count)
        }

        /// Returns a directory of a classic TIFF at this offset, with its values and nested
        /// directories behind.
        private func copy(
            of entries: [Range<Int>], in directory: TIFFDirectory,
            with nested: [(TIFFTag, TIFFDirectory)] = [], at offset: Int
        ) -> [UInt8] {
            let layout = directory.layout
            let copied = entries.compactMap { entry -> (head: [UInt8], values: Range<Int>)? in
                guard let values = directory.values(of: entry), let place = values.place,
                    values.count <= UInt32.max
                else { return nil }
                let head = [UInt8](source[entry.prefix(4)]) + layout.bytes(of: values.count, 4)
                return (head, place)
            }
            var bytes = layout.bytes(of: copied.count + nested.count, 2)
            let begin = offset + 2 + 12 * (copied.count + nested.count) + 4
            var rest: [UInt8] = []
            func appendOffset() {
                if rest.count % 2 == 1 { rest.append(0) }
                bytes += layout.bytes(of: begin + rest.count, 4)
            }
            for (head, values) in copied {
                bytes += head
                if values.count <= 4 {
                    bytes += source[values] + [UInt8](repeating: 0, count: 4 - values.count)
                } else {
                    appendOffset()
                    rest += source[values]
                }
            }
            for (tag, inner) in nested {
                bytes += layout.bytes(of: tag.rawValue, 2) + layout.bytes(of: 4, 2)
                bytes += layout.bytes(of: 1, 4)
                appendOffset()
                rest += copy(
                    of: (0..<inner.entries).map(inner.entry), in: inner, at: begin + rest.count)
            }
            return bytes + [0, 0, 0, 0] + rest
        }
    }
#endif

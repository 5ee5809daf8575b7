import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

#if AVIF
    /// AVIFs with several boxes `ipma`, which libavif refuses and other readers take together.
    @Suite(.serialized, .timeLimit(.minutes(15))) struct AVIFAssociationTests {
        /// The same file with its box `ipma` cut in two before an entry; nil for fewer entries.
        /// `isReversed` exchanges the halves.
        private static func cut(
            _ file: [UInt8], before count: Int, isReversed: Bool = false
        ) throws -> [UInt8]? {
            func number(_ place: Int, _ bytes: Int) -> Int {
                file[place..<place + bytes].reduce(0) { $0 << 8 | Int($1) }
            }
            let found = try file.withUnsafeBytes { bytes -> (meta: Box, iprp: Box, ipma: Box)? in
                guard let meta = try Box.first("meta", of: bytes),
                    let iprp = try Box.first("iprp", of: bytes, in: meta.payload.dropFirst(4)),
                    let ipma = try Box.first("ipma", of: bytes, in: iprp.payload)
                else { return nil }
                return (meta, iprp, ipma)
            }
            guard let (meta, iprp, ipma) = found else { return nil }
            let entries = try #require(
                file.withUnsafeBytes { FieldReader.associations(in: ipma, of: $0) })
            guard (1..<entries.count).contains(count) else { return nil }
            let kind = Array(file[ipma.payload.prefix(4)])
            var halves = [entries[..<count], entries[count...]].map { half in
                HandmadeContainer.box(
                    "ipma",
                    kind + HandmadeContainer.big(half.count) + half.flatMap { file[$0.bytes] })
            }
            if isReversed { halves.reverse() }
            var result = file
            // The places of the data behind the boxes, of version 0 or 1 without a base.
            let iloc = try #require(
                file.withUnsafeBytes { bytes in
                    try Box.first("iloc", of: bytes, in: meta.payload.dropFirst(4))
                })
            let version = number(iloc.payload.lowerBound, 1)
            #expect(version < 2 && number(iloc.payload.lowerBound + 4, 2) == 0x4400)
            var place = iloc.payload.lowerBound + 8
            for _ in 0..<number(place - 2, 2) {
                place += version == 0 ? 4 : 6
                let extents = number(place, 2)
                place += 2
                for _ in 0..<extents {
                    if number(place, 4) > meta.start {
                        result.replaceSubrange(
                            place..<place + 4, with: HandmadeContainer.big(number(place, 4) + 16))
                    }
                    place += 8
                }
            }
            for box in [meta, iprp] {
                result.replaceSubrange(
                    box.start..<box.start + 4,
                    with: HandmadeContainer.big(number(box.start, 4) + 16))
            }
            result.replaceSubrange(ipma.start..<ipma.payload.upperBound, with: halves.joined())
            return result
        }

        private static let samples = FormatSample.taken.filter {
            $0.format == .avif && (try? imageHeader($0.bytes).isAnimated) == false
        }

        @Test func readsABoxCutInTwo() throws {
            var count = 0
            for sample in Self.samples {
                let source = try sample.bytes
                for place in 1...2 {
                    for isReversed in [false, true] {
                        guard
                            let halves = try Self.cut(
                                source, before: place, isReversed: isReversed)
                        else { continue }
                        count += 1
                        let (one, other) = (try imageHeader(halves), try imageHeader(source))
                        #expect(one.libraryRefusal == nil, "\(sample)")
                        #expect(one.displayedSize == other.displayedSize)
                        #expect(one.orientation == other.orientation)
                        #expect(structureRefusal(halves) == nil)
                        let png = Recipe(encoding: .png)
                        #expect(try stored(halves, png).bytes == stored(source, png).bytes)
                        #expect(
                            try stored(halves, Recipe(quality: 100)).bytes.count == halves.count)
                        let findings = try halves.withUnsafeBytes {
                            try ContainerFindings(of: $0, as: .avif)
                        }
                        #expect(findings?.orientation == other.orientation)
                    }
                }
            }
            #expect(count > 4)
        }
    }
#endif

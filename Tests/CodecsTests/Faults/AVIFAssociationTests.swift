import CodecFuzzing
import Glibc
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
            let entries = file.withUnsafeBytes { ItemAssociations(of: iprp, in: $0).entries }
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

        // MARK: An item in two boxes

        /// The sample with a second box `ipma` behind or before the other, which gives an item this
        /// property; before, in addition to its own.
        private static func twice(
            _ name: String, _ item: UInt8, _ property: [UInt8], isFirst: Bool = false
        ) throws -> [UInt8] {
            var parts = try AVIFParts(name)
            let boxes = try parts.properties.withUnsafeBytes { bytes in
                var walk = BoxWalk(bytes, in: 8..<bytes.count)
                var boxes: [Box] = []
                while let box = try walk.box() { boxes.append(box) }
                return boxes
            }
            let known = Array(parts.properties[boxes[0].payload])
            let count = try known.withUnsafeBytes { bytes in
                var walk = BoxWalk(bytes)
                var count: UInt8 = 0
                while try walk.box() != nil { count += 1 }
                return count
            }
            let box = HandmadeContainer.box
            let one = Array(parts.properties[boxes[1].start..<boxes[1].payload.upperBound])
            let old = parts.properties.withUnsafeBytes { bytes -> [UInt8] in
                guard let whole = try? Box.first("iprp", of: bytes) else { return [] }
                let entries = ItemAssociations(of: whole, in: bytes).entries
                let entry = entries.first { $0.item == Int(item) }
                return entry.map { Array(bytes[$0.bytes.dropFirst(3)]) } ?? []
            }
            let indexes = (isFirst ? old : []) + [0x81 + count]
            let other = box(
                "ipma", [0, 0, 0, 0, 0, 0, 0, 1, 0, item, UInt8(indexes.count)] + indexes)
            parts.properties = box(
                "iprp", box("ipco", known + property) + (isFirst ? other + one : one + other))
            return parts.bytes
        }

        private static let turn = HandmadeContainer.box("irot", [1])
        private static let size = HandmadeContainer.box("ispe", HandmadeContainer.zeros(11) + [9])

        /// Only the first entry of an item counts, for libavif and for the rules before it.
        @Test(.enabled(if: CodecLibraries.decodes(.avif)), arguments: [turn, size])
        func secondEntriesOfAnItemHaveNoEffect(property: [UInt8]) throws {
            for name in ["lossy", "alpha", "grid"] {
                let plain = try AVIFParts(name)
                for item in plain.parts.map(\.item) {
                    let source = try Self.twice(name, UInt8(item), property)
                    let header = try imageHeader(source)
                    #expect(header.libraryRefusal == nil, "\(name), item \(item)")
                    #expect(header.orientation == 1)
                    let findings = try source.withUnsafeBytes {
                        try ContainerFindings(of: $0, as: .avif)
                    }
                    #expect(findings?.orientation == 1)
                    let png = Recipe(encoding: .png)
                    #expect(try stored(source, png).bytes == stored(plain.bytes, png).bytes)
                }
            }
        }

        @Test(.enabled(if: CodecLibraries.decodes(.avif)))
        func firstEntriesOfAnItemCount() throws {
            let alpha = refusal(try Self.twice("alpha", 2, Self.turn, isFirst: true))
            guard case .unsupported(let text)? = alpha else {
                Issue.record("\(String(describing: alpha))")
                return
            }
            #expect(text.contains("turned or cut"), "\(text)")
            let source = try Self.twice("lossy", 1, Self.turn, isFirst: true)
            #expect(try imageHeader(source).orientation == 8)
            let findings = try source.withUnsafeBytes { try ContainerFindings(of: $0, as: .avif) }
            #expect(findings?.orientation == 8)
        }

        /// Joined boxes have lengths of 32 bits. The pages in between are never touched.
        @Test func boxesOverFourGibibytesAreNotJoined() throws {
            let gibibytes = 1 << 32
            func long(_ type: String, _ count: Int) -> [UInt8] {
                [0, 0, 0, 1] + Array(type.utf8) + UInt64(count).bigEndianBytes
            }
            let ipma = HandmadeContainer.box("ipma", HandmadeContainer.zeros(8))
            let end = ipma + ipma
            let properties = long("iprp", gibibytes + 32 + end.count)
            let head =
                HandmadeContainer.box("ftyp", Array("avif\0\0\0\0".utf8))
                + long("meta", gibibytes + 52 + end.count) + [0, 0, 0, 0] + properties
                + long("free", gibibytes + 16)
            let count = head.count + gibibytes + end.count
            let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
            let memory = mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0)
            let start = try #require(memory == MAP_FAILED ? nil : memory)
            defer { munmap(start, count) }
            let file = UnsafeMutableRawBufferPointer(start: start, count: count)
            UnsafeMutableRawBufferPointer(rebasing: file.prefix(head.count)).copyBytes(from: head)
            UnsafeMutableRawBufferPointer(rebasing: file.suffix(end.count)).copyBytes(from: end)
            let source = UnsafeRawBufferPointer(file)
            var walk = BoxWalk(source)
            while try walk.box() != nil {}
            #expect(!AVIFView.isCopied(source))
        }
    }
#endif

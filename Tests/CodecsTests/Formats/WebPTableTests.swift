import Foundation
import PrefetchModel
import Testing

@testable import Codecs

#if WebP
    /// libwebp's memory for a lossless picture's tables is estimated before decoding.
    @Suite(.timeLimit(.minutes(15)))
    struct WebPTableTests {
        /// Entries of four bytes, and the rest of a group, in libwebp 1.2.4.
        private static let entries = [0: 2954, 1: 2956, 10: 3980, 11: 5004]
        private static let groupBytes = 568

        struct Case: Sendable {
            var groups: Int
            var cacheBits = 0
            var width = 1024
            var height = 1024
            /// The number of groups with tables, if different.
            var held: Int?
        }

        @Test(arguments: [
            Case(groups: 1, width: 40, height: 30), Case(groups: 2),
            Case(groups: 999), Case(groups: 1000, cacheBits: 1),
            Case(groups: 5000, cacheBits: 10), Case(groups: 65536),
            Case(groups: 65536, cacheBits: 11),
            // As many as there are blocks of 4 by 4 pixels.
            Case(groups: 65536, width: 402, height: 398, held: 101 * 100),
        ])
        func countsWhatAFileHas(example: Case) throws {
            let source = HostileWebP.lossless(example)
            let groups = example.held ?? example.groups
            let entries = try #require(WebPTableTests.entries[example.cacheBits])
            let least = groups * (4 * entries + WebPTableTests.groupBytes)
            let pixels = example.width * example.height
            let library = try imageHeader(source).memory.libraryBytes
            #expect(library >= least + 4 * pixels, "\(library)")
            #expect(library <= least + least / 20 + 6 * pixels + (4 << 20), "\(library)")
            // Few machines have enough memory; the smaller files prove that they are valid.
            if groups <= 5000 { #expect(refusal(source, Recipe(encoding: .original)) == nil) }
        }

        @Test func countsTablesOfAlphaAndFrames() throws {
            let plain = try imageHeader(HostileWebP.lossless(Case(groups: 4000))).memory
                .libraryBytes
            let alpha = try imageHeader(HostileWebP.alpha(Case(groups: 4000))).memory.libraryBytes
            // Alpha without a palette is held like pixels, beside the plane that it becomes.
            #expect(alpha >= plain + 1024 * 1024 && alpha <= plain + 4 * 1024 * 1024)
            let indexed = FormatSample.all.filter { $0.name == "lossy-alpha" }
            #expect(!indexed.isEmpty)
            for sample in indexed {
                let header = try imageHeader(sample.bytes)
                // Rows, a margin, and a group of tables.
                #expect(header.memory.libraryBytes < 1 << 20 + 128 * 21 + 4 * 21 * 15 + 13_000)
            }
            let frames = [10, 4000, 20].map { HostileWebP.stream(Case(groups: $0)) }
            let animated = HostileWebP.animation(frames, width: 1024, height: 1024)
            #expect(try imageHeader(animated).memory.libraryBytes >= plain)
            #expect(try imageHeader(animated).memory.libraryBytes <= plain + plain / 20)
            #expect(refusal(animated, Recipe(encoding: .original)) == nil)
        }

        /// It exceeds the memory of runs and is rejected before any allocation. A beginning is not
        /// rejected for properties of the whole file.
        @Test func refusesExcessOnceComplete() throws {
            let source = HostileWebP.lossless(Case(groups: 65536, cacheBits: 11))
            let rules = HeaderRules(
                recipes: [Recipe(encoding: .original)], memory: .mebibytes(192))
            func verdict(_ count: Int) -> HeaderVerdict {
                source.prefix(count).withUnsafeBytes {
                    HeaderVerdict(onBeginning: $0, totalBytes: source.count, under: rules)
                }
            }
            for count in [300, 4000, 140_000, source.count - 1] {
                #expect(verdict(count) == .undecided, "\(count)")
            }
            guard case .refused(.tooManyPixels(let text)) = verdict(source.count) else {
                Issue.record("\(verdict(source.count))")
                return
            }
            #expect(
                text.hasPrefix("its pixels need 1.27 GiB, but --memory leaves 192 MiB"), "\(text)")
        }

        /// `prefetch placeholders` decodes images that may have been stored without decoding.
        @Test func placeholderNeedsTablesToo() throws {
            for groups in [1, 5000, 65536] {
                let header = try imageHeader(
                    HostileWebP.lossless(Case(groups: groups, cacheBits: 11)))
                #expect(
                    StoredPlaceholder.memoryNeed(of: header)
                        > header.memory.libraryBytes + 3 * header.pixels)
            }
        }

        /// If following the tables costs too much, the maximum for the picture's size is assumed.
        @Test func countsUnfinishedTablesInFull() throws {
            // A transform picture for 67 million blocks, one bit each.
            let source = HostileWebP.longTransform(width: 16383, height: 16383)
            let begin = ThreadClock.now
            let header = try imageHeader(
                source, limits: CodecLimits(maximumPixels: 16383 * 16383))
            #expect(header.memory.libraryBytes > 65536 * 4 * 5004)
            #expect(ThreadClock.now - begin < .seconds(20))
        }
    }

    /// Writes bits from the lowest on, as in VP8L.
    private struct BitWriter {
        private(set) var bytes: [UInt8] = []
        private var window: UInt64 = 0
        private var count = 0

        mutating func put(_ value: Int, _ bits: Int) {
            window |= UInt64(value) << count
            count += bits
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: window))
                window >>= 8
                count -= 8
            }
        }

        /// Adds some bytes, which are read ahead.
        func finished() -> [UInt8] {
            bytes + [UInt8(truncatingIfNeeded: window)] + [UInt8](repeating: 0, count: 16)
        }

        /// A code with the single symbol 0, which takes no bits.
        mutating func putSingle() { put(0b0001, 4) }

        /// A code for 256 of `symbols` symbols, with 8 bits each.
        mutating func putFlat(of symbols: Int) {
            put(0, 1)
            // Lengths of the code lengths, in the order of the format: 0 and 8 have one bit each.
            put(12 - 4, 4)
            for length in [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8] {
                put(length == 0 || length == 8 ? 1 : 0, 3)
            }
            if symbols == 256 {
                put(0, 1)
            } else {
                put(1, 1)
                put(3, 3)
                put(256 - 2, 8)
            }
            for _ in 0..<256 { put(1, 1) }
        }

        /// A code that is read from its highest bit on.
        mutating func putByte(_ byte: Int) {
            put((0..<8).reduce(0) { $0 << 1 | (byte >> $1 & 1) }, 8)
        }
    }

    /// Lossless WebP files with more tables than any encoder makes (RFC 9649, section 3).
    private enum HostileWebP {
        private static func little(_ value: Int, _ bytes: Int = 4) -> [UInt8] {
            (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }

        private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
            Array(type.utf8) + little(data.count) + data
                + [UInt8](repeating: 0, count: data.count % 2)
        }

        private static func riff(_ chunks: [UInt8]) -> [UInt8] {
            Array("RIFF".utf8) + little(4 + chunks.count) + Array("WEBP".utf8) + chunks
        }

        private static func start(_ writer: inout BitWriter, _ width: Int, _ height: Int) {
            writer.put(0x2F, 8)
            writer.put(width - 1, 14)
            writer.put(height - 1, 14)
            // No alpha, version 0.
            writer.put(0, 4)
        }

        /// An image stream with blocks of 4 by 4 pixels that use the groups in turn.
        private static func putImage(_ writer: inout BitWriter, _ example: WebPTableTests.Case) {
            writer.put(0, 1)
            if example.cacheBits > 0 {
                writer.put(1, 1)
                writer.put(example.cacheBits, 4)
            } else {
                writer.put(0, 1)
            }
            writer.put(1, 1)
            writer.put(0, 3)
            writer.put(0, 1)
            writer.putFlat(of: 280)
            writer.putFlat(of: 256)
            for _ in 0..<3 { writer.putSingle() }
            for place in 0..<((example.width + 3) / 4) * ((example.height + 3) / 4) {
                let group = place % example.groups
                writer.putByte(group & 255)
                writer.putByte(group >> 8)
            }
            for _ in 0..<5 * example.groups { writer.putSingle() }
        }

        static func stream(_ example: WebPTableTests.Case) -> [UInt8] {
            var writer = BitWriter()
            start(&writer, example.width, example.height)
            putImage(&writer, example)
            return writer.finished()
        }

        static func lossless(_ example: WebPTableTests.Case) -> [UInt8] {
            riff(chunk("VP8L", stream(example)))
        }

        /// A lossy picture with only its header and such an alpha channel.
        static func alpha(_ example: WebPTableTests.Case) -> [UInt8] {
            var writer = BitWriter()
            writer.put(1, 8)
            putImage(&writer, example)
            let sides = little(example.width - 1, 3) + little(example.height - 1, 3)
            // A visible key frame with a first partition of one byte.
            let lossy =
                [0x30, 0, 0, 0x9D, 0x01, 0x2A] + little(example.width, 2)
                + little(example.height, 2) + [UInt8](repeating: 0, count: 40)
            return riff(
                chunk("VP8X", [0x10, 0, 0, 0] + sides) + chunk("ALPH", writer.finished())
                    + chunk("VP8 ", lossy))
        }

        static func animation(_ streams: [[UInt8]], width: Int, height: Int) -> [UInt8] {
            let sides = little(width - 1, 3) + little(height - 1, 3)
            let frames = streams.flatMap {
                chunk(
                    "ANMF",
                    [UInt8](repeating: 0, count: 6) + sides + [9, 0, 0, 0] + chunk("VP8L", $0))
            }
            return riff(
                chunk("VP8X", [0x02, 0, 0, 0] + sides)
                    + chunk("ANIM", [UInt8](repeating: 0, count: 6)) + frames)
        }

        /// Its prediction transform has a mode of one bit for each block of 4 by 4 pixels, as far
        /// as the data reaches.
        static func longTransform(width: Int, height: Int) -> [UInt8] {
            var writer = BitWriter()
            start(&writer, width, height)
            for transform in [0, 1] {
                writer.put(1, 1)
                writer.put(transform, 2)
                writer.put(0, 3)
                writer.put(0, 1)
                // Green is 0 or 1, in one bit; the others are 0.
                writer.put(0b011, 3)
                writer.put(0, 1)
                writer.put(1, 8)
                for _ in 0..<4 { writer.putSingle() }
                let parts = ((width + 3) / 4) * ((height + 3) / 4)
                for _ in 0..<parts / 32 { writer.put(0, 32) }
                writer.put(0, parts % 32)
            }
            return riff(chunk("VP8L", writer.finished()))
        }
    }
#endif

#if AVIF
    import PrefetchModel
    import Testing

    @testable import Codecs

    /// Sequences of AVIF that become other animations.
    @Suite(.timeLimit(.minutes(15)), .enabled(if: CodecLibraries.decodes(.webp)))
    struct AVIFSequenceTests {
        private func recipe(_ specification: String) throws -> Recipe {
            try Recipe(specification: specification)
        }

        private func source() throws -> [UInt8] { try FormatSample.named("sequence", .avif) }

        @Test func everyFrameIsConverted() throws {
            let source = try source()
            let expected = try AnimationTransformingTests.shown(source).frames
            let header = try source.withUnsafeBytes { try Codecs.header(of: $0) }
            #expect(expected.count == header.frames && header.frames > 1)
            #expect(Set(expected.map(\.picture)).count == header.frames)
            #expect(expected.allSatisfy { $0.delay.numerator > 0 })
            let made = try stored(source, recipe("png"))
            #expect(made.image.format == .png && made.image.framesOfSource == nil)
            let shown = try AnimationTransformingTests.shown(made.bytes)
            #expect(shown.plays == 0)
            #expect(shown.frames.map(\.picture) == expected.map(\.picture))
            func seconds(_ frame: AnimationTransformingTests.Shown) -> Double {
                Double(frame.delay.numerator) / Double(frame.delay.denominator)
            }
            for (one, other) in zip(shown.frames, expected) {
                #expect(abs(seconds(one) - seconds(other)) < 0.001)
            }
            // The still picture is decoded another way.
            var still = try recipe("png")
            still.animation = .first
            let first = try ShownPixels(png: stored(source, still).bytes)
            let wanted = shown.frames[0].picture.pixels.map {
                SIMD4<UInt16>(truncatingIfNeeded: $0)
            }
            #expect(first.pixels == wanted.map { $0 &* 257 })
        }

        @Test(arguments: [
            ("12x12", ImageFormat.webp), ("webp", .webp), ("auto,flip=h", .webp),
            ("png,flip=h", .png), ("webp,12x12", .webp),
        ])
        func stepsKeepFrames(specification: String, format: ImageFormat) throws {
            let source = try source()
            let made = try stored(source, recipe(specification))
            #expect(made.image.format == format && made.image.framesOfSource == nil)
            let header = try made.bytes.withUnsafeBytes { try Codecs.header(of: $0) }
            #expect(header.isAnimated)
            if specification.contains("12") {
                #expect(max(header.widthInPixels, header.heightInPixels) == 12)
            }
        }

        @Test func dataStaysWithoutSteps() throws {
            let source = try source()
            for specification in ["same", "auto", "avif"] {
                #expect(try stored(source, recipe(specification)).image.format == .avif)
            }
        }

        // MARK: Plays

        private func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
            let length = payload.count + 8
            return [0, 0, UInt8(length >> 8), UInt8(length & 255)] + Array(type.utf8) + payload
        }

        private func number(_ value: UInt32) -> [UInt8] {
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
        }

        private func long(_ value: UInt64) -> [UInt8] {
            number(UInt32(truncatingIfNeeded: value >> 32))
                + number(UInt32(truncatingIfNeeded: value))
        }

        private func sequence(
            handler: String = "pict", duration: UInt32, edits: (flags: UInt32, segment: UInt32)?
        ) -> [UInt8] {
            let header = box(
                "tkhd", number(1) + [UInt8](repeating: 0, count: 16) + number(duration))
            let list = edits.map {
                box(
                    "edts",
                    box("elst", number($0.flags) + number(1) + number($0.segment) + number(0)))
            }
            let media = box(
                "mdia", box("hdlr", number(0) + number(0) + Array(handler.utf8) + number(0)))
            return box("ftyp", Array("avis".utf8))
                + box("moov", box("trak", header + (list ?? []) + media))
        }

        /// Durations, segments and plays of boxes of version 1, which have 64 bits.
        private static let longTimes: [(UInt64, UInt64, Int)] = {
            let (half, most) = (UInt64(1) << 61, UInt64.max >> 1)
            return [
                (30, 10, 3), (2 * half, half, 2), (2 * half + 1, half, 3), (most, 2 * half, 2),
                (most, most, 1), (.max, 2 * half, 0), (most, 1, 0), (1, .max, 0),
            ]
        }()

        @Test(arguments: longTimes)
        func playsOfLongTimes(duration: UInt64, segment: UInt64, plays: Int) {
            let header = box(
                "tkhd", number(1 << 24) + [UInt8](repeating: 0, count: 24) + long(duration))
            let list = box(
                "edts", box("elst", number(1 << 24 | 1) + number(1) + long(segment) + long(0)))
            let media = box(
                "mdia", box("hdlr", number(0) + number(0) + Array("pict".utf8) + number(0)))
            let file =
                box("ftyp", Array("avis".utf8)) + box("moov", box("trak", header + list + media))
            #expect(file.withUnsafeBytes { AVIFRepetition.plays(in: $0) } == plays)
        }

        @Test(
            arguments: [
                (UInt32(10), nil, 0), (10, (UInt32(0), UInt32(10)), 1), (30, (1, 10), 3),
                (35, (1, 10), 4), (.max, (1, 10), 0), (10, (1, 0), 0), (5, (1, 10), 1),
            ] as [(UInt32, (UInt32, UInt32)?, Int)])
        func playsAreThoseOfTheEditList(duration: UInt32, edits: (UInt32, UInt32)?, plays: Int) {
            let edits = edits.map { (flags: $0.0, segment: $0.1) }
            let pictures = sequence(duration: duration, edits: edits)
            #expect(pictures.withUnsafeBytes { AVIFRepetition.plays(in: $0) } == plays)
            let sound = sequence(handler: "soun", duration: duration, edits: edits)
            #expect(sound.withUnsafeBytes { AVIFRepetition.plays(in: $0) } == 0)
            for count in 0..<pictures.count {
                pictures[..<count].withUnsafeBytes { bytes in
                    _ = AVIFRepetition.plays(in: UnsafeRawBufferPointer(rebasing: bytes[...]))
                }
            }
        }
    }
#endif

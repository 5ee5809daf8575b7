import CDeflate
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Valid animated PNGs are stored unchanged, invalid animations as their static image, and damaged
/// ones are rejected.
@Suite(.serialized, .timeLimit(.minutes(15))) struct AnimationTests {
    /// An animation assembled chunk by chunk.
    struct Animation {
        /// A static image of 12×11 pixels, which is also a frame.
        static let stillChunks = chunks(of: Samples.colourPNG)

        var announced: UInt32 = 3
        var plays: UInt32 = 0
        var isStaticImageAFrame = true
        /// The position and size of each further frame on the canvas.
        var places: [(x: UInt32, y: UInt32, width: UInt32, height: UInt32)] = [
            (0, 0, 12, 11), (3, 4, 5, 6),
        ]
        var disposal: UInt8 = 1
        var blending: UInt8 = 1
        var numberOffsets: [Int: UInt32] = [:]
        /// The number of rows missing from a frame's data.
        var missingRows = 0
        var partsOfAFrame = 1

        private static func chunks(of source: [UInt8]) -> [(type: UInt32, data: [UInt8])] {
            source.withUnsafeBytes { bytes in
                ((try? PNGFile(bytes))?.chunks ?? []).map { ($0.type, Array(bytes[$0.data])) }
            }
        }

        /// The chunks of a file, from its header to its end.
        var chunks: [(type: UInt32, data: [UInt8])] {
            var made: [(type: UInt32, data: [UInt8])] = []
            var number: UInt32 = 0
            func next() -> [UInt8] {
                defer { number += 1 }
                return bytes(number &+ (numberOffsets[Int(number)] ?? 0))
            }
            func control(_ place: (x: UInt32, y: UInt32, width: UInt32, height: UInt32)) {
                made.append(
                    (
                        .fcTL,
                        next() + bytes(place.width) + bytes(place.height) + bytes(place.x)
                            + bytes(place.y) + [0, 1, 0, 10, disposal, blending]
                    ))
            }
            for (type, data) in Animation.stillChunks {
                if type == .IDAT {
                    made.append((.acTL, bytes(announced) + bytes(plays)))
                    if isStaticImageAFrame { control((0, 0, 12, 11)) }
                }
                if type == .IEND {
                    for place in places {
                        control(place)
                        let rows = Int(place.height) - missingRows
                        let stride = Int(place.width) * 3 + 1
                        let stream = deflated(
                            (0..<rows * stride).map {
                                $0 % stride == 0 ? 0 : UInt8(truncatingIfNeeded: $0 * 7)
                            })
                        for part in 0..<partsOfAFrame {
                            let range =
                                stream.count * part / partsOfAFrame..<stream.count * (part + 1)
                                / partsOfAFrame
                            made.append((.fdAT, next() + stream[range]))
                        }
                    }
                }
                made.append((type, data))
            }
            return made
        }

        static func file(_ chunks: [(type: UInt32, data: [UInt8])]) -> [UInt8] {
            Samples.colourPNG[..<8] + chunks.flatMap { PNGFile.chunk($0.type, $0.data) }
        }

        var file: [UInt8] { Animation.file(chunks) }
    }

    static func bytes(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var length = 0
        guard let packed = cdeflate_compress(bytes, bytes.count, 6, &length) else { return [] }
        defer { free(packed) }
        return Array(UnsafeBufferPointer(start: packed, count: length))
    }

    private func types(_ source: [UInt8]) throws -> [UInt32] {
        try source.withUnsafeBytes { try PNGFile($0) }.chunks.map(\.type)
    }

    // MARK: Valid animations

    @Test(arguments: [Recipe.Encoding.same, .png, .original], [false, true])
    func areStoredUnchanged(encoding: Recipe.Encoding, isStaticImageAFrame: Bool) throws {
        for parts in 1...3 {
            let animation = Animation(
                announced: isStaticImageAFrame ? 3 : 2, isStaticImageAFrame: isStaticImageAFrame,
                partsOfAFrame: parts)
            let result = try stored(animation.file, Recipe(encoding: encoding))
            #expect(result.isSource)
            #expect((result.image.widthInPixels, result.image.heightInPixels) == (12, 11))
            #expect(structureRefusal(animation.file) == nil)
        }
    }

    @Test(arguments: [false, true])
    func loseOnlyTheirMetadata(keepsLarger: Bool) throws {
        let animation = Animation().file
        var chunks = Animation().chunks
        let text: (type: UInt32, data: [UInt8]) = (PNGTests.tEXt, Array("Comment\0SECRET".utf8))
        let end = chunks.count - 1
        for place in [end, end - 1, 3, 2, 1] { chunks.insert(text, at: place) }
        let recipe = Recipe(keepsLarger: keepsLarger)
        let result = try stored(Animation.file(chunks), recipe)
        #expect(result.bytes == animation)
        #expect(try stored(Animation.file(chunks) + [1, 2, 3], recipe).bytes == animation)
        let original = try stored(Animation.file(chunks), Recipe(encoding: .original))
        #expect(original.isSource)
    }

    @Test func keepTheirOrientation() throws {
        var chunks = Animation().chunks
        chunks.insert((.eXIf, ExifOrientation.minimalTIFF(6)), at: 1)
        let result = try stored(Animation.file(chunks))
        #expect(result.isSource)
        #expect(try imageHeader(result.bytes).orientation == 6)
    }

    /// Depending on `--animated`, animations are kept, reduced to their static image, or rejected.
    @Test(arguments: Recipe.Encoding.allCases)
    func followsAnimationOption(encoding: Recipe.Encoding) throws {
        let source = Animation().file
        var recipe = Recipe(encoding: encoding)
        if encoding == .same || encoding == .auto || encoding == .png || encoding == .original {
            #expect(try stored(source, recipe).bytes == (try stored(source)).bytes)
        }
        guard encoding != .original, encoding.format?.isMade != false else { return }
        for stripping in Recipe.Stripping.allCases {
            recipe.stripping = stripping
            recipe.animation = .first
            let first = try stored(source, recipe)
            switch encoding {
            case .same, .png, .original: #expect(first.image.format == .png)
            case .auto: #expect(first.bytes.count < source.count)
            case .jpeg, .webp, .avif: #expect(first.image.format.rawValue == encoding.rawValue)
            }
            let header = try imageHeader(first.bytes)
            #expect(!header.isAnimated)
            #expect(header.pixels == (try imageHeader(source)).pixels)
            for chunk in ["acTL", "fcTL", "fdAT"] {
                #expect(first.bytes.firstRange(of: Array(chunk.utf8)) == nil)
            }
        }
        recipe.animation = .refuse
        guard case .unsupported = refusal(source, recipe) else {
            Issue.record("accepted")
            return
        }
    }

    @Test func allowsFrameChunksOverMetadataLimit() throws {
        // Noise does not compress: 1,500 × 1,500 pixels of three bytes.
        let side: UInt32 = 1500
        var state: UInt64 = 88_172_645_463_325_252
        var rows = [UInt8](repeating: 0, count: Int(side) * (Int(side) * 3 + 1))
        for index in rows.indices where index % (Int(side) * 3 + 1) != 0 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            rows[index] = UInt8(truncatingIfNeeded: state)
        }
        let stream = Self.deflated(rows)
        try #require(stream.count > CodecLimits.maximumMetadataBytes)
        let size = Self.bytes(side) + Self.bytes(side)
        let place = size + Self.bytes(0) + Self.bytes(0) + [0, 1, 0, 10, 0, 0]
        let source = Animation.file([
            (.IHDR, size + [8, 2, 0, 0, 0]), (.acTL, Self.bytes(2) + Self.bytes(0)),
            (.fcTL, Self.bytes(0) + place), (.IDAT, stream), (.fcTL, Self.bytes(1) + place),
            (.fdAT, Self.bytes(2) + stream), (.IEND, []),
        ])
        #expect(try stored(source).isSource)
        let header = try imageHeader(source)
        #expect(header.decodeMemoryBytes(for: Recipe()) > 2 * source.count)
        #expect(header.decodeMemoryBytes(for: Recipe(encoding: .original)) > source.count)
    }

    // MARK: Invalid form

    /// All checksums are valid: mistakes of an author, not damage.
    private static let invalid: [(name: String, chunks: [(type: UInt32, data: [UInt8])])] = {
        typealias Chunks = [(type: UInt32, data: [UInt8])]
        func changed(_ change: (inout Chunks) -> Void) -> Chunks {
            var chunks = Animation().chunks
            change(&chunks)
            return chunks
        }
        func first(_ type: UInt32, _ chunks: Chunks) -> Int {
            chunks.firstIndex { $0.type == type } ?? 0
        }
        return [
            ("no frames", Animation(announced: 0).chunks),
            ("2³¹ frames", Animation(announced: 0x8000_0000).chunks),
            ("2³¹ plays", Animation(plays: 0x8000_0000).chunks),
            ("a frame too many", Animation(announced: 2).chunks),
            ("a frame too few", Animation(announced: 4).chunks),
            ("first number", Animation(numberOffsets: [0: 1]).chunks),
            ("repeated number", Animation(numberOffsets: [2: .max]).chunks),
            ("gap", Animation(numberOffsets: [3: 1, 4: 1]).chunks),
            ("wide", Animation(places: [(8, 0, 5, 5), (0, 0, 1, 1)]).chunks),
            ("high", Animation(places: [(0, 0, 1, 1), (0, 8, 1, 4)]).chunks),
            ("far", Animation(places: [(.max, 0, 1, 1), (0, 0, 1, 1)]).chunks),
            ("no width", Animation(places: [(0, 0, 0, 1), (0, 0, 1, 1)]).chunks),
            ("disposal", Animation(disposal: 3).chunks),
            ("blending", Animation(blending: 2).chunks),
            (
                "acTL behind the image data",
                changed { $0.swapAt(first(.acTL, $0), first(.IDAT, $0)) }
            ),
            ("two acTL", changed { $0.insert($0[first(.acTL, $0)], at: 1) }),
            ("acTL too long", changed { $0[first(.acTL, $0)].data.append(0) }),
            ("fcTL too short", changed { $0[first(.fcTL, $0)].data.removeLast() }),
            (
                "fdAT before its fcTL",
                changed { chunks in
                    let data = first(.fdAT, chunks)
                    chunks[data].data.replaceSubrange(0..<4, with: bytes(1))
                    chunks[data - 1].data.replaceSubrange(0..<4, with: bytes(2))
                    chunks.swapAt(data, data - 1)
                }
            ),
            (
                "data of no frame",
                changed { chunks in
                    let stray = (type: UInt32.fdAT, data: bytes(0) + chunks[chunks.count - 2].data)
                    chunks.insert(stray, at: first(.IDAT, chunks) + 1)
                    var number: UInt32 = 0
                    for index in chunks.indices
                    where chunks[index].type == .fcTL || chunks[index].type == .fdAT {
                        chunks[index].data.replaceSubrange(0..<4, with: bytes(number))
                        number += 1
                    }
                }
            ),
            (
                "a frame without data",
                changed { chunks in
                    chunks.remove(at: chunks.count - 2)
                }
            ),
            (
                "the static image in a part of the canvas",
                changed { $0[first(.fcTL, $0)].data.replaceSubrange(4..<8, with: bytes(11)) }
            ),
        ]
    }()

    @Test(arguments: invalid.map(\.name))
    func invalidAnimationsAreStaticImages(name: String) throws {
        let chunks = try #require(Self.invalid.first { $0.name == name }).chunks
        let source = Animation.file(chunks)
        let plain = try stored(Samples.colourPNG)
        #expect(try stored(source).bytes == plain.bytes)
        #expect(refusal(source, Recipe(encoding: .jpeg)) == nil)
        #expect(try stored(source, Recipe(encoding: .original)).isSource)
        #expect(structureRefusal(source) == nil)
    }

    // MARK: Damage

    @Test(arguments: [Recipe.Encoding.same, .png, .original])
    func refusesUndecodableFrames(encoding: Recipe.Encoding) throws {
        let recipe = Recipe(encoding: encoding)
        guard case .corrupt(let text, false) = refusal(Animation(missingRows: 1).file, recipe)
        else {
            Issue.record("accepted a frame that lacks a row")
            return
        }
        #expect(text.hasPrefix("frame 1 of 2: "))
        // A complete stream that was cut, in a valid chunk.
        for part in [1, 2] {
            var chunks = Animation(partsOfAFrame: 2).chunks
            let last = chunks.count - 1 - part
            chunks[last].data.removeLast(8)
            guard case .corrupt(let text, false) = refusal(Animation.file(chunks), recipe) else {
                Issue.record("accepted a cut frame")
                return
            }
            #expect(text.hasPrefix("frame 2 of 2: "))
        }
    }

    @Test func refusesEveryFlippedByte() throws {
        let source = Animation(partsOfAFrame: 2).file
        let still = try stored(Samples.colourPNG).bytes
        let file = try source.withUnsafeBytes { try PNGFile($0) }
        for chunk in file.chunks where [.acTL, .fcTL, .fdAT].contains(chunk.type) {
            // After the length and type: damage to them makes other, harmless chunks.
            for position in chunk.data.lowerBound..<chunk.range.upperBound {
                var damaged = source
                damaged[position] ^= 0x41
                #expect(
                    refusal(damaged)
                        == .corrupt("\(PNGFile.name(chunk.type)): CRC error", isTruncated: false))
                #expect(structureRefusal(damaged) != nil)
            }
            // The result is not an animation, or not an image.
            for position in chunk.range.lowerBound..<chunk.data.lowerBound {
                var damaged = source
                damaged[position] ^= 0x41
                guard let result = try? stored(damaged) else { continue }
                #expect(result.bytes == still)
            }
        }
    }

    @Test(arguments: [Recipe.Encoding.same, .original])
    func refusesEveryTruncation(encoding: Recipe.Encoding) {
        let source = Animation().file
        let recipe = Recipe(encoding: encoding)
        for length in 8..<source.count {
            let cut = Array(source.prefix(length))
            guard length < source.count - PNGFile.endBytes else {
                #expect((try? warning(cut, recipe))?.lacksEnd == true)
                continue
            }
            for error in [refusal(cut, recipe), structureRefusal(cut)] {
                guard case .corrupt(_, true) = error else {
                    Issue.record("\(length) of \(source.count) bytes: \(error as Any)")
                    return
                }
            }
        }
    }

    // MARK: Limits

    /// A frame has 11 rows of 12 pixels, three bytes each, and their filter types.
    @Test func refusesFramesOverTotalLimit() throws {
        let frame = 11 * (12 * 3 + 1)
        let limits = CodecLimits(maximumPixels: 12 * 11)
        func animation(_ frames: Int) -> [UInt8] {
            Animation(
                announced: UInt32(frames + 1),
                places: Array(repeating: (0, 0, 12, 11), count: frames)
            ).file
        }
        let most = limits.maximumPixels * CodecLimits.frameBytesPerPixel / frame
        #expect(refusal(animation(most), limits: limits) == nil)
        for recipe in [Recipe(), Recipe(encoding: .original)] {
            guard case .tooManyPixels = refusal(animation(most + 1), recipe, limits: limits)
            else {
                Issue.record("accepted")
                return
            }
        }
        #expect(refusal(animation(1000), limits: CodecLimits(maximumPixels: .max)) == nil)
    }

    // MARK: Third-party files

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: try TestData.isAvailable ? TestData.expectations(in: "png/apng") : [])
    func keepsAnimationsOfOtherEncoders(expectation: TestData.Expectation) throws {
        let source = try TestData.bytes(expectation.path)
        let file = try source.withUnsafeBytes { try PNGFile($0) }
        guard expectation.systemLibrary != "error" else {
            #expect(refusal(source) != nil)
            return
        }
        let result = try stored(source)
        #expect(try stored(result.bytes).isSource)
        let isOutOfOrder = ["chunk_repeat", "sequence_"].contains {
            expectation.path.contains($0)
        }
        // The reference counts the announced frames and the static image.
        let isAnimated = expectation.frames > 1 && !isOutOfOrder
        #expect((file.animation != nil) == isAnimated)
        let animationTypes: Set<UInt32> = [.acTL, .fcTL, .fdAT]
        let kept = try types(result.bytes).filter(animationTypes.contains)
        #expect(kept == (isAnimated ? file.chunks.map(\.type).filter(animationTypes.contains) : []))
        if let animation = file.animation {
            let shown = animation.frames.count + 1
            #expect(shown == expectation.frames)
            let data = { (bytes: [UInt8]) in
                try bytes.withUnsafeBytes { bytes in
                    try PNGFile(bytes).chunks.filter { $0.type == .fdAT || $0.type == .fcTL }
                        .map { Array(bytes[$0.range]) }
                }
            }
            #expect(try data(result.bytes) == data(source))
        }
    }
}

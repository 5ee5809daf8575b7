import PrefetchModel
import Testing

@testable import Codecs

/// What is stored without decoding is whole all the same.
@Suite(.serialized, .timeLimit(.minutes(5))) struct StructureTests {
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func refusesEveryTruncation(source: [UInt8]) {
        #expect(structureRefusal(source) == nil)
        for length in 0..<source.count {
            let error = structureRefusal(Array(source.prefix(length)))
            switch error {
            case .corrupt(_, let isTruncated): #expect(isTruncated, "\(length): \(error as Any)")
            case .notAnImage: #expect(length < 8)
            default: Issue.record("\(length) of \(source.count) bytes: \(error as Any)")
            }
        }
    }

    @Test(arguments: Samples.pngs)
    func refusesEveryFlippedByteOfACriticalChunk(source: [UInt8]) {
        var offset = 8
        while offset + 12 <= source.count {
            let length = source[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            let isAncillary = source[offset + 4] & 0x20 != 0
            let isTransparency = Array(source[offset + 4..<offset + 8]) == Array("tRNS".utf8)
            if !isAncillary || isTransparency {
                for position in offset + 4..<offset + 12 + length {
                    // Bit 5 of a type's first byte would make another, harmless chunk of it.
                    var damaged = source
                    damaged[position] ^= 0x41
                    #expect(structureRefusal(damaged) != nil, "byte \(position)")
                }
            }
            offset += 12 + length
        }
    }

    /// The promise that lets `--check` be changed from run to run.
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func acceptsWhateverIsDecoded(source: [UInt8]) {
        for position in source.indices {
            for bit in [0x01, 0x10, 0x20, 0x80] as [UInt8] {
                var damaged = source
                damaged[position] ^= bit
                guard refusal(damaged, Recipe(encoding: .original)) == nil else { continue }
                #expect(structureRefusal(damaged) == nil, "byte \(position), bit \(bit)")
            }
        }
    }

    @Test func ignoresBytesAfterTheEnd() {
        for source in Samples.jpegs + Samples.pngs {
            #expect(structureRefusal(source + Array("trailing".utf8)) == nil)
        }
    }

    @Test func takesTheHeaderAsTheDecoderDoes() throws {
        for source in Samples.jpegs + Samples.pngs {
            let decoded = try stored(source, Recipe(encoding: .original)).image
            let checked = try source.withUnsafeBytes {
                try checkedStructure(of: $0, header: header(of: $0))
            }
            #expect(checked.format == decoded.format)
            #expect(checked.widthInPixels == decoded.widthInPixels)
            #expect(checked.heightInPixels == decoded.heightInPixels)
            guard case .source = checked.output else {
                Issue.record("made something")
                continue
            }
        }
    }

    // MARK: JPEG

    private func markers(_ marker: UInt8, in source: [UInt8]) -> [Int] {
        source.indices.dropLast().filter { source[$0] == 0xFF && source[$0 + 1] == marker }
    }

    @Test func refusesAProgressiveImageWithoutItsFirstScan() throws {
        let source = Samples.progressiveJPEG
        let scans = markers(0xDA, in: source)
        let first = try #require(scans.first)
        let second = try #require(scans.dropFirst().first)
        #expect(structureRefusal(Array(source[..<first] + source[second...])) != nil)
        #expect(structureRefusal(Array(source[..<first]) + [0xFF, 0xD9]) != nil)
        #expect(structureRefusal(Array(source[..<second]) + [0xFF, 0xD9]) == nil)
    }

    @Test func refusesAScanThatIsNoneOfTheFrames() throws {
        let source = Samples.baselineJPEG
        let scan = try #require(markers(0xDA, in: source).first)
        var other = source
        other[scan + 5] = 77
        #expect(
            structureRefusal(other)
                == .corrupt("a scan of a component that is not there", isTruncated: false))
        let length = Int(source[scan + 2]) << 8 | Int(source[scan + 3])
        let empty = Array(source[..<(scan + 2 + length)]) + [0xFF, 0xD9]
        #expect(structureRefusal(empty) == .corrupt("a scan without data", isTruncated: false))
    }

    @Test func refusesASecondFrame() throws {
        let source = Samples.progressiveJPEG
        let frame = try #require(markers(0xC2, in: source).first)
        let length = Int(source[frame + 2]) << 8 | Int(source[frame + 3])
        let end = source.count - 2
        let doubled = source[..<end] + source[frame..<frame + 2 + length] + source[end...]
        #expect(structureRefusal(Array(doubled)) == .corrupt("two frames", isTruncated: false))
    }

    @Test func refusesMoreScansThanTheLimitSays() {
        var limits = CodecLimits()
        let scans = markers(0xDA, in: Samples.progressiveJPEG).count
        limits.maximumScans = scans
        #expect(structureRefusal(Samples.progressiveJPEG, limits: limits) == nil)
        limits.maximumScans = scans - 1
        #expect(
            structureRefusal(Samples.progressiveJPEG, limits: limits)
                == .limitExceeded("more scans than allowed"))
    }

    // MARK: PNG

    private func chunks(_ source: [UInt8]) -> [(type: String, bytes: ArraySlice<UInt8>)] {
        var result: [(type: String, bytes: ArraySlice<UInt8>)] = []
        var offset = 8
        while offset + 12 <= source.count {
            let length = source[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            let type = String(decoding: source[offset + 4..<offset + 8], as: UTF8.self)
            result.append((type, source[offset..<offset + 12 + length]))
            offset += 12 + length
        }
        return result
    }

    @Test(arguments: ["IDAT", "PLTE", "IEND"])
    func refusesAPaletteImageWithout(type: String) {
        let source = Samples.palettePNG
        let rest = chunks(source).filter { $0.type != type }.flatMap(\.bytes)
        #expect(structureRefusal(Array(source[..<8]) + rest) != nil)
    }

    /// Where the first place holds all rows, the second is of no effect, as in a browser; where
    /// it does not, the decoder finds that.
    @Test func leavesImageDataInTwoPlacesToTheDecoder() throws {
        let source = Samples.colourPNG
        let all = chunks(source)
        let data = try #require(all.first { $0.type == "IDAT" }).bytes
        for middle in [[], PNGFile.chunk(0x7445_5874, [])] {
            let joined =
                Array(source[..<8])
                + all.flatMap {
                    $0.type == "IDAT" ? Array($0.bytes) + middle + data : $0.bytes[...]
                }
            #expect(structureRefusal(joined) == nil)
            #expect(refusal(joined) == nil)
        }
    }

    // MARK: Files of others

    @Test(.enabled(if: TestData.isAvailable, "the shared data is not there"))
    func acceptsWhateverIsDecodedOfTheSharedImages() throws {
        var accepted = 0
        for folder in ["jpeg/reftest", "png/pngsuite", "png/pngsuite-corrupt"] {
            for expectation in try TestData.expectations(in: folder) {
                let source = try TestData.bytes(expectation.path)
                guard refusal(source, Recipe(encoding: .original)) == nil else { continue }
                accepted += 1
                #expect(structureRefusal(source) == nil, "\(expectation.path)")
            }
        }
        #expect(accepted > 80)
    }
}

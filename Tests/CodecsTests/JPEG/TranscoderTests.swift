import CodecFuzzing
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Compares JPEGs transcoded without stored coefficients with libjpeg's.
@Suite(.timeLimit(.minutes(15))) struct TranscoderTests {
    private typealias Outcome = TranscoderInvariants.Outcome

    @discardableResult private func check(
        _ source: [UInt8], quality: Int = 50, hasPreview: Bool = false
    ) throws -> Outcome {
        try source.withUnsafeBytes {
            try TranscoderInvariants.check($0, quality: quality, hasPreview: hasPreview)
        }
    }

    // Separate values, since a failure would print all bytes of an outcome.

    private func isTranscoded(
        _ source: [UInt8], quality: Int = 50, hasPreview: Bool = false
    ) throws -> Bool {
        try check(source, quality: quality, hasPreview: hasPreview).isTranscoded
    }

    private func isTaken(_ source: [UInt8]) throws -> Bool { try check(source).isTaken }

    private func expectTranscoded(_ source: [UInt8], quality: Int = 50) throws {
        #expect(try isTranscoded(source, quality: quality))
    }

    struct Sampling: CustomStringConvertible {
        let description: String
        let factors: (horizontal: Int, vertical: Int)?
    }

    static let samplings = [
        Sampling(description: "grey", factors: nil),
        Sampling(description: "4:4:4", factors: (1, 1)),
        Sampling(description: "4:2:2", factors: (2, 1)),
        Sampling(description: "4:2:0", factors: (2, 2)),
        Sampling(description: "4:4:0", factors: (1, 2)),
        Sampling(description: "4:1:1", factors: (4, 1)),
        Sampling(description: "4:1:0", factors: (4, 2)),
    ]

    @Test(arguments: samplings, [0, 1, 3])
    func smallSizesKeepCoefficients(sampling: Sampling, restartInterval: Int) throws {
        for height in 1...40 {
            for width in 1...40 {
                let seed = height * 41 + width
                let source = TranscoderInvariants.baseline(
                    width: width, height: height, sampling: sampling.factors,
                    restartInterval: restartInterval, isOptimised: width % 2 == 0, seed: seed)
                #expect(
                    try isTranscoded(source, quality: 20 + seed % 75), "\(width)×\(height)")
            }
        }
    }

    @Test(arguments: samplings)
    func smallPicturesMatchLibjpeg(sampling: Sampling) throws {
        for (width, height) in [(130, 64), (257, 129), (64, 300), (1000, 65), (7, 900), (127, 127)]
        {
            let source = TranscoderInvariants.baseline(
                width: width, height: height, sampling: sampling.factors, seed: width)
            try check(source, quality: 85, hasPreview: true)
        }
        let large = TranscoderInvariants.baseline(
            width: 640, height: 480, sampling: sampling.factors)
        #expect(try isTranscoded(large, quality: 85, hasPreview: true))
    }

    @Test func isNoLargerThanLibjpegs() throws {
        var (ours, theirs) = (0, 0)
        for seed in 1...20 {
            let source = TranscoderInvariants.baseline(
                width: 320, height: 240, sampling: (2, 2), quality: 88, isOptimised: true,
                seed: seed)
            let outcome = try check(source, quality: 85)
            ours += outcome.bytes.count
            theirs += outcome.reference.count
        }
        #expect(ours <= theirs && ours > 0)
    }

    // MARK: Tables

    private static let everyAC: [UInt8] =
        [0x00, 0xF0] + (0..<160).map { UInt8(($0 / 10) << 4 | ($0 % 10 + 1)) }
    private static let everyDC: [UInt8] = Array(0..<12)

    /// All symbols, with codes of maximum length.
    @Test(arguments: [10, 50, 98])
    func reads16BitCodes(quality: Int) throws {
        var scan = HandmadeScan(dc: .init(Self.everyDC), ac: .init(Self.everyAC))
        var blocks = 0
        for run in 0..<16 {
            for category in 1...10 {
                for value in [1 << (category - 1), (1 << category) - 1] {
                    // Two blocks with distant means, within range of the first.
                    let mean = (1 << category) - 1
                    scan.begin(difference: blocks % 2 == 0 ? mean : -mean)
                    scan.put(blocks % 3 == 0 ? value : -value, run: run)
                    if blocks % 5 == 0 { scan.put(symbol: 0xF0) }
                    if blocks % 5 == 0 { scan.put(value, run: 15) }
                    scan.end()
                    blocks += 1
                }
            }
        }
        try expectTranscoded(scan.file(blocks: blocks), quality: quality)
    }

    @Test func readsCodesOfEveryLength() throws {
        let symbols: [UInt8] = [
            0x01, 0x00, 0xF0, 0x02, 0x11, 0x03, 0x04, 0x05, 0x21, 0x0A, 0x09, 0x08, 0x07, 0x06,
            0x31, 0x41,
        ]
        let lengths = Array(1...16)
        var scan = HandmadeScan(
            dc: .init(Self.everyDC, lengths: Array(2...13)), ac: .init(symbols, lengths: lengths))
        for block in 0..<64 {
            scan.begin(
                difference: block % 2 == 0 ? 1 << (block / 2 % 11) : -(1 << (block / 2 % 11)))
            for category in 1...10 where (block + category) % 3 == 0 {
                scan.put((1 << category) - 1)
            }
            for run in 1...4 { scan.put(block % 2 == 0 ? 1 : -1, run: run) }
            scan.put(symbol: 0xF0)
            scan.put(-1)
            scan.end()
        }
        try expectTranscoded(scan.file(blocks: 64))
    }

    @Test func readsAndWritesTablesOfOneSymbol() throws {
        var empty = HandmadeScan(dc: .init([0], length: 1), ac: .init([0], length: 1))
        for _ in 0..<100 {
            empty.begin()
            empty.end()
        }
        try expectTranscoded(empty.file(blocks: 100))
        let nothing = try check(empty.file(blocks: 100))
        let (ours, theirs) = (nothing.bytes.count, nothing.reference.count)
        #expect(ours < theirs)
        var full = HandmadeScan(dc: .init([0], length: 1), ac: .init([0x01], length: 1))
        for block in 0..<100 {
            full.begin()
            for place in 1...63 { full.put((block + place) % 2 == 0 ? 1 : -1) }
        }
        try expectTranscoded(full.file(blocks: 100), quality: 99)
        try expectTranscoded(full.file(blocks: 100), quality: 1)
    }

    @Test func refusesTablesThatLibjpegRefuses() throws {
        // A code of only ones.
        var scan = HandmadeScan(dc: .init([0, 1], length: 1), ac: .init([0], length: 1))
        scan.begin()
        scan.end()
        #expect(try !isTaken(scan.file(blocks: 1)))
        // A difference of 16 bits.
        var wide = HandmadeScan(dc: .init([0, 16], length: 2), ac: .init([0], length: 1))
        wide.begin()
        wide.end()
        #expect(try !isTaken(wide.file(blocks: 1)))
    }

    @Test func leavesNonBaselineFeaturesToLibjpeg() throws {
        let symbols: [UInt8] = [0x00, 0x01, 0xF0, 0x10, 0x0B, 0xF1]
        let blocks: [(inout HandmadeScan) -> Void] = [
            { $0.put(symbol: 0x10) },
            { $0.put(1500) },
            { for _ in 0..<4 { $0.put(symbol: 0xF0) } },
            { for _ in 0..<4 { $0.put(1, run: 15) } },
            { for _ in 0..<64 { $0.put(1) } },
        ]
        for block in blocks {
            var scan = HandmadeScan(dc: .init(Self.everyDC), ac: .init(symbols))
            scan.begin()
            block(&scan)
            scan.end()
            #expect(try !isTranscoded(scan.file(blocks: 1)))
        }
        // A mean outside the valid range.
        var scan = HandmadeScan(dc: .init(Self.everyDC), ac: .init(symbols))
        for _ in 0..<40 {
            scan.begin(difference: 2000)
            scan.end()
        }
        #expect(try !isTranscoded(scan.file(blocks: 40)))
    }

    // MARK: Data

    /// A coefficient of ten ones, at every offset from the beginning and around the edge of the
    /// read buffer.
    @Test(arguments: 0..<63)
    func readsStuffedBytesEverywhere(before: Int) throws {
        var scan = HandmadeScan(dc: .init(Self.everyDC), ac: .init(Self.everyAC))
        var blocks = 0
        for count in [before] + [Int](repeating: 30, count: 130) {
            scan.begin()
            for _ in 0..<count { scan.put(-1) }
            for _ in count..<63 { scan.put(1023) }
            blocks += 1
        }
        #expect(scan.data.count > 20_000)
        try expectTranscoded(scan.file(blocks: blocks), quality: 97)
    }

    @Test func readsEveryRestartInterval() throws {
        for interval in 1...40 {
            var scan = HandmadeScan(dc: .init(Self.everyDC), ac: .init(Self.everyAC))
            for block in 0..<40 {
                if block > 0, block % interval == 0 { scan.restart() }
                scan.begin(difference: block % 7)
                scan.put(5 - block % 3)
                scan.end()
            }
            try expectTranscoded(scan.file(blocks: 40, restartInterval: interval))
        }
    }

    private static let small = TranscoderInvariants.baseline(
        width: 41, height: 30, sampling: (2, 2), restartInterval: 2, quality: 80, isOptimised: true)

    private var dataStart: Int { (Self.small.markers(0xDA).first ?? 0) + 14 }

    @Test func agreesWithLibjpegOnMarkersInData() throws {
        let markers: [UInt8] = [
            0x01, 0xC4, 0xD0, 0xD1, 0xD4, 0xD7, 0xD8, 0xD9, 0xDA, 0xDC, 0xE0, 0xFE, 0xFF,
        ]
        for place in dataStart...Self.small.count {
            for marker in markers {
                try check(Array(Self.small[..<place]) + [0xFF, marker] + Self.small[place...])
            }
        }
    }

    @Test func agreesWithLibjpegOnTruncations() throws {
        for count in 0..<Self.small.count { try check(Array(Self.small[..<count])) }
    }

    @Test func agreesWithLibjpegOnChangedBytes() throws {
        var random = SplitMix(seed: 17)
        var transcoded = 0
        for place in Self.small.indices {
            for _ in 0..<6 {
                var bytes = Self.small
                bytes[place] = UInt8(truncatingIfNeeded: random.next())
                do {
                    transcoded += try check(bytes, hasPreview: place % 2 == 0).isTranscoded ? 1 : 0
                } catch {
                    Issue.record("byte \(place) as \(bytes[place]): \(error)")
                }
            }
        }
        // Otherwise the comparison would be empty.
        #expect(transcoded > 500)
    }

    @Test func ignoresTrailingData() throws {
        try expectTranscoded(Self.small)
        for rest: [UInt8] in [[0], [0xFF], [0xFF, 0xD9], Self.small] {
            try expectTranscoded(Self.small + rest)
        }
    }

    @Test func leavesProgressiveFilesToLibjpeg() throws {
        #expect(try !isTranscoded(Samples.progressiveJPEG))
        #expect(try !isTranscoded(HandmadeJPEG.plainCMYK()))
        #expect(try !isTranscoded(HandmadeJPEG.withHugeCoefficients()))
    }

    @Test(arguments: samplings.prefix(4))
    func readsWidestPictures(sampling: Sampling) throws {
        let source = TranscoderInvariants.baseline(
            width: 65500, height: 9, sampling: sampling.factors, restartInterval: 8187)
        try expectTranscoded(source)
        // One more than libjpeg accepts has libjpeg's verdict.
        let frame = try #require(
            source.indices.dropLast().first { source[$0] == 0xFF && source[$0 + 1] == 0xC0 })
        var wider = source
        wider.replaceSubrange(frame + 7...frame + 8, with: [0xFF, 0xFF])
        #expect(try !isTaken(wider))
    }

    // MARK: The shared data

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: try TestData.isAvailable ? TestData.expectations(in: "jpeg").map(\.path) : [])
    func corpusKeepsCoefficients(path: String) throws {
        let source = try TestData.bytes(path)
        for quality in [30, 85] { try check(source, quality: quality, hasPreview: quality == 85) }
    }

    @Test(.enabled(if: TestData.isAvailable))
    func photographsKeepCoefficients() throws {
        for path in try TestData.paths(in: "photos").filter({ $0.hasSuffix(".jpg") }) {
            try check(TestData.bytes(path), quality: 75, hasPreview: true)
        }
    }
}

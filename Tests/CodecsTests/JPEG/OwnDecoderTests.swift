import CInterruption
import CJPEG
import CodecFuzzing
import Glibc
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Compares reduced JPEGs from coefficients read by our decoder with libjpeg's.
@Suite(.timeLimit(.minutes(15))) struct OwnDecoderTests {
    @discardableResult private func check(
        _ source: [UInt8], maximumPixels: Int = 1 << 30
    ) throws -> ScaleInvariants.Outcome {
        try source.withUnsafeBytes {
            try ScaleInvariants.check($0, maximumPixels: maximumPixels)
        }
    }

    // Separate values, since a failure would print all bytes of a source.

    private func isReadHere(_ source: [UInt8]) throws -> Bool { try check(source).isReadHere }

    private func isTaken(_ source: [UInt8]) throws -> Bool { try check(source).isTaken }

    @Test(arguments: TranscoderTests.samplings, [0, 1, 3])
    func smallSizesMatchLibjpeg(
        sampling: TranscoderTests.Sampling, restartInterval: Int
    ) throws {
        for height in 1...40 {
            for width in 1...40 {
                let seed = height * 41 + width
                let source = TranscoderInvariants.baseline(
                    width: width, height: height, sampling: sampling.factors,
                    restartInterval: restartInterval, quality: 60 + seed % 40,
                    isOptimised: width % 2 == 0, seed: seed)
                #expect(try isReadHere(source), "\(width)×\(height)")
            }
        }
    }

    @Test(arguments: TranscoderTests.samplings, [0, 7])
    func largerPicturesMatchLibjpeg(
        sampling: TranscoderTests.Sampling, restartInterval: Int
    ) throws {
        for (width, height) in [(130, 64), (257, 129), (64, 300), (1000, 65), (7, 900), (640, 480)]
        {
            for quality in [10, 50, 88, 100] {
                let source = TranscoderInvariants.baseline(
                    width: width, height: height, sampling: sampling.factors,
                    restartInterval: restartInterval, quality: quality, seed: width)
                #expect(try isReadHere(source), "\(width)×\(height) of quality \(quality)")
            }
        }
    }

    @Test(arguments: TranscoderTests.samplings.prefix(4))
    func readsWidestPictures(sampling: TranscoderTests.Sampling) throws {
        let wide = TranscoderInvariants.baseline(
            width: 43000, height: 9, sampling: sampling.factors, restartInterval: 5374)
        #expect(try isReadHere(wide))
        // For most samplings, a row exceeds the memory limit.
        let widest = TranscoderInvariants.baseline(
            width: 65500, height: 9, sampling: sampling.factors, restartInterval: 8187)
        #expect(try isReadHere(widest) == ["grey", "4:2:2"].contains(sampling.description))
    }

    // MARK: Tables

    private static let everyAC: [UInt8] =
        [0x00, 0xF0] + (0..<160).map { UInt8(($0 / 10) << 4 | ($0 % 10 + 1)) }
    private static let everyDC: [UInt8] = Array(0..<12)

    /// All symbols, with codes of maximum length.
    @Test func reads16BitCodes() throws {
        var scan = HandmadeScan(dc: .init(Self.everyDC), ac: .init(Self.everyAC))
        var blocks = 0
        for run in 0..<16 {
            for category in 1...10 {
                for value in [1 << (category - 1), (1 << category) - 1] {
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
        #expect(try isReadHere(scan.file(blocks: blocks)))
    }

    /// Codes of one and two bits, which are decoded several at a time, up to each position of a
    /// block. The last position has no end-of-block code.
    @Test(arguments: [1, 2, 5, 15])
    func multipleSymbolsStopAtBlockEnd(run: Int) throws {
        let symbols: [UInt8] = [0x01, 0x00, UInt8(run << 4 | 1), 0xF0]
        var scan = HandmadeScan(
            dc: .init([0, 1], lengths: [1, 2]), ac: .init(symbols, lengths: [1, 2, 3, 4]))
        var blocks = 0
        for last in 0...63 {
            for before in 0..<6 {
                scan.begin(difference: blocks % 3 - 1)
                var at = 0
                for _ in 0..<before where at + run + 1 <= last {
                    scan.put(1, run: run)
                    at += run + 1
                }
                if last % 4 == 0, at + 17 <= last {
                    scan.put(symbol: 0xF0)
                    at += 16
                }
                while at < last {
                    scan.put(at % 2 == 0 ? 1 : -1)
                    at += 1
                }
                if last < 63 { scan.end() }
                blocks += 1
            }
        }
        #expect(try isReadHere(scan.file(blocks: blocks)))
    }

    @Test func readsTablesOfOneSymbol() throws {
        var empty = HandmadeScan(dc: .init([0], length: 1), ac: .init([0], length: 1))
        for _ in 0..<100 {
            empty.begin()
            empty.end()
        }
        #expect(try isReadHere(empty.file(blocks: 100)))
        var full = HandmadeScan(dc: .init([0], length: 1), ac: .init([0x01], length: 1))
        for block in 0..<100 {
            full.begin()
            for place in 1...63 { full.put((block + place) % 2 == 0 ? 1 : -1) }
        }
        #expect(try isReadHere(full.file(blocks: 100)))
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
        // With long codes, decoded singly, and short codes, decoded several at once.
        let tables: [HandmadeScan.Table] = [
            .init(symbols), .init(symbols, lengths: [1, 2, 3, 4, 5, 6]),
        ]
        for table in tables {
            for block in blocks {
                var scan = HandmadeScan(dc: .init(Self.everyDC), ac: table)
                scan.begin()
                block(&scan)
                scan.end()
                #expect(try !isReadHere(scan.file(blocks: 1)))
            }
        }
        // A mean outside the valid range.
        var scan = HandmadeScan(dc: .init(Self.everyDC), ac: .init(symbols))
        for _ in 0..<40 {
            scan.begin(difference: 2000)
            scan.end()
        }
        #expect(try !isReadHere(scan.file(blocks: 40)))
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
        #expect(try isReadHere(scan.file(blocks: blocks)))
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
            #expect(try isReadHere(scan.file(blocks: 40, restartInterval: interval)))
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

    @Test func agreesWithLibjpegOnFlippedBits() throws {
        var taken = 0
        for place in Self.small.indices {
            for bit in 0..<8 {
                var bytes = Self.small
                bytes[place] ^= 1 << bit
                do {
                    taken += try isReadHere(bytes) ? 1 : 0
                } catch {
                    Issue.record("bit \(bit) of byte \(place): \(error)")
                }
            }
        }
        // Otherwise the comparison would be empty.
        #expect(taken > 500)
    }

    @Test func agreesWithLibjpegOnChangedBytes() throws {
        var random = SplitMix(seed: 23)
        for place in Self.small.indices {
            for _ in 0..<6 {
                var bytes = Self.small
                bytes[place] = UInt8(truncatingIfNeeded: random.next())
                do {
                    try check(bytes)
                } catch {
                    Issue.record("byte \(place) as \(bytes[place]): \(error)")
                }
            }
        }
    }

    @Test func ignoresTrailingData() throws {
        for rest: [UInt8] in [[], [0], [0xFF], [0xFF, 0xD9], Self.small] {
            #expect(try isReadHere(Self.small + rest))
        }
    }

    @Test func leavesOtherFilesToLibjpeg() throws {
        #expect(try !isReadHere(Samples.progressiveJPEG))
        #expect(try !isReadHere(HandmadeJPEG.plainCMYK()))
    }

    // MARK: Limits

    private func expect(
        _ status: ccodec_status, isReadHere: Bool, of source: [UInt8], _ limits: cjpeg_limits,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        var (limits, result) = (limits, cjpeg_result())
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        let answer = cjpeg_decode_scaled(source, source.count, &limits, 1, 4, &result, &message)
        free(result.bytes)
        #expect(answer == status, sourceLocation: sourceLocation)
        #expect(result.was_read_here == isReadHere, sourceLocation: sourceLocation)
    }

    private func limits(
        memoryBytes: UInt64 = 0, leastOwnPixels: UInt64 = 0,
        _ interruption: UnsafeMutablePointer<cinterruption>? = nil
    ) -> cjpeg_limits {
        cjpeg_limits(
            maximum_pixels: 1 << 24, maximum_scans: 100, maximum_warnings: 100,
            maximum_memory_bytes: memoryBytes, least_own_pixels: leastOwnPixels,
            interruption: interruption, preview: nil, inks: cjpeg_inks())
    }

    @Test func leavesSmallPicturesToLibjpeg() throws {
        let source = TranscoderInvariants.baseline(width: 40, height: 30, sampling: (2, 2))
        expect(CCODEC_OK, isReadHere: true, of: source, limits(leastOwnPixels: 1200))
        expect(CCODEC_OK, isReadHere: false, of: source, limits(leastOwnPixels: 1201))
    }

    /// A row of MCUs has six blocks of 128 bytes per 16 columns.
    @Test func leavesLowMemoryToLibjpeg() throws {
        let source = TranscoderInvariants.baseline(width: 1600, height: 32, sampling: (2, 2))
        expect(CCODEC_OK, isReadHere: true, of: source, limits(memoryBytes: 100_000))
        expect(CCODEC_OK, isReadHere: false, of: source, limits(memoryBytes: 70_000))
    }

    /// In the row of MCUs after the first 64 KiB of pixels.
    @Test func endsWhenInterrupted() throws {
        let source = TranscoderInvariants.baseline(width: 1600, height: 800, sampling: (2, 2))
        var flag = cinterruption_flag()
        cinterruption_set(&flag)
        withUnsafePointer(to: &flag) { flag in
            var interruption = cinterruption()
            interruption.flag = flag
            withUnsafeMutablePointer(to: &interruption) {
                expect(CCODEC_INTERRUPTED, isReadHere: false, of: source, limits($0))
            }
        }
    }

    // MARK: The shared data

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: try TestData.isAvailable ? TestData.expectations(in: "jpeg").map(\.path) : [])
    func corpusMatchesLibjpeg(path: String) throws {
        try check(TestData.bytes(path), maximumPixels: 1 << 22)
    }

    @Test(.enabled(if: TestData.isAvailable))
    func photographsMatchLibjpeg() throws {
        var readHere = 0
        for path in try TestData.paths(in: "photos").filter({ $0.hasSuffix("g") }) {
            let source = try TestData.bytes(path)
            guard source.starts(with: [0xFF, 0xD8]) else { continue }
            if try isReadHere(source) { readHere += 1 }
        }
        // One of twelve is progressive.
        #expect(readHere == 11)
    }
}

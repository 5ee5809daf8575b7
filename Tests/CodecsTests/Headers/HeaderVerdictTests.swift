import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Verdicts on a body before it is complete.
@Suite(.timeLimit(.minutes(15)))
struct HeaderVerdictTests {
    private static let unlimited = HeaderRules(memory: ByteCount(.max))

    private func verdict(
        _ beginning: some Collection<UInt8>, of total: Int? = nil,
        _ rules: HeaderRules = unlimited
    ) -> HeaderVerdict {
        Array(beginning).withUnsafeBytes {
            HeaderVerdict(onBeginning: $0, totalBytes: total, under: rules)
        }
    }

    /// The error of the whole body, including memory limits.
    private func wholeRefusal(_ bytes: [UInt8], _ rules: HeaderRules) -> CodecError? {
        let header: ImageHeader
        do {
            header = try imageHeader(bytes, limits: rules.limits)
        } catch {
            return error as? CodecError
        }
        let need = rules.memoryBytes(of: header)
        let memory = rules.memory(for: header)
        if need > memory.bytes {
            return .tooMuchMemory(need, of: memory, beside: header.sourceBytes)
        }
        return rules.check == .decode
            ? refusal(bytes, rules.recipes[0], limits: rules.limits)
            : structureRefusal(bytes, limits: rules.limits)
    }

    /// Whether the errors are equal, except for a memory need that may grow.
    private func isSame(_ early: CodecError, _ whole: CodecError?) -> Bool {
        guard case .tooManyPixels(let text) = early, text.contains("at least") else {
            return early == whole
        }
        guard case .tooManyPixels(let all)? = whole else { return false }
        return all.hasPrefix("its pixels need ")
    }

    private static let page = Array(
        ("<!DOCTYPE html><html><head><title>not here</title></head><body>"
            + String(repeating: "<p>nothing</p>", count: 100)).utf8)

    @Test func isUndecidedBeforeSignature() {
        for count in [0, 1, 16, 255] {
            #expect(verdict(HeaderVerdictTests.page.prefix(count)) == .undecided)
        }
        #expect(
            verdict(HeaderVerdictTests.page.prefix(256))
                == .refused(.notAnImage("an HTML page")))
    }

    /// Steps that count frames are planned before any frame has arrived.
    @Test(arguments: FormatSample.taken)
    func framesAreCountedFromTheFirstByteOn(sample: FormatSample) throws {
        let bytes = try sample.bytes
        var recipe = Recipe(encoding: .same)
        recipe.transformations = [.resize(.pixels(50))]
        var rules = HeaderVerdictTests.unlimited
        rules.recipes = [recipe]
        for count in 0..<min(bytes.count, 1_000) {
            let early = verdict(bytes.prefix(count), of: bytes.count, rules)
            if case .refused(let error) = early { Issue.record("\(count): \(error)") }
        }
    }

    /// A compatible brand determines the format, and may be at the end of the examined bytes.
    @Test func namesFormatOnceCertain() {
        var brands = [0, 0, 1, 0] + Array("ftypmif1".utf8) + [0, 0, 0, 0]
        while brands.count < 252 { brands += Array("miaf".utf8) }
        let body = brands + Array("heic".utf8) + [UInt8](repeating: 0, count: 1000)
        #expect(verdict(body.prefix(255)) == .undecided)
        #expect(verdict(body.prefix(256)) == .refused(.unsupported("heif is not decoded")))
        let other = brands + Array("avif".utf8)
        #expect(
            verdict(other[...])
                == (CodecLibraries.decodes(.avif)
                    ? .passed : .refused(.unsupported("avif is not decoded"))))
    }

    @Test func refusesPNGPixelsAtFirstChunk() throws {
        let png = Samples.colourPNG
        var rules = HeaderVerdictTests.unlimited
        rules.limits.maximumPixels = try imageHeader(png).pixels - 1
        let early = verdict(png.prefix(256), rules)
        #expect(early == .refused(.tooManyPixels("12×11 pixels, more than --max-pixels (131)")))
        rules.limits.maximumPixels += 1
        #expect(verdict(png.prefix(256), rules) == .passed)
    }

    /// A large profile may precede the frame header.
    @Test func judgesJPEGAtCompleteHeader() throws {
        let profile = JPEGFile.segment(0xE2, [UInt8](repeating: 7, count: 60_000))
        let jpeg = Samples.baselineJPEG
        let late = Array(jpeg.prefix(2)) + profile + profile + jpeg.dropFirst(2)
        var rules = HeaderVerdictTests.unlimited
        rules.limits.maximumPixels = 10
        #expect(verdict(late.prefix(120_000), rules) == .undecided)
        #expect(
            verdict(late, rules)
                == .refused(.tooManyPixels("21×19 pixels, more than --max-pixels (10)")))
        #expect(verdict(late.prefix(120_000)) == .undecided)
        #expect(verdict(late) == .passed)
    }

    @Test func refusesUndecodedFormatsByHeader() throws {
        var deep = Samples.baselineJPEG
        let frame = try #require(
            deep.indices.dropLast().first { deep[$0] == 0xFF && deep[$0 + 1] == 0xC0 })
        deep[frame + 4] = 12
        #expect(verdict(deep) == .refused(.unsupported("a JPEG of 12 bits a sample")))
        var apple = Samples.colourPNG
        apple.replaceSubrange(12..<16, with: Array("CgBI".utf8))
        #expect(
            verdict(apple.prefix(256))
                == .refused(.unsupported("a PNG of Apple's own variant (CgBI)")))
    }

    /// An animation is stored unchanged and needs less memory than encoding a still picture. So it
    /// must not be rejected for the latter.
    @Test func allowsForPNGAnimation() {
        let head = PNGFile.chunk(
            .IHDR, [0, 0, 0x20, 0, 0, 0, 0x20, 0, 8, 2, 0, 0, 0])
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        let text = PNGFile.chunk(0x7445_5874, [UInt8](repeating: 0x20, count: 300))
        let data = PNGFile.chunk(.IDAT, [UInt8](repeating: 0, count: 300))
        let control = PNGFile.chunk(.acTL, [0, 0, 0, 2, 0, 0, 0, 0])
        let rules = HeaderRules(memory: .mebibytes(64))
        #expect(verdict(signature + head + text, rules) == .undecided)
        #expect(verdict(signature + head + control + text + data, rules) == .undecided)
        guard case .refused(.tooManyPixels(let text)) = verdict(signature + head + data, rules)
        else {
            Issue.record("taken")
            return
        }
        #expect(text.hasPrefix("its pixels need at least ") && !text.contains("would do"))
    }

    /// A file that is rejected for its size and its many chunks reports the size, before and after
    /// the chunks arrive.
    @Test func reportsSizeBeforeChunkCount() throws {
        let png = Samples.colourPNG
        let chunk = PNGFile.chunk(0x7445_5874, [])
        let many =
            png.prefix(33) + Array(repeatElement(chunk, count: 50_001).joined()) + png.dropFirst(33)
        var rules = HeaderVerdictTests.unlimited
        #expect(
            wholeRefusal(Array(many), rules) == .limitExceeded("more than 50000 chunks"))
        rules.limits.maximumPixels = 10
        let early = verdict(many.prefix(300), rules)
        #expect(early == .refused(.tooManyPixels("12×11 pixels, more than --max-pixels (10)")))
        #expect(
            wholeRefusal(Array(many), rules)
                == .tooManyPixels("12×11 pixels, more than --max-pixels (10)"))
    }

    /// Bytes that may already be stored are judged by their format alone.
    @Test func formatVerdictIgnoresLimits() {
        let page = HeaderVerdictTests.page
        #expect(
            page.withUnsafeBytes { HeaderVerdict(onFormatOf: $0) }
                == .refused(.notAnImage("an HTML page")))
        for image in Samples.jpegs + Samples.pngs where image.count >= 256 {
            #expect(image.withUnsafeBytes { HeaderVerdict(onFormatOf: $0) } == .passed)
        }
    }

    // MARK: All files

    private static let counts = [
        0, 1, 32, 255, 256, 257, 300, 512, 1000, 2048, 4096, 10_000, 20_000, 65_536, 131_072,
        300_000,
    ]

    /// Small enough to reject most files, large enough for some.
    private static let rules: [HeaderRules] = {
        let small = CodecLimits(maximumPixels: 20_000)
        let memory = ByteCount(4_500_000)
        return [
            unlimited,
            HeaderRules(limits: small, memory: ByteCount(.max)),
            HeaderRules(memory: memory),
            HeaderRules(memory: memory, memoryWithFile: memory),
            HeaderRules(recipes: [Recipe(encoding: .jpeg)], memory: memory),
            HeaderRules(recipes: [Recipe(encoding: .png)], memory: memory),
            HeaderRules(recipes: [Recipe(encoding: .original)], memory: memory),
            HeaderRules(
                recipes: [Recipe(encoding: .original)], check: .structure, memory: memory),
        ]
    }()

    /// A verdict on a beginning holds for the whole file, and does not change as more bytes arrive.
    @Test(.enabled(if: TestData.isAvailable))
    func beginningAgreesWithWholeFile() throws {
        var refusals = 0
        for path in try HeaderVerdictTests.paths() {
            let bytes = try TestData.bytes(path)
            for rules in HeaderVerdictTests.rules {
                refusals += try judge(bytes, rules, path)
            }
        }
        #expect(refusals > 1000)
    }

    /// The paths of all shared files, relative to the folder.
    private static func paths() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: TestData.root.path).sorted().filter {
            var isFolder: ObjCBool = false
            let path = TestData.root.appending(path: $0).path
            return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
                && !isFolder.boolValue
        }
    }

    /// Judges the beginnings of a file.
    ///
    /// - Returns: The number of rejected beginnings.
    private func judge(_ bytes: [UInt8], _ rules: HeaderRules, _ path: String) throws -> Int {
        let counts = HeaderVerdictTests.counts.filter { $0 < bytes.count } + [bytes.count]
        var refusals = 0
        var whole: CodecError??
        for total in [nil, bytes.count] {
            var wasRefused = false
            for count in counts {
                guard case .refused(let error) = verdict(bytes.prefix(count), of: total, rules)
                else {
                    #expect(!wasRefused, "\(path), \(count) bytes, \(rules)")
                    continue
                }
                wasRefused = true
                refusals += 1
                let refusal = whole ?? wholeRefusal(bytes, rules)
                whole = .some(refusal)
                #expect(
                    isSame(error, refusal),
                    "\(path), \(count) bytes, \(rules): \(error), \(String(describing: refusal))")
            }
        }
        return refusals
    }

    /// The requested size is for the oriented picture. The orientation may follow later, so a
    /// beginning is rejected only if neither orientation fits.
    @Test(arguments: [(1, false), (6, true)])
    func filterUsesDisplayedSize(orientation: Int, isTurned: Bool) throws {
        let source = try imageHeader(Samples.baselineJPEG)
        let (width, height) = (source.widthInPixels, source.heightInPixels)
        try #require(width != height)
        let jpeg = JPEGTests.inserting(
            JPEGTests.exif(orientation: orientation), into: Samples.baselineJPEG)
        func outcomes(_ minimumWidth: Int, _ minimumHeight: Int) throws -> (Bool, Bool) {
            var rules = HeaderVerdictTests.unlimited
            rules.wanted.minimumWidth = minimumWidth
            rules.wanted.minimumHeight = minimumHeight
            var early = false
            if case .refused(.leftOut(.belowMinimumSize, _)) = verdict(jpeg, rules) { early = true }
            do throws(CodecError) {
                try rules.filter(
                    jpeg.withUnsafeBytes { bytes in
                        Result { () throws(CodecError) in try header(of: bytes) }
                    }.get())
                return (early, false)
            } catch {
                guard case .leftOut(.belowMinimumSize, _) = error else { throw error }
                return (early, true)
            }
        }
        #expect(try outcomes(width, height) == (false, isTurned))
        #expect(try outcomes(height, width) == (false, !isTurned))
        #expect(try outcomes(max(width, height) + 1, 0) == (true, true))
    }
}

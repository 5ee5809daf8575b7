import Testing

@testable import PrefetchModel
@testable import Reporting

/// The template writer produces the same lines as the ordinary writer.
@Suite(.timeLimit(.minutes(15)))
struct WarmLineWriterTests {
    private static let texts = [
        "https://example.org/a.jpg",
        "https://example.org/",
        "http://user:secret@example.org/a.jpg",
        "https://example.org/a.jpg?w=640&h=480",
        "https://example.org/a.jpg?X-Amz-Signature=0123456789&w=1",
        "https://example.org/a.jpg?token=abc#x",
        "https://example.org/name@2x.png",
        "https://example.org/\"quoted\\back\"",
        "https://example.org/tab\there\u{1B}[31m\u{7F}",
        "https://example.org/ünïcode/日本語/\u{202E}gpj.exe\u{2028}",
        "a key, with a comma: {\"url\":\"x\"}",
        "",
        "https://example.org/" + String(repeating: "long/", count: 2_000) + "a.jpg",
    ]

    private static let manifests = [
        "m.txt", "-", "", "a \"list\",\"url\":\"x\",\"line\":7.txt", "back\\", "\\\"",
        "ü\u{202E}\n.txt",
    ]

    private static let images: [StoredImage?] = {
        let digests = (0..<3).compactMap { seed in
            (0..<32).map { UInt8(truncatingIfNeeded: $0 * 37 + seed * 101) }
                .withUnsafeBytes { ContentDigest(bytes: $0) }
        }
        let formats: [ImageFormat] = [.jpeg, .png, .jpegXL]
        let sizes = [0, 9, 10, 99, 100, 65_535, 1_000_000_007, Int.max]
        return [nil]
            + sizes.enumerated().map { index, size in
                StoredImage(
                    digest: digests[index % 3], format: formats[index % 3], widthInPixels: size,
                    heightInPixels: sizes[sizes.count - 1 - index],
                    orientation: index + 1, size: ByteCount(size))
            }
    }()

    private static let times = [0, 1, -1, 1_800_000_000_000, 1_800_000_000_999, .max, .min]
        .map { Timestamp(milliseconds: $0) }

    private struct Batch {
        var batch: EntryBatch
        var results: [EntryResult?] = []
        var warm: [WarmEntry] = []
    }

    private static func variants(_ names: [String]) -> VariantSet {
        let recipes = [Recipe(), Recipe(encoding: .original), Recipe(encoding: .jpeg, quality: 7)]
        let variants = names.enumerated().compactMap { index, name in
            VariantName(name).map { RequestedVariant(name: $0, recipe: recipes[index % 3]) }
        }
        return (try? VariantSet(variants)) ?? VariantSet(main: Recipe())
    }

    /// Every text as URL and as key, every third entry not warm.
    private static func batch(
        manifest: String, variants: VariantSet = WarmLineWriterTests.variants([])
    ) -> Batch {
        var result = Batch(batch: EntryBatch(manifest: manifest))
        var variantImages: [StoredImage?] = []
        for (index, url) in texts.enumerated() {
            for key in [url, texts[(index + 5) % texts.count]] {
                let number = result.batch.records.count
                let start = result.batch.text.count
                result.batch.text += Array(url.utf8)
                let end = result.batch.text.count
                if key != url { result.batch.text += Array(key.utf8) }
                let line = [1, 9, 10, 4_096, 1_000_000_000_000][number % 5] + number
                result.batch.records.append(
                    EntryBatch.Record(
                        line: line, url: start..<end,
                        key: key == url ? start..<end : end..<result.batch.text.count,
                        priority: .normal))
                guard number % 3 != 1 else {
                    result.results.append(nil)
                    continue
                }
                let image = images[number % images.count]
                let time = times[number % times.count]
                var ordinary = EntryResult(
                    manifest: manifest, line: line, url: url, key: key, outcome: .fresh,
                    stored: image, expiresAt: time)
                let first = variantImages.count
                if variants.count > 1 {
                    for (index, variant) in variants.enumerated() {
                        let image = images[(number + index) % images.count]
                        variantImages.append(image)
                        ordinary.variants.append(
                            VariantResult(variant, outcome: .fresh, stored: image))
                    }
                }
                result.warm.append(
                    WarmEntry(
                        number: number, image: image, variantImages: variantImages[first...],
                        expiresAt: time))
                result.results.append(ordinary)
            }
        }
        return result
    }

    @Test(arguments: manifests, ["", "/var/ca\"ch\u{e9}/"])
    func writesWhatTheOrdinaryWriterWrites(manifest: String, pathPrefix: String) {
        for names in [[], ["main", "web"], ["a", "original", "z", "y"]] {
            compare(WarmLineWriterTests.variants(names), manifest, pathPrefix)
        }
    }

    private func compare(_ variants: VariantSet, _ manifest: String, _ pathPrefix: String) {
        let sample = WarmLineWriterTests.batch(manifest: manifest, variants: variants)
        let lines = WarmLineWriter(pathPrefix: pathPrefix).lines(
            of: sample.warm, variants: variants, in: sample.batch)
        var all: [UInt8] = []
        for (number, result) in sample.results.enumerated() {
            var ordinary = JSONObjectWriter()
            ordinary.pathPrefix = pathPrefix
            if let result {
                ordinary.append(result)
                ordinary.endLine()
            }
            let line = Array(lines.bytes[lines[record: number]])
            #expect(
                line == ordinary.bytes,
                "\(String(decoding: line, as: UTF8.self)) \(String(describing: result))")
            all += ordinary.bytes
        }
        #expect(lines.bytes == all)
    }

    @Test func aBatchWithoutWarmEntriesHasNoLines() {
        let sample = WarmLineWriterTests.batch(manifest: "m.txt")
        let lines = WarmLineWriter(pathPrefix: "").lines(
            of: [], variants: VariantSet(main: Recipe()), in: sample.batch)
        #expect(lines.bytes.isEmpty)
        #expect(lines[record: sample.batch.records.count - 1].isEmpty)
    }

    /// Beside lines of the ordinary writer, in the order of the calls, few at a time and many.
    @Test(arguments: [1, 50])
    func linesStandInTheirOrderInTheReport(copies: Int) throws {
        let sample = WarmLineWriterTests.batch(manifest: "m.txt")
        let lines = WarmLineWriter(pathPrefix: "").lines(
            of: sample.warm, variants: VariantSet(main: Recipe()), in: sample.batch
        ).bytes
        let many = Array(repeatElement(lines, count: copies).joined())
        let text = try Samples.withTemporaryPath { path in
            var writer = try ReportWriter(path: path)
            try writer.write(Samples.failed(line: 1))
            try writer.write(lines: many[...])
            try writer.write(Samples.failed(line: 2))
            try writer.finish(Samples.summary())
            return try Samples.text(of: path)
        }
        var expected = JSONObjectWriter()
        expected.append(Samples.failed(line: 1))
        expected.endLine()
        expected.append(lines: many[...])
        expected.append(Samples.failed(line: 2))
        expected.endLine()
        #expect(text.utf8.starts(with: expected.bytes))
        let rest = text.utf8.dropFirst(expected.bytes.count)
        #expect(rest.starts(with: "{\"type\":\"summary\"".utf8))
    }

    @Test func onlyAReportHasItsLinesWrittenByReaders() throws {
        try Samples.withTemporaryPath { path in
            var configuration = RunReporter.Settings()
            #expect(RunReporter(configuration).warmLineWriter == nil)
            var isWritten = false
            let report = try ReportWriter(path: path)
            isWritten = RunReporter(configuration, report: report).warmLineWriter != nil
            #expect(isWritten)
            configuration.verbosity = .verbose
            let other = try ReportWriter(path: path)
            isWritten = RunReporter(configuration, report: other).warmLineWriter != nil
            #expect(!isWritten)
        }
    }
}

import TestSupport
import Testing

/// A small picture that is cut at every offset, in one framing.
struct Truncation: Sendable, CustomTestStringConvertible {
    enum Framing: String, CaseIterable {
        case announced = "cut-announced"
        case chunked = "cut-chunked"
        case closeDelimited = "cut-closed"
        /// The origin's own file is short, and its length is told truly.
        case shortAtTheOrigin = "short"
    }

    let name: String
    let bytes: [UInt8]
    let framing: Framing

    var testDescription: String { "\(name) \(framing.rawValue)" }

    /// The transport sees the cut in the first two; in the others only the decoder can.
    var reasons: Set<String> {
        switch framing {
        case .announced, .chunked: ["interrupted"]
        case .closeDelimited: ["interrupted", "not-an-image"]
        case .shortAtTheOrigin: ["corrupt-image", "not-an-image"]
        }
    }

    /// Whether a cut loses only a PNG's end chunk and checksums, and the transport sees no cut.
    func losesOnlyEnd(at offset: Int) -> Bool {
        framing == .shortAtTheOrigin && name.hasSuffix(".png") && offset >= bytes.count - 20
    }

    static let all: [Truncation] = {
        let names = ["baseline.jpg", "progressive.jpg", "grey.jpg"]
        let pictures =
            names.map { ($0, (try? Fixtures.file($0)) ?? []) } + [
                ("rgb.png", Fixtures.png(.rgb)), ("palette.png", Fixtures.png(.palette)),
                ("rgba16.png", Fixtures.png(width: 4, height: 4, .rgba16)),
            ]
        return pictures.flatMap { name, bytes in
            Framing.allCases.map { Truncation(name: name, bytes: bytes, framing: $0) }
        }
    }()
}

@Suite(.timeLimit(.minutes(15)))
struct TruncationTests {
    @Test(arguments: Truncation.all)
    func noCutOfPixelsIsEverStored(truncation: Truncation) async throws {
        let length = truncation.bytes.count
        try #require(length > 100)
        try await withOrigin { origin in
            origin.serveFaults(of: [truncation.name: truncation.bytes])
            var lines = (0..<length).map { offset in
                origin.url("/f/\(truncation.framing.rawValue)/\(offset)/\(truncation.name)")
            }
            lines.append(origin.url("/f/plain/0/\(truncation.name)"))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand(lines)
                let run = try workspace.finish(await command.run(), entries: length + 1)
                #expect(run.result.status == 1)
                let verdicts = run.report.verdicts
                #expect(verdicts.last == "downloaded", "\(run.result)")
                let allowed = Set(truncation.reasons.map { "failed/\($0)" })
                // An empty body is a fault of the transfer, not of the image.
                #expect(verdicts.first == "failed/interrupted")
                let wrong = verdicts.dropLast().enumerated().dropFirst().filter {
                    truncation.losesOnlyEnd(at: $0.offset)
                        ? $0.element != "downloaded" : !allowed.contains($0.element)
                }
                #expect(wrong.isEmpty, "offsets of \(length): \(wrong.prefix(20))")
                // The whole picture, also from those without their end, and nothing else.
                let stored = (0..<length).count(where: truncation.losesOnlyEnd)
                #expect(try await workspace.judge() == 1 + stored)
                // Those without their checksums are encoded again.
                let files = try await workspace.query(
                    "SELECT count(DISTINCT sha256) <= \(stored > 0 ? 2 : 1) FROM variant")
                #expect(files == [["1"]])
            }
        }
    }
}

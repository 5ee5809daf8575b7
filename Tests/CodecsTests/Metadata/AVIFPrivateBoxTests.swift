import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

#if AVIF
    /// Bytes of an AVIF that no reader needs, in each place: kept data loses them unless all
    /// metadata is kept.
    @Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: CodecLibraries.decodes(.avif)))
    struct AVIFPrivateBoxTests {
        struct Member: CustomTestStringConvertible, Sendable {
            let testDescription: String
            let file: [UInt8]
        }

        private static let secret = Array("a SECRET of sixteen or more bytes".utf8)

        private static func stray(_ type: String) -> [UInt8] { HandmadeContainer.box(type, secret) }

        private static func still(
            _ name: String, of sample: String = "lossy", _ change: (inout AVIFParts) -> Void
        ) throws -> Member {
            var parts = try AVIFParts(sample)
            change(&parts)
            return Member(testDescription: "\(sample): \(name)", file: parts.bytes)
        }

        /// The bytes of a box with more inside, at its end.
        private static func growing(_ box: [UInt8], by added: [UInt8]) -> [UInt8] {
            HandmadeContainer.big(box.count + added.count) + box[4...] + added
        }

        /// libavif refuses other boxes in `iprp`.
        private static func stills(_ type: String, of sample: String) throws -> [Member] {
            let box = stray(type)
            func member(_ place: String, _ change: (inout AVIFParts) -> Void) throws -> Member {
                try still("\(type) \(place)", of: sample, change)
            }
            return try [
                member("before meta") { $0.beginning += box },
                member("in meta") { $0.described = box },
                member("in ipco") { $0.add(property: type, secret, isEssential: false) },
                member("in grpl") { $0.described = HandmadeContainer.box("grpl", box) },
                member("behind the data") { $0.behind = box + HandmadeContainer.box("mdat", [1]) },
                member("at the end") { $0.behind = box },
            ]
        }

        private static let paths: [[StaticString]] = [
            [], ["moov"], ["moov", "trak"], ["moov", "trak", "mdia"],
            ["moov", "trak", "mdia", "minf"], ["moov", "trak", "mdia", "minf", "dinf"],
            ["moov", "trak", "mdia", "minf", "dinf", "dref"],
            ["moov", "trak", "mdia", "minf", "stbl"],
            ["moov", "trak", "mdia", "minf", "stbl", "stsd"],
            ["moov", "trak", "mdia", "minf", "stbl", "stsd", "av01"],
        ]

        private static func sequences(_ type: String) throws -> [Member] {
            try paths.map { path in
                Member(
                    testDescription: "sequence: \(type) in \(path.last.map { "\($0)" } ?? "file")",
                    file: try AVIFParts.sequence(adding: stray(type), in: path))
            }
        }

        /// Bytes of `mdat` and `idat` that belong to nothing.
        private static func gaps() throws -> [Member] {
            func behindData(_ file: [UInt8]) throws -> [UInt8] {
                let start = try #require(HandmadeContainer.lastBox("mdat", of: file))
                return file[..<start] + growing(Array(file[start...]), by: secret)
            }
            return try [
                Member(
                    testDescription: "still: end of mdat",
                    file: behindData(AVIFParts("alpha").bytes)),
                Member(
                    testDescription: "sequence: end of mdat",
                    file: behindData(FormatSample.named("sequence", .avif))),
                still("idat without items") { $0.unclaimed = secret },
                still("idat with a picture") {
                    $0.parts[0].place = .idat
                    $0.unclaimed = secret
                },
            ]
        }

        /// A track like the first one, with data of its own.
        private static func sequence(withTrackOf handler: String) throws -> [UInt8] {
            let sample = try FormatSample.named("sequence", .avif)
            var track = try sample.withUnsafeBytes { bytes in
                let movie = try #require(try Box.first("moov", of: bytes))
                let track = try #require(try Box.first("trak", of: bytes, in: movie.payload))
                return Array(bytes[track.start..<track.payload.upperBound])
            }
            func place(_ type: String) throws -> Int {
                try #require(track.indices.first { track[$0...].starts(with: type.utf8) })
            }
            let kind = try place("hdlr") + 12
            track.replaceSubrange(kind..<kind + 4, with: handler.utf8)
            let offset = try place("stco") + 12
            track.replaceSubrange(
                offset..<offset + 4, with: HandmadeContainer.big(sample.count + track.count + 8))
            let data = (0..<40).flatMap { _ in secret }
            return try AVIFParts.sequence(
                adding: track, in: ["moov"], end: HandmadeContainer.box("mdat", data))
        }

        private static let members: [Member] = {
            let types = ["abcd", "free", "skip", "wide", "mdat"]
            let boxes = try? types.flatMap { type in
                try stills(type, of: "lossy") + stills(type, of: "alpha") + sequences(type)
            }
            let tracks = try? ["text", "meta", "subt", "tmcd"].map { handler in
                Member(
                    testDescription: "sequence: track \(handler)",
                    file: try sequence(withTrackOf: handler))
            }
            return (boxes ?? []) + ((try? gaps()) ?? []) + (tracks ?? [])
        }()

        @Test func membersAreMade() {
            #expect(Self.members.count == 5 * (12 + Self.paths.count) + 4 + 4)
            #expect(Self.members.allSatisfy { JPEGTests.contains($0.file, "SECRET") })
        }

        private func pixels(_ file: [UInt8]) throws -> [UInt8] {
            try stored(file, Recipe(encoding: .png)).bytes
        }

        @Test(arguments: members, [Recipe.Stripping.safe, .all])
        func keptDataHasNone(member: Member, stripping: Recipe.Stripping) throws {
            let recipe = Recipe(stripping, quality: 100)
            let made = try AVIFMetadataTests.kept(member.file, by: recipe)
            #expect(try pixels(made) == pixels(member.file))
            #expect(structureRefusal(made) == nil)
            // Nothing is left to remove.
            #expect(try stored(made, recipe).bytes == made)
        }

        /// Each level of nested boxes takes room on the stack, and files may have a million.
        @Test(arguments: ["dref", "stsd", "iinf"])
        func nestingEnds(type: String) {
            let path = [
                "dref": ["moov", "trak", "mdia", "minf", "dinf"],
                "stsd": ["moov", "trak", "mdia", "minf", "stbl"], "iinf": ["moov", "meta"],
            ]
            let cycle = (path[type] ?? []) + [type]
            // One entry; of `meta` and of both others, version and flags precede the rest.
            let heads = ["meta": [0, 0, 0, 0], "iinf": [0, 0, 0, 0, 0, 1]] as [String: [UInt8]]
            let entries = [0, 0, 0, 0, 0, 0, 0, 1] as [UInt8]
            let boxes = (0..<100_000).flatMap { _ in
                cycle.map { ($0, heads[$0] ?? ($0 == type ? entries : [])) }
            }
            var left = boxes.reduce(0) { $0 + 8 + $1.1.count }
            var file = HandmadeContainer.box("ftyp", Array("avif\0\0\0\0".utf8))
            for (type, head) in boxes {
                file += HandmadeContainer.big(left) + Array(type.utf8) + head
                left -= 8 + head.count
            }
            let found = file.withUnsafeBytes { HEIFPrivateBoxes($0).descriptions.count }
            #expect(found == (type == "iinf" ? 1 : 0))
        }

        @Test(arguments: members)
        func strippingNoneKeepsAll(member: Member) throws {
            #expect(try stored(member.file, Recipe(.none, quality: 100)).bytes == member.file)
        }

        /// Sound is no metadata.
        @Test func soundIsKept() throws {
            let source = try Self.sequence(withTrackOf: "soun")
            let made = try stored(source, Recipe(quality: 100)).bytes
            #expect(JPEGTests.contains(made, "SECRET") && JPEGTests.contains(made, "soun"))
        }

        /// The movie and its tracks have them, in seconds since 1904.
        @Test func timesOfSequencesAreRemoved() throws {
            let source = try FormatSample.named("sequence", .avif)
            func times(_ file: [UInt8]) throws -> [Bool] {
                ["mvhd", "tkhd", "mdhd"].flatMap { type in
                    file.indices.filter { file[$0...].starts(with: type.utf8) }.map {
                        file[$0 + 8..<$0 + 24].contains { $0 > 0 }
                    }
                }
            }
            #expect(try times(source) == [true, true, true, true, true])
            let made = try stored(source, Recipe(quality: 100)).bytes
            #expect(try times(made) == [false, false, false, false, false])
            #expect(try pixels(made) == pixels(source))
        }

        /// Without a table of samples, no data of the file is overwritten.
        @Test(arguments: ["stsz", "stsc", "stco"])
        func unknownSamplesAreKept(table: String) throws {
            var source = try AVIFParts.sequence(adding: Self.stray("abcd"), in: ["moov"])
            let mdat = try #require(HandmadeContainer.lastBox("mdat", of: source))
            let place = try #require(source.indices.last { source[$0...].starts(with: table.utf8) })
            source.replaceSubrange(place..<place + 4, with: "zzzz".utf8)
            let made = try source.withUnsafeBytes { bytes in
                let found = try HEIFMetadata(bytes).replacements
                #expect(!found.isEmpty)
                return found.allSatisfy { $0.range.upperBound <= mdat }
            }
            #expect(made)
        }
    }
#endif

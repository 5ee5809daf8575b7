import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

#if AVIF
    /// Metadata in every place of an AVIF, found with every version of libavif.
    @Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: CodecLibraries.decodes(.avif)))
    struct AVIFMetadataTests {
        /// A TIFF structure with an artist and a latitude.
        private static let tiff: [UInt8] = {
            let artist = Array("SECRET AUTHOR\0".utf8)
            func entry(_ tag: [UInt8], _ type: UInt8, _ count: Int, _ value: [UInt8]) -> [UInt8] {
                tag + [0, type] + HandmadeContainer.big(count) + value
            }
            func place(_ offset: Int) -> [UInt8] { HandmadeContainer.big(offset + artist.count) }
            let name = entry([0x01, 0x3B], 2, artist.count, HandmadeContainer.big(38))
            let position = entry([0x88, 0x25], 4, 1, place(38))
            let north = entry([0, 1], 2, 2, Array("N\0\0\0".utf8))
            let latitude = entry([0, 2], 5, 3, place(68))
            let degrees = [12, 1, 34, 1, 56, 1].flatMap { HandmadeContainer.big($0) }
            let end: [UInt8] = [0, 0, 0, 0]
            let head = Array("MM\0*".utf8) + HandmadeContainer.big(8)
            let directories: [[UInt8]] = [
                [0, 2], name, position, end, artist, [0, 2], north, latitude, end, degrees,
            ]
            return head + directories.joined()
        }()

        private static let packet = Array(
            """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF \
            xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" \
            xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:creator><rdf:Seq><rdf:li>SECRET AUTHOR\
            </rdf:li></rdf:Seq></dc:creator></rdf:Description></rdf:RDF></x:xmpmeta>
            """.utf8)

        private static func exif(offset: Int = 0, _ marker: String = "") -> [UInt8] {
            HandmadeContainer.big(offset) + Array(marker.utf8) + tiff
        }

        struct Member: CustomTestStringConvertible, Sendable {
            let testDescription: String
            let file: [UInt8]
            /// Whether `--strip none` carries EXIF or XMP to new pixels.
            var exif = false
            var xmp = false
        }

        // MARK: Items of a still picture

        private static func still(
            _ name: String, exif: Bool = false, xmp: Bool = false,
            _ change: (inout AVIFParts) -> Void
        ) throws -> Member {
            var parts = try AVIFParts("lossy")
            change(&parts)
            return Member(testDescription: name, file: parts.bytes, exif: exif, xmp: xmp)
        }

        private static func cut(_ data: [UInt8]) -> [[UInt8]] {
            [Array(data[..<3]), Array(data[3..<40]), Array(data[40...])]
        }

        private static func stills() throws -> [Member] {
            let secret = Array("SECRET".utf8)
            typealias Part = AVIFParts.Part
            var members: [Member] = []
            for (name, data) in [
                ("", exif()), (" with a marker", exif(offset: 6, "Exif\0\0")),
                (" with a wrong offset", exif(offset: 3)),
                (" with an offset beyond it", exif(offset: 9999)),
                (" with a marker that is not counted", exif("Exif\0\0")),
            ] {
                members.append(
                    try still("EXIF" + name, exif: true) {
                        $0.add("Exif", Part(item: 9, extents: [data]))
                    })
            }
            members += [
                try still("EXIF without its offset") {
                    $0.add("Exif", Part(item: 9, extents: [tiff]))
                },
                try still("hidden EXIF", exif: true) {
                    $0.add("Exif", flags: 1, Part(item: 9, extents: [exif()]))
                },
                try still("two equal EXIFs", exif: true) {
                    for item in 8...9 { $0.add("Exif", Part(item: item, extents: [exif()])) }
                },
                try still("EXIF that describes nothing") {
                    $0.add("Exif", describes: nil, Part(item: 9, extents: [exif()]))
                },
                try still("EXIF of another item") {
                    $0.add("Exif", describes: 7, Part(item: 9, extents: [exif()]))
                },
                try still("EXIF in three extents", exif: true) {
                    $0.add("Exif", Part(item: 9, extents: cut(exif())))
                },
                try still("EXIF in idat", exif: true) {
                    $0.add("Exif", Part(item: 9, extents: [exif()], place: .idat))
                },
                try still("EXIF in three extents of idat", exif: true) {
                    $0.add("Exif", Part(item: 9, extents: cut(exif()), place: .idat))
                },
                try still("EXIF behind the boxes", exif: true) {
                    $0.add("Exif", Part(item: 9, extents: [exif()], place: .end))
                },
                try still("EXIF without a length", exif: true) {
                    $0.add("Exif", Part(item: 9, extents: [exif()], place: .end, isOpenEnded: true))
                },
                try still("EXIF by a base and an index", exif: true) {
                    $0.form = AVIFParts.Form(version: 2, base: 8, index: 4)
                    $0.add("Exif", Part(item: 9, extents: [exif()]))
                },
                try still("short EXIF") {
                    $0.add("Exif", Part(item: 9, extents: [[0, 0, 0, 0] + secret]))
                },
            ]
            for (name, content, encoding, xmp) in [
                ("XMP", "application/rdf+xml", nil, true),
                ("XMP with a parameter", "application/rdf+xml; charset=utf-8", nil, true),
                ("packed XMP", "application/rdf+xml", "deflate", false),
                ("text", "text/plain", nil, false),
            ] as [(String, String, String?, Bool)] {
                for place in [Part.Place.data, .idat] {
                    members.append(
                        try still("\(name) in \(place)", xmp: xmp) {
                            let part = Part(item: 9, extents: cut(packet), place: place)
                            $0.add("mime", content: content, encoding: encoding, part)
                        })
                }
            }
            for type in ["uri ", "Mine", "jpeg"] {
                members.append(
                    try still("item \(type)") {
                        $0.add(type, content: "urn:x", Part(item: 9, extents: [secret]))
                    })
            }
            return try members + boxes(HandmadeContainer.box("xml ", [0, 0, 0, 0] + packet))
        }

        private static func boxes(_ xml: [UInt8]) throws -> [Member] {
            func box(_ type: String) -> [UInt8] { HandmadeContainer.box(type, packet) }
            var members = try ["xml ", "bxml", "ilst", "keys", "uuid"].map { type in
                try still("\(type) in meta") { $0.described = box(type) }
            }
            members += try ["uuid", "udta", "xml ", "bxml", "Exif", "meco", "jumb"].flatMap {
                type in
                [
                    try still("\(type) at the end") { $0.behind = box(type) },
                    try still("\(type) before the end") {
                        $0.behind = box(type) + HandmadeContainer.box("mdat", [1])
                    },
                ]
            }
            members += try ["udes", "uuid", "crtt", "mdft"].map { type in
                try still("property \(type)") { $0.add(property: type, packet, isEssential: false) }
            }
            return members
        }

        // MARK: Sequences

        private static func sequence(
            inTrack: Bool, _ added: [UInt8], end: [UInt8] = []
        ) throws -> [UInt8] {
            try AVIFParts.sequence(
                adding: added, in: inTrack ? ["moov", "trak"] : ["moov"], end: end)
        }

        /// A box `meta` of two items with their data in `idat`, or at `offset` of the file.
        private static func meta(offset: Int?) -> [UInt8] {
            let box = HandmadeContainer.box
            func entry(_ item: UInt8, _ type: String) -> [UInt8] {
                box("infe", [2, 0, 0, 0, 0, item, 0, 0] + Array(type.utf8))
            }
            let mime = "mime\0application/rdf+xml\0"
            func place(_ item: UInt8, _ start: Int, _ count: Int) -> [UInt8] {
                [0, item, 0, offset == nil ? 1 : 0, 0, 0, 0, 1]
                    + HandmadeContainer.big((offset ?? 0) + start) + HandmadeContainer.big(count)
            }
            let exif = exif(offset: 5)
            let zeros = HandmadeContainer.zeros
            let handler = box("hdlr", zeros(8) + Array("pict".utf8) + zeros(13))
            let places = place(1, 0, exif.count) + place(2, exif.count, packet.count)
            return box(
                "meta",
                [0, 0, 0, 0] + handler + box("iloc", [1, 0, 0, 0, 0x44, 0, 0, 2] + places)
                    + box("iinf", [0, 0, 0, 0, 0, 2] + entry(1, "Exif\0") + entry(2, mime))
                    + (offset == nil ? box("idat", exif + packet) : []))
        }

        private static func sequences() throws -> [Member] {
            try [false, true].flatMap { inTrack in
                let place = inTrack ? "track" : "movie"
                func member(_ name: String, _ file: [UInt8], isShown: Bool = false) -> Member {
                    Member(
                        testDescription: "\(name) in a \(place)", file: file, exif: isShown,
                        xmp: isShown)
                }
                let count = try FormatSample.named("sequence", .avif).count
                let offset = count + meta(offset: 0).count + 8
                let items = [
                    member(
                        "items in idat", try sequence(inTrack: inTrack, meta(offset: nil)),
                        isShown: inTrack),
                    member(
                        "items in mdat",
                        try sequence(
                            inTrack: inTrack, meta(offset: offset),
                            end: HandmadeContainer.box("mdat", exif(offset: 5) + packet)),
                        isShown: inTrack),
                    member(
                        "udta",
                        try sequence(inTrack: inTrack, HandmadeContainer.box("udta", packet))),
                ]
                // libavif refuses QuickTime's in a track.
                if inTrack { return items }
                let keys =
                    HandmadeContainer.box("hdlr", HandmadeContainer.zeros(25))
                    + HandmadeContainer.box("ilst", packet)
                let other = HandmadeContainer.box("meta", keys)
                return items + [
                    member("QuickTime's meta", try sequence(inTrack: false, other))
                ]
            }
        }

        private static let members = (try? stills() + sequences()) ?? []

        // MARK: Tests

        private func holds(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
            bytes.indices.contains { bytes[$0...].starts(with: part) }
        }

        private func pixels(_ file: [UInt8]) throws -> [SIMD4<UInt16>] {
            var recipe = Recipe(encoding: .png)
            recipe.animation = .first
            return try ShownPixels(png: stored(file, recipe).bytes).pixels
        }

        @Test func membersAreMade() throws {
            #expect(try Self.stills().count + Self.sequences().count == Self.members.count)
        }

        /// The file as a recipe keeps it, without the secret of the tests.
        static func kept(_ file: [UInt8], by recipe: Recipe) throws -> [UInt8] {
            let made = try stored(file, recipe)
            #expect(made.image.format == .avif && made.image.isKeptData)
            #expect(!JPEGTests.contains(made.bytes, "SECRET"))
            #expect(made.bytes.count <= file.count)
            return made.bytes
        }

        @Test(arguments: members, [Recipe.Stripping.safe, .all])
        func keptDataHasNone(member: Member, stripping: Recipe.Stripping) throws {
            let recipe = Recipe(stripping, quality: 100)
            let made = try Self.kept(member.file, by: recipe)
            #expect(!holds(made, [0x88, 0x25, 0, 4]))
            #expect(try pixels(made) == pixels(member.file))
            #expect(structureRefusal(made) == nil)
        }

        @Test(arguments: members)
        func strippingNoneCarriesTheMetadataOfThePicture(member: Member) throws {
            let found = try member.file.withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                return try #require(header.codec).open(bytes, header, CodecLimits()).metadata
            }
            #expect(found[.exif] == (member.exif ? Self.tiff : nil))
            #expect(found[.xmp] == (member.xmp ? Self.packet : nil))
        }

        /// A wrong offset of EXIF is repaired, since newer versions of libavif refuse the file.
        @Test(arguments: members)
        func strippingNoneKeepsMetadataInKeptData(member: Member) throws {
            let made = try stored(member.file, Recipe(.none, quality: 100))
            #expect(made.image.format == .avif)
            #expect(made.bytes.count == member.file.count)
            guard member.exif else { return }
            #expect(holds(made.bytes, Self.tiff.suffix(60)))
            let offset = member.testDescription.contains("marker") ? 6 : 0
            let begin = Self.exif(offset: offset, offset == 6 ? "Exif\0\0" : "").prefix(12)
            let isCut = member.testDescription.contains("three extents")
            #expect(isCut || holds(made.bytes, Array(begin)))
        }

        /// Items that claim the picture's bytes, or boxes, destroy neither.
        @Test func picturesAndBoxesAreNotOverwritten() throws {
            let parts = try AVIFParts("lossy")
            let plain = parts.bytes
            for (start, count) in [(0, plain.count), (0, 60), (plain.count - 100, 100)] {
                var parts = parts
                parts.add("Exif", AVIFParts.Part(item: 9, extents: [[1]]))
                parts.behind =
                    HandmadeContainer.box("uuid", [UInt8](repeating: 7, count: 40))
                    + HandmadeContainer.box("mdat", [])
                var file = parts.bytes
                let grown = file.count - plain.count - 58
                let entry =
                    try #require(
                        file.indices.first { file[$0...].starts(with: "iloc".utf8) }) + 12 + 16 + 8
                let place = HandmadeContainer.big(start == 0 ? 0 : start + grown)
                file.replaceSubrange(
                    entry..<entry + 8, with: place + HandmadeContainer.big(count + grown))
                let made = try stored(file, Recipe(quality: 100)).bytes
                #expect(try pixels(made) == pixels(plain))
                #expect(made.count == file.count)
                #expect(JPEGTests.contains(made, "uuid") == false)
            }
        }
    }
#endif

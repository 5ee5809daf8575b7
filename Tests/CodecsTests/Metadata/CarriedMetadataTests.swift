import PrefetchModel
import Testing

@testable import Codecs

/// EXIF, XMP and IPTC in files of new pixels.
@Suite(.serialized, .timeLimit(.minutes(15))) struct CarriedMetadataTests {
    /// A packet with an orientation that new pixels have applied.
    private static let packet = Array(
        """
        <?xpacket begin='\u{FEFF}'?><x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:Description \
        tiff:Orientation="6"><tiff:Orientation>6</tiff:Orientation>\
        <dc:rights>RIGHTS-OF-SOMEBODY</dc:rights></rdf:Description></x:xmpmeta>
        """.utf8)
    private static let uprightPacket = XMPPacket.upright(packet)
    private static let iptc: [UInt8] = [0x1C, 2, 0x74, 0, 15] + Array("(c) SOMEBODY-II".utf8)

    private static let xmpSegment = JPEGFile.segment(
        0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + packet)
    private static let extendedSegment = JPEGFile.segment(
        0xE1,
        Array("http://ns.adobe.com/xmp/extension/\0".utf8) + [UInt8](repeating: 65, count: 40)
            + Array("<extended/>".utf8))

    /// Resources in two segments, the first with a name of odd length; the cut is inside IPTC's.
    private static let iptcSegments: [UInt8] = {
        let name = Array("Photoshop 3.0\0".utf8)
        let resources =
            Array("8BIM".utf8) + [3, 0xED, 3, 65, 66, 67, 0, 0, 0, 3, 1, 2, 3, 0]
            + Array("8BIM\u{4}\u{4}".utf8) + [0, 0] + UInt32(iptc.count).bigEndianBytes + iptc
        return JPEGFile.segment(0xED, name + resources.prefix(45))
            + JPEGFile.segment(0xED, name + resources.dropFirst(45))
    }()

    private struct Source: CustomStringConvertible {
        let description: String
        let bytes: [UInt8]
        var kinds: Set<CarriedMetadata.MetadataKind> = [.xmp]
        var isAnimated = false
    }

    private static func sources() throws -> [Source] {
        let photograph = try EncodingTests.photograph()
        let jpeg = try stored(photograph, Recipe(encoding: .jpeg)).bytes
        let text = Array("XML:com.adobe.xmp\0".utf8)
        let packed = PNGFile.profileChunk(packet)[13...].dropLast(4)
        let plainText = PNGFile.chunk(.iTXt, text + [0, 0] + Array("en\0XMP\0".utf8) + packet)
        let packedText = PNGFile.chunk(.iTXt, text + [1, 0, 0, 0] + packed)
        let segments =
            JPEGTests.exif(orientation: 6) + xmpSegment + extendedSegment + iptcSegments
        var sources = [
            Source(
                description: "JPEG", bytes: JPEGTests.inserting(segments, into: jpeg),
                kinds: [.exif, .xmp, .extendedXMP, .iptc]),
            Source(
                description: "PNG", bytes: try PNGTests.inserting(plainText, into: photograph)),
            Source(
                description: "PNG, packed",
                bytes: try PNGTests.inserting(packedText, into: photograph)),
        ]
        if EncodedImageFormat.avif.isMade {
            let avif = try stored(sources[0].bytes, Recipe(.none, encoding: .avif)).bytes
            sources.append(Source(description: "AVIF", bytes: avif, kinds: [.exif, .xmp]))
        }
        if EncodedImageFormat.webp.isMade {
            let still = try stored(photograph, Recipe(encoding: .webp)).bytes
            let animation = try FormatSample.file("animation", .webp)
            let chunk = CompanionSample.chunk("XMP ", packet)
            sources += [
                Source(
                    description: "WebP",
                    bytes: CompanionSample.webP(
                        still, with: chunk, flag: 4, width: 160, height: 120)),
                Source(
                    description: "animated WebP",
                    bytes: CompanionSample.webP(animation, with: chunk, flag: 4), isAnimated: true),
            ]
        }
        if CodecLibraries.decodes(.gif) {
            let trailer: [UInt8] = [1] + (0...255).reversed() + [0]
            let raw = [0x21, 0xFF, 0x0B] + Array("XMP DataXMP".utf8) + packet + trailer
            let parts = CompanionSample.extensionBlock("XMP DataXMP", packet)
            for name in ["plain", "animation"] {
                let gif = try FormatSample.file(name, .gif)
                sources += [raw, parts].map {
                    Source(
                        description: "GIF", bytes: CompanionSample.gif(gif, with: $0),
                        isAnimated: name == "animation")
                }
            }
        }
        return sources
    }

    private func metadata(_ bytes: [UInt8]) throws -> CarriedMetadata {
        try bytes.withUnsafeBytes { bytes in
            let header = try header(of: bytes)
            return try #require(header.codec).open(bytes, header, CodecLimits()).metadata
        }
    }

    /// Recipes with new pixels: to each format, and with a size.
    private static let recipes: [Recipe] = {
        let formats = EncodedImageFormat.allCases.filter(\.isMade)
        return [false, true].flatMap { isResized in
            (formats.compactMap { Recipe.Encoding(rawValue: $0.rawValue) } + [.same, .auto]).map {
                var recipe = Recipe(encoding: $0)
                if isResized { recipe.transformations = [.resize(.fit(width: 12, height: 12))] }
                return recipe
            }
        }
    }()

    private static func room(of format: ImageFormat) -> MetadataRoom {
        format == .gif ? MetadataRoom(exif: 0) : format.codec?.encoder?.room ?? MetadataRoom()
    }

    @Test(arguments: Recipe.Stripping.allCases)
    func newFilesHaveItWithNoneOnly(stripping: Recipe.Stripping) throws {
        for source in try Self.sources() {
            for recipe in Self.recipes {
                var recipe = recipe
                recipe.stripping = stripping
                let result = try stored(source.bytes, recipe)
                let name = "\(source) to \(result.image.format): \(recipe.canonicalText)"
                let text = try warning(source.bytes, recipe)?.text ?? ""
                guard stripping == .none else {
                    #expect(!JPEGTests.contains(result.bytes, "SOMEBODY"), "\(name)")
                    #expect(!JPEGTests.contains(result.bytes, "GPS-SECRET"), "\(name)")
                    #expect(text == "" || text.hasPrefix("only the first of "), "\(name)")
                    continue
                }
                let made = try metadata(result.bytes)
                // Kept data has the packet as it was, packed or not.
                let isKept =
                    result.image.format.rawValue == imageFormat(source.bytes)
                    && recipe.transformations.isEmpty
                let packets = [Self.uprightPacket] + (isKept ? [Self.packet] : [])
                #expect(made[.xmp].map(packets.contains) == true, "\(name)")
                let room = Self.room(of: result.image.format)
                for kind in source.kinds where !isKept {
                    let hasRoom = room[kind] > 0
                    #expect((made[kind] != nil) == hasRoom, "\(name): \(kind)")
                    #expect(
                        text.split(separator: "; ").contains {
                            $0.hasPrefix("left out \(kind.rawValue),")
                        } == !hasRoom, "\(name): \(text)")
                }
                if made[.exif] != nil, !isKept {
                    #expect(JPEGTests.contains(result.bytes, "GPS-SECRET"), "\(name)")
                    #expect(try imageHeader(result.bytes).orientation == 1, "\(name)")
                }
                if made[.iptc] != nil { #expect(made[.iptc] == Self.iptc, "\(name)") }
            }
        }
    }

    private func imageFormat(_ bytes: [UInt8]) -> String? {
        bytes.withUnsafeBytes { sniffed($0)?.rawValue }
    }

    /// Orientation, videos and gain maps of XMP describe the new pixels.
    @Test func propertiesOfXMPAreThoseOfThePixels() {
        let texts = [
            ("<x tiff:Orientation=\"6\"/>", "<x tiff:Orientation=\"1\"/>"),
            ("<x tiff:Orientation = '8'/>", "<x tiff:Orientation = '1'/>"),
            ("<tiff:Orientation>3</tiff:Orientation>", "<tiff:Orientation>1</tiff:Orientation>"),
            ("<tiff:Orientation>1</tiff:Orientation>", "<tiff:Orientation>1</tiff:Orientation>"),
            ("<x tiff:Orientation", "<x tiff:Orientation"), ("6", "6"), ("", ""),
            ("<x GCamera:MotionPhoto='1'", "<x GCamera:MotionPhoto='0'"),
            ("<x GCamera:MotionPhotoVersion='1'", "<x GCamera:MotionPhotoVersion='1'"),
            ("<x hdrgm:Version=\"1.0\"", "<x hdrgm:Version=\"0.0\""),
            ("<GCamera:MicroVideo>1<", "<GCamera:MicroVideo>0<"),
        ]
        for (before, after) in texts {
            #expect(XMPPacket.upright(Array(before.utf8)) == Array(after.utf8))
        }
    }

    @Test func leavesOutMalformedAndTooLongXMP() throws {
        let jpeg = Samples.baselineJPEG
        let name = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
        for packet in [[0x3C, 0xFF, 0x3E], [0x3C, 0, 0x3E], Array("no markup".utf8), []]
            as [[UInt8]]
        {
            let source = JPEGTests.inserting(JPEGFile.segment(0xE1, name + packet), into: jpeg)
            let recipe = Recipe(.none, encoding: .png)
            #expect(try metadata(stored(source, recipe).bytes)[.xmp] == nil)
            #expect(try warning(source, recipe)?.text == "left out a malformed item: XMP")
        }
        let long = Array("<x>".utf8) + [UInt8](repeating: 0x20, count: 70_000)
        let text = PNGFile.chunk(.iTXt, Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + long)
        let source = try PNGTests.inserting(text, into: EncodingTests.photograph())
        let recipe = Recipe(.none, encoding: .jpeg)
        #expect(try metadata(stored(source, recipe).bytes)[.xmp] == nil)
        #expect(try warning(source, recipe)?.text == "left out XMP, for which jpeg has no room")
        guard EncodedImageFormat.webp.isMade else { return }
        #expect(try metadata(stored(source, Recipe(.none, encoding: .webp)).bytes)[.xmp] == long)
    }

    /// No resource may lead beyond the data.
    @Test func readsDamagedResourcesOfPhotoshop() throws {
        let segments = Self.iptcSegments
        for place in segments.indices.dropFirst(4) {
            for byte in [0, 0x7F, 0xFF] as [UInt8] {
                var damaged = segments
                damaged[place] = byte
                _ = try? metadata(JPEGTests.inserting(damaged, into: Samples.baselineJPEG))
            }
        }
    }
}

#if WebP
    internal import PrefetchModel

    /// The chunks of a WebP file (RFC 9649, section 2), found without decoding.
    ///
    /// The file is `RIFF`, its length, `WEBP`, then chunks. A chunk is a type, a little-endian
    /// length, and data padded to an even length.
    ///
    /// - A simple file has one chunk, `VP8 ` (lossy) or `VP8L` (lossless).
    /// - An extended file begins with `VP8X` (flags and canvas size). It may have `ICCP`, `ALPH`,
    ///   `EXIF` and `XMP `; an animation has `ANIM`, and an `ANMF` per frame.
    ///
    /// Bytes after the length in `RIFF` are not part of the file.
    struct WebPFile {
        let source: UnsafeRawBufferPointer
        struct RIFFChunk {
            /// Four letters, the first in the most significant byte.
            let type: UInt32
            /// The whole chunk, with type, length and padding.
            let range: Range<Int>
            let data: Range<Int>

            /// Whether it is a picture, or belongs to one or to an animation.
            var isPicture: Bool { [.VP8, .VP8L, .ALPH, .ANIM, .ANMF].contains(type) }
        }

        /// A frame of an animation, inside the canvas.
        struct WebPFrame {
            let control: FrameControl
            /// The frame's chunks up to the end of `VP8 ` or `VP8L`.
            let data: Range<Int>
        }

        /// Flags of `VP8X`.
        private static let animationFlag: UInt8 = 0x02
        private static let alphaFlag: UInt8 = 0x10
        private static let profileFlag: UInt8 = 0x20
        private static let exifFlag: UInt8 = 0x08
        private static let xmpFlag: UInt8 = 0x04
        static let riffBytes = 12

        /// In file order; incomplete if the data ends early.
        private(set) var chunks: [RIFFChunk] = []
        private(set) var frames: [WebPFrame] = []
        private(set) var orientation = ExifOrientation.upright
        /// The end of the file according to its own length.
        let end: Int
        private var exifData: Range<Int>?
        /// The first error in the structure of an animation.
        private var frameError: CodecError?
        private var hasTooManyChunks = false
        /// Whether the data ends early.
        private(set) var isCut = false

        /// The end of a still picture's data. libwebp reads on as far as it is given bytes, so
        /// later metadata could stand in for missing pixels.
        var pictureEnd: Int {
            chunks.first { $0.type == .VP8 || $0.type == .VP8L }?.data.upperBound ?? 0
        }

        var isExtended: Bool { chunks.first?.type == .VP8X }

        /// Reads the available chunks.
        ///
        /// - Throws: `corrupt` if the data ends before the first chunk.
        init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
            self.source = source
            guard source.count >= WebPFile.riffBytes + 8 else { throw .cutHeader }
            end = 8 + source.littleEndian32(at: 4)
            let most = min(end, source.count)
            isCut = end > source.count
            var offset = WebPFile.riffBytes
            while most - offset >= 8 {
                let length = source.littleEndian32(at: offset + 4)
                guard length <= most - offset - 8 else {
                    isCut = true
                    break
                }
                guard chunks.count < CodecLimits.maximumPieces else {
                    hasTooManyChunks = true
                    break
                }
                let data = offset + 8..<offset + 8 + length
                // The last chunk may lack its padding.
                let chunk = RIFFChunk(
                    type: UInt32(source.bigEndian32(at: offset)),
                    range: offset..<min(data.upperBound + length % 2, most), data: data)
                chunks.append(chunk)
                offset = chunk.range.upperBound
                note(chunk)
            }
        }

        private mutating func note(_ chunk: RIFFChunk) {
            switch chunk.type {
            case .EXIF where isExtended && exifData == nil:
                // Some writers prefix the identifier of a JPEG segment.
                let skipped = source.holds("Exif\0\0", at: chunk.data.lowerBound) ? 6 : 0
                guard chunk.data.count >= skipped else { return }
                let data = chunk.data.lowerBound + skipped..<chunk.data.upperBound
                exifData = data
                orientation = ExifOrientation.value(inTIFF: .init(rebasing: source[data]))
            case .ANMF where isExtended:
                do throws(CodecError) {
                    frames.append(try frame(chunk))
                } catch {
                    frameError = frameError ?? error
                }
            default: break
            }
        }

        /// Reads `ANMF`: x and y divided by two, width and height minus one, 24 bits each;
        /// duration, flags, then the frame's own chunks.
        private func frame(_ chunk: RIFFChunk) throws(CodecError) -> WebPFrame {
            let start = chunk.data.lowerBound
            guard chunks.contains(where: { $0.type == .ANIM }), chunk.data.count >= 16,
                let canvas = chunks.first?.data, canvas.count >= 10
            else { throw .broken("a frame without its description") }
            let flags = source[start + 15]
            let control = FrameControl(
                x: 2 * source.littleEndian24(at: start),
                y: 2 * source.littleEndian24(at: start + 3),
                width: 1 + source.littleEndian24(at: start + 6),
                height: 1 + source.littleEndian24(at: start + 9),
                delay: FrameDelay(
                    numerator: source.littleEndian24(at: start + 12), denominator: 1_000),
                disposal: flags & 1 == 0 ? .none : .background, isBlended: flags & 2 == 0)
            let data = try picture(in: start + 16..<chunk.data.upperBound)
            guard control.x + control.width <= 1 + source.littleEndian24(at: canvas.lowerBound + 4),
                control.y + control.height <= 1 + source.littleEndian24(at: canvas.lowerBound + 7)
            else { throw .broken("a frame beyond the canvas") }
            return WebPFrame(control: control, data: data)
        }

        /// The number of plays; 0 for no end. It follows the background in `ANIM`.
        var plays: Int {
            guard let data = chunks.first(where: { $0.type == .ANIM })?.data, data.count >= 6 else {
                return 0
            }
            return source.littleEndian16(at: data.lowerBound + 4)
        }

        /// Returns the range up to the end of a frame's picture. libwebp's decoder reads as far as
        /// it is given bytes, for any length of the chunk; animation players do not.
        ///
        /// - Throws: `corrupt` if the frame has no complete picture, or a chunk beyond its end,
        ///   which libwebp's demultiplexer refuses.
        private func picture(in frame: Range<Int>) throws(CodecError) -> Range<Int> {
            var offset = frame.lowerBound
            var picture: Range<Int>?
            while frame.upperBound - offset >= 8 {
                let length = source.littleEndian32(at: offset + 4)
                let end = offset + 8 + length
                guard end <= frame.upperBound else {
                    picture = nil
                    break
                }
                let type = UInt32(source.bigEndian32(at: offset))
                if type == .VP8 || type == .VP8L { picture = picture ?? frame.lowerBound..<end }
                offset = end + length % 2
            }
            guard let picture else { throw .broken("a frame without a whole picture") }
            return picture
        }

        /// Checks that the chunks describe a file that can be decoded.
        ///
        /// - Throws: `corrupt`; `limitExceeded` for too many chunks.
        func check() throws(CodecError) {
            guard !isCut else { throw .cutImage }
            guard !hasTooManyChunks else {
                throw .limitExceeded("more than \(CodecLimits.maximumPieces) chunks")
            }
            if let frameError { throw frameError }
        }

        /// The TIFF structure of the file's EXIF; nil if it has none.
        var exif: [UInt8]? { exifData.map { [UInt8](source[$0]) } }

        /// The ICC profile; nil if it is missing, incomplete or not for RGB.
        var profile: [UInt8]? {
            guard isExtended, let chunk = chunks.first(where: { $0.type == .ICCP }),
                chunk.data.count <= CodecLimits.maximumMetadataBytes
            else { return nil }
            let profile = [UInt8](source[chunk.data])
            return ICCProfile.fits(profile, channels: 3) ? profile : nil
        }

        /// Whether `VP8X` contradicts the chunks, so libwebp's demultiplexer refuses the file
        /// or drops its alpha, while its decoder shows it.
        private var contradictsChunks: Bool {
            guard isExtended, let start = chunks.first?.data.lowerBound else { return false }
            let flags = source[start]
            let known =
                WebPFile.alphaFlag | WebPFile.profileFlag | WebPFile.exifFlag | WebPFile.xmpFlag
                | WebPFile.animationFlag
            let shown = pictures
            let isApart =
                !isAnimation && shown.count == 2
                && shown[0].range.upperBound < shown[1].range.lowerBound
            return flags & ~known != 0 || hasAlpha && flags & WebPFile.alphaFlag == 0
                || shown.count < chunks.filter(\.isPicture).count || isApart
        }

        /// The first XMP.
        var xmp: [UInt8]? {
            guard isExtended else { return nil }
            return chunks.first { $0.type == .XMP }.map { [UInt8](source[$0.data]) }
        }

        var hasManifest: Bool { chunks.contains { $0.type == .C2PA } }

        /// Whether there are chunks that no encoding of the pixels writes: unknown ones. A manifest
        /// fits no other pixels.
        var hasOtherMetadata: Bool {
            let known: [UInt32] = [.VP8X, .ICCP, .EXIF, .XMP, .C2PA]
            return chunks.contains { !$0.isPicture && !known.contains($0.type) }
        }

        /// The data of a lossy picture that is not a frame; nil without a whole one.
        var lossyData: Range<Int>? {
            let picture = chunks.first { [.VP8, .VP8L, .ANMF].contains($0.type) }
            return picture.flatMap { $0.type == .VP8 ? $0.data : nil }
        }

        private var isAnimation: Bool {
            guard isExtended, let start = chunks.first?.data.lowerBound else { return false }
            return source[start] & WebPFile.animationFlag != 0
        }

        /// The chunks that libwebp decodes: of an animation its frames, else the first picture with
        /// the alpha before it.
        private var pictures: [RIFFChunk] {
            if isAnimation { return chunks.filter { [.ANIM, .ANMF].contains($0.type) } }
            guard let picture = chunks.first(where: { $0.type == .VP8 || $0.type == .VP8L }) else {
                return []
            }
            let alpha = chunks.last {
                $0.type == .ALPH && $0.data.upperBound <= picture.data.lowerBound
            }
            return (picture.type == .VP8 ? [alpha].compactMap(\.self) : []) + [picture]
        }

        private var hasAlpha: Bool {
            func isTransparent(_ type: UInt32, at start: Int) -> Bool {
                // RFC 9649, 3.4: a signature, twice 14 bits of size, then the bit for alpha.
                type == .ALPH
                    || type == .VP8L && start + 4 < source.count && source[start + 4] & 0x10 != 0
            }
            return pictures.contains { isTransparent($0.type, at: $0.data.lowerBound) }
                || isAnimation
                    && frames.contains {
                        isTransparent(
                            UInt32(source.bigEndian32(at: $0.data.lowerBound)),
                            at: $0.data.lowerBound + 8)
                    }
        }

        /// Returns the file's own pictures without the stripped metadata. An orientation stays as
        /// the only entry of its EXIF, and a kept profile is the first one. Unknown chunks are
        /// removed, and flags and order corrected (RFC 9649, section 2.7). If all metadata is kept,
        /// `malformed` chunks are left out.
        func stripped(
            _ stripping: Recipe.Stripping, without malformed: [RIFFChunk]
        ) -> [ImagePiece] {
            let keepsAll = stripping == .none
            if keepsAll, malformed.isEmpty, !contradictsChunks {
                return [.source(0..<source.count)]
            }
            let profile = stripping == .all ? nil : profile
            var keepsProfile = profile.map { keepsAll || !ICCProfile.isSRGB($0) } ?? false
            let left = Set(malformed.map(\.range.lowerBound))
            let isExifKept =
                keepsAll
                && chunks.contains { $0.type == .EXIF && !left.contains($0.range.lowerBound) }
            var keepsOrientation = !isExifKept && orientation != ExifOrientation.upright
            var flags: UInt8 = keepsOrientation || isExifKept ? WebPFile.exifFlag : 0
            if keepsProfile { flags |= WebPFile.profileFlag }
            if hasAlpha { flags |= WebPFile.alphaFlag }
            let shown = Set(pictures.map(\.range.lowerBound))
            var (head, body, tail) = ([ImagePiece](), [ImagePiece](), [ImagePiece]())
            for chunk in chunks {
                switch chunk.type {
                // Only the first `VP8X` has a meaning.
                case .VP8X where head.isEmpty && !chunk.data.isEmpty:
                    let start = chunk.data.lowerBound
                    var kept = WebPFile.alphaFlag | WebPFile.animationFlag
                    if keepsAll { kept |= WebPFile.xmpFlag }
                    head.append(source: chunk.range.lowerBound..<start)
                    head.append(.made([source[start] & kept | flags]))
                    head.append(source: start + 1..<chunk.range.upperBound)
                case .ICCP where keepsProfile:
                    head.append(source: chunk.range)
                    keepsProfile = false
                case _ where chunk.isPicture:
                    if shown.contains(chunk.range.lowerBound) { body.append(source: chunk.range) }
                case .EXIF where keepsOrientation:
                    keepsOrientation = false
                    let tiff = ExifOrientation.minimalTIFF(orientation)
                    if chunk.data.count <= tiff.count, !left.contains(chunk.range.lowerBound) {
                        tail.append(source: chunk.range)
                    } else {
                        tail.append(.made(WebPFile.chunk("EXIF", tiff)))
                    }
                case .VP8X, .ICCP: break
                case _ where left.contains(chunk.range.lowerBound): break
                default: if keepsAll { tail.append(source: chunk.range) }
                }
            }
            return WebPFile.file(head + body + tail)
        }

        /// The chunks of metadata that break their formats, in order: EXIF without a whole
        /// directory, a damaged profile, and any but the first of them and of XMP.
        var malformedChunks: [RIFFChunk] {
            var seen: Set<UInt32> = []
            return chunks.filter { chunk in
                switch chunk.type {
                case .ICCP where seen.insert(chunk.type).inserted:
                    profile == nil
                case .EXIF where seen.insert(chunk.type).inserted:
                    !ExifOrientation.isWhole(tiff: .init(rebasing: source[exifData ?? chunk.data]))
                case .XMP where seen.insert(chunk.type).inserted: false
                case .ICCP, .EXIF, .XMP: true
                default: false
                }
            }
        }

        /// The name of a chunk of metadata: `ICCP`.
        static func name(_ chunk: RIFFChunk) -> String {
            chunk.type == .ICCP ? "ICCP" : chunk.type == .EXIF ? "EXIF" : "XMP"
        }

        /// Returns a file that had no metadata, with this metadata added.
        func extended(
            by metadata: WebPEncoding.WebPMetadata, width: Int, height: Int, hasAlpha: Bool
        ) -> [ImagePiece] {
            var flags = hasAlpha ? WebPFile.alphaFlag : 0
            if metadata.profile != nil { flags |= WebPFile.profileFlag }
            if metadata.carried[.exif] != nil { flags |= WebPFile.exifFlag }
            if metadata.carried[.xmp] != nil { flags |= WebPFile.xmpFlag }
            if !frames.isEmpty { flags |= WebPFile.animationFlag }
            let size = WebPFile.littleEndian(width - 1, 3) + WebPFile.littleEndian(height - 1, 3)
            var pieces: [ImagePiece] = [.made(WebPFile.chunk("VP8X", [flags, 0, 0, 0] + size))]
            if let profile = metadata.profile {
                pieces.append(.made(WebPFile.chunk("ICCP", profile)))
            }
            for chunk in chunks where chunk.type != .VP8X { pieces.append(source: chunk.range) }
            for (kind, type) in [(CarriedMetadata.MetadataKind.exif, "EXIF"), (.xmp, "XMP ")] {
                guard let data = metadata.carried[kind] else { continue }
                pieces.append(.made(WebPFile.chunk(type, data)))
            }
            return WebPFile.file(pieces)
        }

        private static func file(_ chunks: [ImagePiece]) -> [ImagePiece] {
            let length = littleEndian(4 + chunks.byteCount)
            return [.made(Array("RIFF".utf8) + length + Array("WEBP".utf8))] + chunks
        }

        private static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
            let fill: [UInt8] = data.count % 2 == 0 ? [] : [0]
            return Array(type.utf8) + littleEndian(data.count) + data + fill
        }

        private static func littleEndian(_ value: Int, _ bytes: Int = 4) -> [UInt8] {
            Array(value.littleEndianBytes.prefix(bytes))
        }
    }

    extension UInt32 {
        fileprivate static let VP8: UInt32 = 0x5650_3820
        fileprivate static let VP8L: UInt32 = 0x5650_384C
        fileprivate static let VP8X: UInt32 = 0x5650_3858
        fileprivate static let ALPH: UInt32 = 0x414C_5048
        fileprivate static let ANIM: UInt32 = 0x414E_494D
        fileprivate static let ANMF: UInt32 = 0x414E_4D46
        fileprivate static let ICCP: UInt32 = 0x4943_4350
        fileprivate static let EXIF: UInt32 = 0x4558_4946
        fileprivate static let XMP: UInt32 = 0x584D_5020
        /// The manifest of C2PA.
        fileprivate static let C2PA: UInt32 = 0x4332_5041
    }
#endif

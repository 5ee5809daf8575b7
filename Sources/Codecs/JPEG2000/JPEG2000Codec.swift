#if JPEG2000
    internal import CInterruption
    internal import COpenJPEG
    internal import PrefetchModel

    extension ImageCodec {
        /// JPEG 2000 by openjpeg. `same` keeps the file, and results of other pixels are PNGs.
        static let jpeg2000: ImageCodec? = ImageCodec(
            decoder: { JPEG2000Source.library.decoder }, same: .jpeg2000,
            source: JPEG2000Source.self)
    }

    /// A file in memory, its header read.
    struct JPEG2000Source: SandboxedSource {
        static let library = SandboxedLibrary(
            name: "openjpeg", format: .jpeg2000,
            package: "libopenjp2-7", calls: copenjpeg_library)

        let file: SandboxedFile

        init(_ file: SandboxedFile) {
            self.file = file
        }

        /// Boxes of metadata (ISO/IEC 15444-1, I.7, and 19566-5).
        private static let hidden: Set<UInt32> = Box.codes("uuid uinf jumb").union([
            Box.code("xml ")
        ])
        /// Boxes with offsets in the file (ISO/IEC 15444-2, M.11.3).
        private static let fragments = Box.codes("ftbl cref dtbl")

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            let isWhole =
                recipe.stripping == .none || JPEG2000Container.isBare(source)
                || boxes.contains { JPEG2000Source.fragments.contains($0.type) }
            return isWhole
                ? whole : Array(source) { !JPEG2000Source.hidden.contains($0.type) }
        }

        private var boxes: [Box] {
            JPEG2000Container.isBare(source) ? [] : BoxWalk.boxes(of: source)
        }

        /// The identifiers of boxes with EXIF, XMP and IPTC.
        private static let identifiers: [(CarriedMetadata.MetadataKind, [UInt8])] = [
            (.exif, Array("JpgTiffExif->JP2".utf8)),
            (
                .xmp,
                [
                    0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8,
                    0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
                ]
            ),
            (
                .iptc,
                [
                    0x33, 0xC7, 0xA4, 0xD2, 0xB8, 0x1D, 0x47, 0x23,
                    0xA0, 0xBA, 0xF1, 0xA3, 0xE0, 0x97, 0xAD, 0x38,
                ]
            ),
        ]

        var metadata: CarriedMetadata {
            var metadata = CarriedMetadata.none
            for box in boxes where box.isA("uuid") {
                for (kind, identifier) in JPEG2000Source.identifiers
                where source[box.payload].starts(with: identifier) {
                    metadata[kind] = [UInt8](source[box.payload.dropFirst(identifier.count)])
                }
            }
            return metadata
        }

        var companions: Set<Companion> {
            boxes.contains { $0.isA("jumb") } ? [.manifest] : []
        }
    }
#else
    extension ImageCodec {
        static let jpeg2000: ImageCodec? = nil
    }
#endif

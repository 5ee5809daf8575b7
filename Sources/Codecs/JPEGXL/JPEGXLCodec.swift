#if JPEGXL
    internal import CInterruption
    internal import CJXL
    internal import PrefetchModel

    extension ImageCodec {
        /// JPEG XL by libjxl. `same` keeps the file, and results of other pixels are WebPs, which
        /// have its transparency.
        static let jpegXL: ImageCodec? = ImageCodec(
            decoder: { JPEGXLSource.library.decoder }, same: .jpegXL, source: JPEGXLSource.self)
    }

    /// A file in memory, its header read.
    struct JPEGXLSource: SandboxedSource {
        static let library = SandboxedLibrary(
            name: "libjxl", format: .jpegXL,
            package: "libjxl0.11, of Debian 12 libjxl0.7", calls: cjxl_library)

        let file: SandboxedFile

        init(_ file: SandboxedFile) {
            self.file = file
        }

        static var hasFrames: Bool { true }

        /// The boxes of signature, pictures, index and gain map (ISO/IEC 18181-2, 21496-1). The
        /// data that restores a JPEG is left out, since it has that file's metadata.
        private static let shown =
            Box.codes("ftyp jxll jxlc jxlp jxli jhgm").union([Box.code("JXL ")])

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            recipe.stripping == .none || JPEGXLContainer.isBare(source)
                ? whole : Array(source) { JPEGXLSource.shown.contains($0.type) }
        }

        var metadata: CarriedMetadata {
            var metadata = CarriedMetadata.none
            for box in boxes {
                switch box.type {
                case Box.code("Exif"):
                    // Behind the offset of the TIFF structure.
                    let offset = source.number(at: box.payload.lowerBound, bytes: 4) ?? 0
                    metadata[.exif] = [UInt8](source[box.payload.dropFirst(4).dropFirst(offset)])
                case Box.code("xml "): metadata[.xmp] = [UInt8](source[box.payload])
                case Box.code("brob"): note.note(ImageWarning(text: "left out packed metadata"))
                default: break
                }
            }
            return metadata
        }

        var companions: Set<Companion> {
            var found: Set<Companion> = []
            if boxes.contains(where: { $0.isA("jumb") }) { found.insert(.manifest) }
            if boxes.contains(where: { $0.isA("jhgm") }) { found.insert(.gainMap) }
            return found
        }

        private var boxes: [Box] { JPEGXLContainer.isBare(source) ? [] : BoxWalk.boxes(of: source) }
    }
#else
    extension ImageCodec {
        static let jpegXL: ImageCodec? = nil
    }
#endif

#if HEIF
    internal import CHEIF
    internal import CInterruption
    internal import PrefetchModel

    extension ImageCodec {
        /// HEIF of HEVC (HEIC) by libheif. `same` keeps the file, and results of other pixels are
        /// JPEGs: the pictures are photographs.
        static let heif: ImageCodec? = ImageCodec(
            decoder: { HEIFSource.library.decoder }, same: .heif, source: HEIFSource.self)
    }

    /// A file in memory, its header read.
    struct HEIFSource: SandboxedSource {
        static let library = SandboxedLibrary(
            name: "libheif", format: .heif,
            package: "libheif1", calls: cheif_library)

        let file: SandboxedFile
        private let places: HEIFMetadata

        init(_ file: SandboxedFile) throws(CodecError) {
            self.file = file
            places = try HEIFMetadata(file.source)
        }

        /// libheif applies the turns that the file states. Readers of a kept file apply them, too.
        static func header(
            of source: UnsafeRawBufferPointer, _ picture: ccodec_header
        ) -> ImageHeader {
            plainHeader(
                of: source, picture, orientation: HEIFContainer.orientation(in: source),
                isTurned: true)
        }

        var rasterOrientation: Int { ExifOrientation.upright }

        var metadata: CarriedMetadata { places.carried(turnedTo: header.orientation) }

        var companions: Set<Companion> { places.companions }

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            places.pieces(keptBy: recipe.stripping, note)
        }
    }
#else
    extension ImageCodec {
        static let heif: ImageCodec? = nil
    }
#endif

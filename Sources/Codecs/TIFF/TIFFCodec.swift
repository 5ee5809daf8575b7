#if TIFF
    internal import CInterruption
    internal import CTIFF
    internal import PrefetchModel

    extension ImageCodec {
        /// TIFF by libtiff. `same` keeps the file, and results of other pixels are PNGs.
        static let tiff: ImageCodec? = ImageCodec(
            decoder: { TIFFSource.library.decoder }, same: .tiff, source: TIFFSource.self)
    }

    /// A file in memory, its header read.
    struct TIFFSource: SandboxedSource {
        static let library = SandboxedLibrary(
            name: "libtiff", format: .tiff,
            files: ["libtiff.so.6", "libtiff.so.5"],
            package: "libtiff6", calls: ctiff_library)

        let source: UnsafeRawBufferPointer
        let header: ImageHeader
        let picture: ccodec_header
        let note = WarningNote()

        init(
            _ source: UnsafeRawBufferPointer, header: ImageHeader, picture: ccodec_header
        ) {
            (self.source, self.header, self.picture) = (source, header, picture)
        }

        var metadata: CarriedMetadata { TIFFMetadata(source).carried }

        var companions: Set<Companion> {
            TIFFMetadata(source).hasManifest ? [.manifest] : []
        }

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            recipe.stripping == .none
                ? [.source(0..<source.count)] : TIFFMetadata(source).stripped
        }
    }
#else
    extension ImageCodec {
        static let tiff: ImageCodec? = nil
    }
#endif

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
            package: "libtiff6", calls: ctiff_library)

        let file: SandboxedFile

        init(_ file: SandboxedFile) {
            self.file = file
        }

        var metadata: CarriedMetadata { TIFFMetadata(source).carried }

        var companions: Set<Companion> {
            TIFFMetadata(source).hasManifest ? [.manifest] : []
        }

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            recipe.stripping == .none ? whole : TIFFMetadata(source).stripped
        }
    }
#else
    extension ImageCodec {
        static let tiff: ImageCodec? = nil
    }
#endif

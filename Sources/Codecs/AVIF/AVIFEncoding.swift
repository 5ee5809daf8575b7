internal import CPNG
internal import PrefetchModel

extension QualityCurve {
    /// aom's quantizer, 63…0, at speed 6.
    static let aom = QualityCurve(values: [63, 55, 46, 41, 38, 36, 34, 31, 29, 26, 23, 16, 9, 4, 0])
}

#if AVIF
    internal import CAVIF

    extension ImageEncoder {
        static let avif = ImageEncoder(
            // libavif's default decoding limit (`avif.h`, `AVIF_DEFAULT_IMAGE_DIMENSION_LIMIT`).
            // The format itself has 65,536 (AV1, section 5.5.1).
            sideLimit: SideLimit(subject: "an AVIF", pixels: 32768), curve: .aom,
            estimate: { basis in
                let working = AVIFEncoding.working(basis)
                return basis.encodingPixels(beside: working.peak, result: working.result)
            }, encode: AVIFEncoding.encoded)
    }

    enum AVIFEncoding {
        /// The libraries' memory, with their outputs. Measured with aom 3.6 and libavif 0.11:
        /// frames have wide borders, whole chroma nearly doubles them, and so does a search for
        /// repetitions.
        static func working(_ basis: EstimateBasis) -> MemoryEstimate {
            let (pixels, recipe) = (basis.pixels, basis.recipe)
            let frame = (basis.width + 384) * (basis.height + 384)
            let halves =
                basis.isGrey || recipe.economy >= .withoutTrials
                || pixels > ByteEstimate(JPEGEncoding.mostPixelsOfWholeChroma)
            let halfBytes: ByteEstimate =
                (basis.isGrey ? 22 : halves ? 25 : 52)
                + (speed(recipe) >= 9 ? 0 : searchesRepetitions(recipe) ? 114 : 6)
            let tenths: ByteEstimate =
                (halves ? 8 : 17) + (recipe.quality > 90 ? halves ? 12 : 22 : 0)
            let lossy = pixels * tenths / 10
            let result = basis.header.mayBeTransparent ? lossy + pixels : lossy
            return MemoryEstimate(
                peak: halfBytes * pixels / 2
                    + (basis.isGrey ? 5 : halves ? 6 : 7) * frame + 7 * result / 2
                    + basis.kept(result) + ByteEstimate(3 << 19),
                result: result, raster: 0)
        }

        /// Writes a raster with its orientation applied, at the recipe's quality or the quality
        /// that fits its largest size. Grey stays grey.
        static func encoded(
            _ raster: consuming Raster, metadata: CarriedMetadata, by recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes {
            let isGrey = raster.channels < 3 && !raster.isIndexed
            var plain = try raster.encodable(interruption)
            try plain.turn(interruption)
            let halvesChroma =
                recipe.economy >= .withoutTrials || JPEGEncoding.halvesChroma(&plain.rows)
            try interruption.check()
            let profile = plain.colour.profile ?? []
            func made(_ quality: Int, _ most: Int) throws(CodecError) -> ImageBytes? {
                let made = try encoded(
                    plain,
                    cavif_options(
                        quantizer: Int32(QualityCurve.aom.value(at: quality).rounded()),
                        speed: speed(recipe), halves_chroma: halvesChroma, is_grey: isGrey,
                        searches_repetitions: searchesRepetitions(recipe)),
                    profile, metadata, interruption)
                return made.count <= most ? made : nil
            }
            return try QualitySearch.fitting(recipe, made)
        }

        private static func encoded(
            _ raster: borrowing Raster, _ options: cavif_options, _ profile: [UInt8],
            _ metadata: CarriedMetadata, _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes {
            guard var picture = raster.picture else { throw .outOfMemory("no pixels") }
            var options = options
            let (exif, xmp) = (metadata[.exif] ?? [], metadata[.xmp] ?? [])
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            try LibAVIF.check(interruption) { message in
                cavif_encode(
                    &picture, profile, profile.count, exif, exif.count, xmp, xmp.count, &options,
                    interruption.pointer, &bytes, &count, message)
            }
            guard let bytes else { throw .outOfMemory("no output") }
            return ImageBytes(owning: bytes, count: count)
        }

        /// Whether flat pictures are searched for parts that repeat: in three times the memory and
        /// five times the time, they become a quarter smaller.
        private static func searchesRepetitions(_ recipe: Recipe) -> Bool {
            recipe.effort == .small && recipe.economy < .withoutTrials
        }

        /// aom's, by libavif's scale. 6 is the default of libavif and Pillow; 9 takes a ninth of
        /// the time for 20 % more bytes.
        private static func speed(_ recipe: Recipe) -> Int32 {
            switch recipe.effort {
            case .fast: 9
            case .balanced: 6
            case .small: 4
            }
        }
    }
#endif

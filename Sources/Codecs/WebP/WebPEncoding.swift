internal import CPNG
internal import PrefetchModel

extension QualityCurve {
    /// libwebp's quality, 0…100, with method 2.
    static let libwebp = QualityCurve(
        values: [0, 5, 15, 30, 41, 51, 64, 75, 79, 82, 86, 90, 95, 98, 100])
}

#if WebP
    internal import CWebP

    extension ImageEncoder {
        static let webP = ImageEncoder(
            // RFC 9649.
            sideLimit: SideLimit(subject: "a WebP", pixels: 16383), carriesGreyProfiles: false,
            curve: .libwebp,
            // Measured over noise with libwebp 1.2.4: 22 bytes a pixel lossless, 35 with an alpha
            // channel, which is always lossless; 2 otherwise.
            workingMemory: { basis in
                let isTriedLossless = basis.pixels.count <= WebPEncoding.mostPixelsOfLossless
                let each: ByteEstimate = basis.mayBeTransparent ? 40 : isTriedLossless ? 25 : 2
                return each * basis.pixels + ByteEstimate(4 << 20)
            }, encode: WebPEncoding.encoded)
    }

    enum WebPEncoding {
        /// Up to this size a picture is also tried lossless, which takes ten times the memory.
        static let mostPixelsOfLossless = 4 << 20

        /// Writes a raster with its orientation applied, at the recipe's quality or the quality
        /// that fits its largest size.
        ///
        /// A flat picture is also written lossless, which is kept if smaller; for strong colours,
        /// if at most four times as large.
        static func encoded(
            _ raster: consuming Raster, exif: [UInt8]?, by recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes {
            var plain = try raster.encodable(interruption)
            try plain.turn(interruption)
            let metadata = WebPMetadata(profile: plain.colour.profile, exif: exif)
            var made = try QualitySearch.fitting(recipe) {
                (quality, most) throws(CodecError) -> ImageBytes? in
                try encoded(plain, .quality(quality), metadata, recipe, most, interruption)
            }
            if isSmeared(plain) {
                try interruption.check()
                let most = mostLosslessBytes(
                    of: plain, for: made.count, limit: recipe.maximumStoredBytes ?? .max)
                if try isWorthLossless(plain, recipe, most, interruption) {
                    made =
                        try encoded(plain, .lossless, metadata, recipe, most, interruption) ?? made
                }
            }
            return made
        }

        /// Whether lossy encoding would smear a picture that a JPEG would store with full chroma.
        /// WebP has one chroma sample for two by two pixels.
        private static func isSmeared(_ raster: borrowing Raster) -> Bool {
            var rows = raster.rows
            return raster.widthInPixels * raster.heightInPixels <= mostPixelsOfLossless
                && !JPEGEncoding.halvesChroma(&rows)
        }

        /// The most bytes of a lossless file to be stored instead of a lossy one.
        private static func mostLosslessBytes(
            of raster: borrowing Raster, for lossyBytes: Int, limit: Int
        ) -> Int {
            raster.isFlat ? lossyBytes : max(lossyBytes, min(4 * lossyBytes, limit))
        }

        /// Whether an animation that begins with the picture is written lossless: as the picture
        /// alone would be.
        static func isLossless(
            beginningWith raster: borrowing Raster, _ quality: Int, _ recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> Bool {
            guard isSmeared(raster) else { return false }
            try interruption.check()
            let none = WebPMetadata(profile: nil, exif: nil)
            let lossy = try encoded(raster, .quality(quality), none, recipe, .max / 4, interruption)
            guard let lossy else { return false }
            let most = mostLosslessBytes(of: raster, for: lossy.count, limit: .max)
            return try encoded(raster, .lossless, none, recipe, most, interruption) != nil
        }

        /// Whether the picture is likely to have at most `most` bytes lossless, by a sample of its
        /// rows: the whole would take the encoder thirty times as long.
        private static func isWorthLossless(
            _ raster: borrowing Raster, _ recipe: Recipe, _ most: Int, _ interruption: Interruption
        ) throws(CodecError) -> Bool {
            let rows = sampleBands * sampleRows
            guard raster.heightInPixels >= 4 * rows else { return true }
            let sample = try raster.sample(bands: sampleBands, rows: sampleRows)
            let share = Double(rows) / Double(raster.heightInPixels)
            let made = try encoded(
                sample, .lossless, WebPMetadata(profile: nil, exif: nil), recipe, .max / 4,
                interruption
            )
            // In few rows the encoder finds fewer matches.
            return Double(made?.count ?? .max) * 0.7 < share * Double(most)
        }

        private static let sampleBands = 4
        private static let sampleRows = 16

        enum WebPCoding {
            /// The recipe's, 1…100.
            case quality(Int)
            case lossless
        }

        static func options(_ kind: WebPCoding, _ recipe: Recipe) -> cwebp_options {
            var options = cwebp_options(is_lossless: true, quality: 0, method: method(recipe))
            if case .quality(let quality) = kind {
                options.is_lossless = false
                options.quality = Float(QualityCurve.libwebp.value(at: quality))
            }
            return options
        }

        /// The whole file; nil where it would have more bytes than `most`.
        private static func encoded(
            _ raster: borrowing Raster, _ kind: WebPCoding, _ metadata: WebPMetadata,
            _ recipe: Recipe, _ most: Int, _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes? {
            guard var picture = raster.picture else { throw .outOfMemory("no pixels") }
            var options = options(kind, recipe)
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            switch cwebp_encode(&picture, &options, most, interruption.pointer, &bytes, &count)
            {
            case CCODEC_OK: break
            case CCODEC_LIMIT: return nil
            case CCODEC_INTERRUPTED: throw interruption.error
            case CCODEC_OUT_OF_MEMORY: throw .outOfMemory("no memory for the encoder")
            default: throw .encodingFailed("no WebP holds the picture")
            }
            guard let bytes else { throw .outOfMemory("no output") }
            let file = try file(
                ImageBytes(owning: bytes, count: count), with: metadata,
                width: raster.widthInPixels, height: raster.heightInPixels,
                hasAlpha: raster.channels == 4)
            return file.count <= most ? file : nil
        }

        /// The file with its metadata added.
        static func file(
            _ made: ImageBytes, with metadata: WebPMetadata, width: Int, height: Int, hasAlpha: Bool
        ) throws(CodecError) -> ImageBytes {
            guard !metadata.isEmpty else { return made }
            return try made.withUnsafeBytes { (made) throws(CodecError) -> ImageBytes in
                let pieces = try WebPFile(made).extended(
                    by: metadata, width: width, height: height, hasAlpha: hasAlpha)
                return try ImageBytes(joining: pieces, of: made)
            }
        }

        /// libwebp's method; above 2, more time brings little.
        private static func method(_ recipe: Recipe) -> Int32 {
            switch recipe.effort {
            case .fast: 1
            case .balanced: 2
            case .small: 4
            }
        }

        /// The metadata to store.
        struct WebPMetadata {
            let profile: [UInt8]?
            let exif: [UInt8]?

            var isEmpty: Bool { profile == nil && exif == nil }
        }
    }
#endif

internal import CPNG
internal import PrefetchModel

extension QualityCurve {
    /// libwebp's quality, 0…100, with method 4.
    static let libwebp = QualityCurve(
        values: [0, 5, 15, 29, 40, 50, 59, 73, 77, 80, 84, 89, 94, 98, 100])
}

#if WebP
    internal import CWebP

    extension ImageEncoder {
        static let webP = ImageEncoder(
            // RFC 9649.
            sideLimit: SideLimit(subject: "a WebP", pixels: 16383), carriesGreyProfiles: false,
            curve: .libwebp,
            estimate: { basis in
                let working = WebPEncoding.working(basis)
                return basis.encodingPixels(beside: working.peak, result: working.result)
            }, encode: WebPEncoding.encoded)
    }

    enum WebPEncoding {
        /// Up to this size a picture is also tried lossless, which takes ten times the memory, and
        /// lossy encoding may take more memory to save time.
        private static let mostPixelsOfTrials = 4 << 20

        /// The largest picture that is tried lossless; lossy data gains nothing by it.
        private static func mostPixelsOfLossless(_ recipe: Recipe) -> Int {
            switch recipe.economy {
            case .none: mostPixelsOfTrials
            case .lossyData: 1 << 20
            case .withoutTrials, .keepingData: 0
            }
        }

        /// Whether lossy encoding follows the pixels twice instead of keeping its symbols.
        private static func savesMemory(_ pixels: Int, _ recipe: Recipe) -> Bool {
            pixels > mostPixelsOfTrials || recipe.economy >= .withoutTrials
        }

        /// The library's memory, with its output twice. Measured with libwebp 1.2.4 for methods up
        /// to 6: lossy data takes 2 bytes a pixel, and 22 times its size for its symbols; an alpha
        /// channel, which is always lossless, 33; lossless data 30. Less is needed below method 3
        /// and for the alpha of a step.
        static func working(_ basis: EstimateBasis) -> MemoryEstimate {
            let (pixels, recipe) = (basis.pixels, basis.recipe)
            let hasAlpha = basis.header.mayBeTransparent
            let tenths: ByteEstimate =
                basis.isGrey ? recipe.quality > 90 ? 9 : 6 : recipe.quality > 90 ? 12 : 8
            let lossy = pixels * tenths / 10 + ByteEstimate(32 << 10)
            let result = hasAlpha ? lossy + pixels : lossy
            let method = Int(method(recipe))
            let symbols = savesMemory(pixels.count, recipe) || method < 3 ? 0 : 22 * lossy
            var peak = (hasAlpha ? 3 : 2) * pixels + symbols + 2 * result
            if hasAlpha {
                let channel: ByteEstimate = basis.header.memory.hasSimpleAlpha ? 20 : 33
                peak = max(
                    peak, channel * pixels + result + 9 * histograms(basis, bits: 9 - method))
            }
            if pixels.count <= mostPixelsOfLossless(recipe) {
                let lossless = 2 * (hasAlpha ? 4 : 3) * pixels
                let tables = (hasAlpha ? 17 : 9) * histograms(basis, bits: 7 - method)
                peak = max(peak, 30 * pixels + max(lossless, tables) + result)
            }
            return MemoryEstimate(
                peak: peak + basis.kept(result) + ByteEstimate(256 << 10), result: result,
                raster: 0)
        }

        /// The histograms of lossless data, one for each tile, in kilobytes. Tiles have sides of
        /// `bits` bits, or more until there are few enough.
        private static func histograms(_ basis: EstimateBasis, bits: Int) -> ByteEstimate {
            var side = 1 << max(bits, 2)
            func tiles() -> Int {
                (basis.width + ByteEstimate(side - 1)).count / side
                    * ((basis.height + ByteEstimate(side - 1)).count / side)
            }
            // Larger pictures are not encoded.
            guard max(basis.width, basis.height) < ByteEstimate(1 << 16) else { return 0 }
            while tiles() > 2600 { side *= 2 }
            return ByteEstimate(tiles() << 10)
        }

        /// Writes a raster with its orientation applied, at the recipe's quality or the quality
        /// that fits its largest size.
        ///
        /// Flat, smooth and repetitive pictures are also written lossless, and by the rule of
        /// ``LossyFault`` others.
        static func encoded(
            _ raster: consuming Raster, metadata: CarriedMetadata, by recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes {
            var plain = try raster.encodable(interruption)
            try plain.turn(interruption)
            let metadata = WebPMetadata(profile: plain.colour.profile, carried: metadata)
            var made = try QualitySearch.fitting(recipe) {
                (quality, most) throws(CodecError) -> ImageBytes? in
                try encoded(plain, .quality(quality), metadata, recipe, most, interruption)
            }
            guard plain.widthInPixels * plain.heightInPixels <= mostPixelsOfLossless(recipe) else {
                return made
            }
            let fault = try fault(of: plain, recipe, interruption)
            let most = fault.mostLosslessBytes(beside: made.count, recipe)
            if fault != .none || plain.isFlat
                || plain.mayBeSmallerLossless(than: made.count, margin: isSmall(plain) ? 2 : 1),
                try isWorthLossless(plain, recipe, most, interruption)
            {
                made = try encoded(plain, .lossless, metadata, recipe, most, interruption) ?? made
            }
            return made
        }

        /// How far a lossy file is from its picture, which decides how large a lossless one in its
        /// place may be.
        enum LossyFault {
            case none
            /// Strong colours are smeared.
            case visible
            /// The colours of some block of an animation are others.
            case wrong

            /// The largest mean difference of a block that still has the picture's colours.
            /// Photographs have at most 11 in 4:2:0, and 12 at quality 80; stripes of red and blue,
            /// one pixel wide, have 93.
            static let mostDifference = 24.0

            /// The size up to which a lossless file is kept.
            func mostLosslessBytes(beside lossyBytes: Int, _ recipe: Recipe) -> Int {
                let limit = max(lossyBytes, recipe.maximumStoredBytes ?? .max / 4)
                return switch self {
                case .none: lossyBytes
                case .visible: min(4 * lossyBytes, limit)
                case .wrong: limit
                }
            }
        }

        /// The fault that a picture would have in 4:2:0.
        private static func fault(
            of raster: borrowing Raster, _ recipe: Recipe, _ interruption: Interruption
        ) throws(CodecError) -> LossyFault {
            if isSmeared(raster, recipe), !raster.isFlat { return .visible }
            let worst = try raster.worstBlock(beside: nil, interruption)
            return worst > LossyFault.mostDifference ? .visible : .none
        }

        /// Whether lossy encoding would smear a picture that a JPEG would store with full chroma.
        /// WebP has one chroma sample for two by two pixels.
        static func isSmeared(_ raster: borrowing Raster, _ recipe: Recipe) -> Bool {
            var rows = raster.rows
            return raster.widthInPixels * raster.heightInPixels <= mostPixelsOfLossless(recipe)
                && !JPEGEncoding.halvesChroma(&rows)
        }

        /// Whether a cheap trial decides, and the estimate only excludes photographs.
        private static func isSmall(_ raster: borrowing Raster) -> Bool {
            raster.widthInPixels * raster.heightInPixels <= 100_000
        }

        /// libwebp's methods for cheap trials, and how many times the largest size theirs may be.
        /// For a thumbnail of 256 pixels method 0 takes 2 ms, 1 takes 8, and 4 takes 38.
        private static let trials: [(method: Int32, factor: Double)] = [(0, 4), (1, 1.25)]

        /// Whether the picture is likely to have at most `most` bytes lossless: by cheap trials of
        /// a small one, by a sample of the rows of others. The whole would take the encoder thirty
        /// times as long.
        private static func isWorthLossless(
            _ raster: borrowing Raster, _ recipe: Recipe, _ most: Int, _ interruption: Interruption
        ) throws(CodecError) -> Bool {
            guard !isSmall(raster) else {
                // A tiny picture takes less time than other trials.
                guard raster.widthInPixels * raster.heightInPixels > 4_096 else { return true }
                for (method, factor) in trials where method < Self.method(recipe) {
                    let made = try encoded(
                        raster, .trial(method), WebPMetadata(profile: nil, carried: .none),
                        recipe, .max / 4, interruption)
                    let count = made?.count ?? .max
                    // A better method may make more bytes, too.
                    if count <= most { return true }
                    if Double(count) > factor * Double(most) { return false }
                }
                return true
            }
            let rows = sampleBands * sampleRows
            guard raster.heightInPixels >= 4 * rows else { return true }
            let sample = try raster.sample(bands: sampleBands, rows: sampleRows)
            let share = Double(rows) / Double(raster.heightInPixels)
            let made = try encoded(
                sample, .lossless, WebPMetadata(profile: nil, carried: .none), recipe, .max / 4,
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
            /// Lossless by one of libwebp's methods.
            case trial(Int32)
        }

        static func options(_ kind: WebPCoding, _ recipe: Recipe) -> cwebp_options {
            var options = cwebp_options(
                is_lossless: true, quality: 0, method: method(recipe), saves_memory: false)
            switch kind {
            case .quality(let quality):
                options.is_lossless = false
                options.quality = Float(QualityCurve.libwebp.value(at: quality))
            case .lossless: break
            case .trial(let method): options.method = method
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
            options.saves_memory = savesMemory(
                raster.widthInPixels * raster.heightInPixels, recipe)
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

        /// libwebp's method. 4 is the default of libwebp, Pillow and libvips.
        private static func method(_ recipe: Recipe) -> Int32 {
            switch recipe.effort {
            case .fast: 2
            case .balanced: 4
            case .small: 6
            }
        }

        /// The metadata to store.
        struct WebPMetadata {
            let profile: [UInt8]?
            let carried: CarriedMetadata

            var isEmpty: Bool { profile == nil && carried.isEmpty }
        }
    }
#endif

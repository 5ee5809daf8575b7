internal import CResample
internal import PrefetchModel

extension TransformationPlan {
    /// Upper estimate for decoding a source, carrying out the steps and encoding the result.
    func estimate(
        from header: ImageHeader, by codec: ImageCodec, for recipe: Recipe
    ) -> MemoryEstimate {
        var source = header.decoded(at: scale)
        // Steps are carried out on one picture.
        source.isAnimated = false
        // All codecs estimate this way, which needs all pixels.
        let decoding = codec.source.memory(of: source, for: Recipe(encoding: .png))
        let sourcePixels = ByteEstimate(source.pixels)
        let encoding = encodingEstimate(for: recipe, by: codec)
        let work =
            decoding.raster
            // Palettes are expanded first.
            + (codec.source.decodesAtScales
                ? 0 : 4 * sourcePixels + ByteEstimate(source.heightInPixels))
            + workingMemory(from: source) + encoding.peak
        return MemoryEstimate(
            peak: max(decoding.peak, work), result: encoding.result, raster: decoding.raster)
    }

    /// Upper estimate of the steps for one picture, without that picture.
    func workingMemory(from source: ImageHeader) -> ByteEstimate {
        let pictures = 2 * 4 * ByteEstimate(mostPixels) + 2 * ByteEstimate(longestSide)
        return pictures + blurring + resampling(from: source)
    }

    /// The encoding of the result, with at most red, green, blue and alpha.
    private func encodingEstimate(for recipe: Recipe, by codec: ImageCodec) -> MemoryEstimate {
        size.basis(recipe).encoding(EncodedFormat(transforming: recipe, by: codec))
    }

    /// Two bytes a sample, and lines.
    private var blurring: ByteEstimate {
        let blurs = steps.contains { if case .blur = $0 { true } else { false } }
        guard blurs else { return 0 }
        // Sixteen columns side by side in two buffers of floats.
        let longest = ByteEstimate(longestSide)
        return 8 * ByteEstimate(mostPixels) + 512 * longest
    }

    /// The most memory of any single resize.
    private func resampling(from source: ImageHeader) -> ByteEstimate {
        var most = ByteEstimate(0)
        for case .resample(let area, let from, let target) in steps {
            // In both orientations, since stored rows are resized.
            for isTransposed in [false, true] {
                func side(_ length: Int) -> UInt32 { UInt32(clamping: length) }
                withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1) { byte in
                    guard let unread = byte.baseAddress else { return }
                    var picture = cresample_source(
                        pixels: unread, stride: 0,
                        width: side(isTransposed ? from.height : from.width),
                        height: side(isTransposed ? from.width : from.height), channels: 4,
                        bit_depth: 8)
                    var made = cresample_target(
                        pixels: unread, stride: 0,
                        width: side(isTransposed ? target.height : target.width),
                        height: side(isTransposed ? target.width : target.height))
                    var part = cresample_rectangle(
                        x: 0, y: 0, width: isTransposed ? area.height : area.width,
                        height: isTransposed ? area.width : area.height)
                    var options = cresample_options(
                        filter: CRESAMPLE_AUTOMATIC, is_linear: isLinear, path: CRESAMPLE_FASTEST,
                        interruption: nil)
                    let bytes = cresample_memory(&picture, &part, &options, &made)
                    most = max(most, ByteEstimate(Int(clamping: bytes)))
                }
            }
        }
        return most
    }
}

extension TransformationPlan.Size {
    /// The basis of estimates for encoding plain samples of this size: red, green, blue and alpha.
    func basis(_ recipe: Recipe) -> EstimateBasis {
        let picture = ImageHeader(
            format: .png, widthInPixels: width, heightInPixels: height, bitDepth: 8,
            channels: 4, sourceBytes: 0)
        return EstimateBasis(picture, recipe)
    }
}

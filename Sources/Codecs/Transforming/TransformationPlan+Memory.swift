internal import CResample
internal import PrefetchModel

extension TransformationPlan {
    /// Upper estimate for decoding a source, carrying out the steps and encoding the result. The
    /// source's raster is freed before the result is encoded.
    func estimate(
        from header: ImageHeader, by codec: ImageCodec, for recipe: Recipe
    ) -> MemoryEstimate {
        var source = header.decoded(at: scale)
        // Steps are carried out on one picture.
        source.isAnimated = false
        let decoded = EstimateBasis(source, recipe)
        let work = StepsMemory(of: self, from: source)
        let made = size.basis(
            recipe, channels: work.channels, hasSimpleAlpha: !source.mayBeTransparent
        ).encoding(EncodedFormat(transforming: recipe, by: codec))
        return MemoryEstimate(
            peak: made.atLeast(codec.source.rasterMemory(of: source, for: recipe))
                .atLeast(decoded.margin + decoded.rows + work.peak).peak,
            result: made.result, raster: decoded.rows)
    }

    /// Upper estimate of the steps for one picture, without that picture.
    func workingMemory(from source: ImageHeader) -> ByteEstimate {
        StepsMemory(of: self, from: source.decoded(at: scale)).peak
    }
}

/// The memory of steps, each with the picture before it and the one it makes.
private struct StepsMemory {
    /// Without the source's raster, which is kept until the last step.
    private(set) var peak = ByteEstimate(0)
    /// Samples of a pixel of the result.
    private(set) var channels: Int
    private var size: TransformationPlan.Size
    /// The picture in progress; nothing while that is the source's raster.
    private var current = ByteEstimate(0)
    private var isTurned: Bool

    init(of plan: TransformationPlan, from source: ImageHeader) {
        channels = source.plainChannels
        let (width, height) = source.displayedSize
        size = TransformationPlan.Size(width: width, height: height)
        isTurned = source.orientation != ExifOrientation.upright
        let isPlain =
            source.bitDepth == 8 && !source.memory.isIndexed
            && !source.memory.hasTransparentColours
        switch plan.steps.first {
        case .resample? where isPlain, .crop? where isPlain: break
        default: put()
        }
        for step in plan.steps { add(step, isLinear: plan.isLinear) }
        if isTurned { put() }
    }

    private var bytes: ByteEstimate {
        ByteEstimate(channels) * ByteEstimate(size.width) * ByteEstimate(size.height)
            + ByteEstimate(max(size.width, size.height))
    }

    /// The current picture is replaced by one of the current size and channels.
    private mutating func put(beside scratch: ByteEstimate = 0) {
        peak = max(peak, current + bytes + scratch)
        current = bytes
    }

    private mutating func add(_ step: TransformationPlan.PlannedStep, isLinear: Bool) {
        switch step {
        case .resample(let area, let from, let target):
            let scratch = resampling(area, from, target, isLinear)
            size = target
            put(beside: scratch)
        case .crop(_, _, let part):
            size = part
            put()
        case .turn:
            isTurned = true
        case .blur:
            // Two bytes a sample, and sixteen columns side by side in two buffers of floats.
            let longest = ByteEstimate(max(size.width, 16 * size.height))
            let samples = ByteEstimate(channels)
            peak = max(peak, current + 2 * bytes + 8 * longest * samples)
        case .tint(let color, _): widen(hasColour: !color.isGrey, hasAlpha: false)
        case .grey: break
        case .canvas(_, _, let canvas, let color, _):
            widen(hasColour: !color.color.isGrey, hasAlpha: !color.isOpaque)
            size = canvas
            put()
        case .tilt(_, let canvas, let color):
            widen(hasColour: !color.color.isGrey, hasAlpha: !color.isOpaque)
            turn()
            size = canvas
            put()
        case .round(_, let corners):
            widen(hasColour: false, hasAlpha: true)
            if corners != .all { turn() }
        case .overlay:
            widen(hasColour: true, hasAlpha: false)
            turn()
        }
    }

    private mutating func widen(hasColour: Bool, hasAlpha: Bool) {
        let before = channels
        if hasColour, channels < 3 { channels += 2 }
        if hasAlpha, channels % 2 == 1 { channels += 1 }
        if channels != before { put() }
    }

    private mutating func turn() {
        if isTurned { put() }
        isTurned = false
    }

    /// The memory of a resize beyond both pictures. The first picture may have been decoded at a
    /// smaller scale.
    private func resampling(
        _ area: Resampling.Area, _ from: TransformationPlan.Size,
        _ target: TransformationPlan.Size, _ isLinear: Bool
    ) -> ByteEstimate {
        let horizontal = Double(size.width) / Double(from.width)
        let vertical = Double(size.height) / Double(from.height)
        var most = ByteEstimate(0)
        // In both orientations, since stored rows are resized.
        for isTransposed in isTurned ? [false, true] : [false] {
            func side(_ along: Int, _ across: Int) -> UInt32 {
                UInt32(clamping: isTransposed ? across : along)
            }
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1) { byte in
                guard let unread = byte.baseAddress else { return }
                var picture = cresample_source(
                    pixels: unread, stride: 0, width: side(size.width, size.height),
                    height: side(size.height, size.width), channels: Int32(channels), bit_depth: 8)
                var made = cresample_target(
                    pixels: unread, stride: 0, width: side(target.width, target.height),
                    height: side(target.height, target.width))
                let (width, height) = (area.width * horizontal, area.height * vertical)
                var part = cresample_rectangle(
                    x: 0, y: 0, width: isTransposed ? height : width,
                    height: isTransposed ? width : height)
                var options = cresample_options(
                    filter: CRESAMPLE_AUTOMATIC, is_linear: isLinear, path: CRESAMPLE_FASTEST,
                    interruption: nil)
                let bytes = cresample_memory(&picture, &part, &options, &made)
                most = max(most, ByteEstimate(Int(clamping: bytes)))
            }
        }
        return most
    }
}

extension TransformationPlan.Size {
    /// The basis of estimates for encoding plain samples of this size, 1 to 4 a pixel.
    func basis(
        _ recipe: Recipe, channels: Int = 4, hasSimpleAlpha: Bool = false
    ) -> EstimateBasis {
        let picture = ImageHeader(
            format: .png, widthInPixels: width, heightInPixels: height, bitDepth: 8,
            channels: channels, memory: DecoderMemory(hasSimpleAlpha: hasSimpleAlpha),
            sourceBytes: 0)
        return EstimateBasis(picture, recipe)
    }
}

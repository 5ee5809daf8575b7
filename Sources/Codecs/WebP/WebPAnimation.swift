#if WebP
    internal import CPNG
    internal import CWebP
    internal import PrefetchModel

    extension WebPSource: AnimationDecoding {
        var animation: AnimationDescription? {
            guard let first = file.frames.first, file.frames.count > 1 else { return nil }
            let isOpaque =
                first.control.covers(header.widthInPixels, header.heightInPixels)
                && file.frames.allSatisfy { $0.control.keepsOpacity && !hasAlpha($0) }
            return AnimationDescription(
                frames: file.frames.count, plays: file.plays, isOpaque: isOpaque)
        }

        private func hasAlpha(_ frame: WebPFile.WebPFrame) -> Bool {
            let data = UnsafeRawBufferPointer(rebasing: source[frame.data])
            return (try? WebPSource.features(of: data))?.has_alpha ?? true
        }

        func decodeFrames(
            _ interruption: Interruption,
            _ body: (borrowing Raster, FrameControl) throws(CodecError) -> Void
        ) throws(CodecError) {
            for (index, frame) in file.frames.enumerated() {
                try body(raster(ofFrame: index, interruption), frame.control)
            }
        }

        fileprivate func raster(
            ofFrame index: Int, _ interruption: Interruption
        ) throws(CodecError) -> Raster {
            let control = file.frames[index].control
            let raster = try Raster(
                width: control.width, height: control.height, channels: 4, interruption)
            try decode(
                frame: index,
                into: cwebp_rows(first: raster.firstSample, stride: raster.stride, channels: 4),
                interruption)
            return raster
        }
    }

    extension AnimationEncoder {
        static let webP: AnimationEncoder? = AnimationEncoder(
            format: .webp, sideLimit: ImageEncoder.webP.sideLimit, growth: 1,
            // libwebp's three canvases, and the frame in its own form.
            memory: { $0.encoding(.encoded(.webp)).peak + 20 * $0.pixels },
            encode: WebPAnimationEncoding.encoded)
    }

    /// Writes the frames by libwebp's encoder of animations. Equal neighbours become one frame.
    struct WebPAnimationEncoding {
        private let animation: TransformedAnimation
        private let metadata: WebPEncoding.WebPMetadata
        private let recipe: Recipe
        private let interruption: Interruption

        /// Frames of palettes are written lossless if that fits; others if lossy coding smears
        /// them. libwebp's `allow_mixed` takes the smaller coding of each frame, however wrong its
        /// colours are.
        static func encoded(
            _ animation: TransformedAnimation, metadata carried: CarriedMetadata, by recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes {
            let encoding = WebPAnimationEncoding(
                animation: animation,
                metadata: WebPEncoding.WebPMetadata(
                    profile: animation.profile, carried: carried),
                recipe: recipe, interruption: interruption)
            let most = min(animation.mostBytes, recipe.maximumStoredBytes ?? .max)
            guard animation.hasPalettes else { return try encoding.chosen(most: most) }
            if let lossless = try encoding.made(.lossless, most) { return lossless }
            return try encoding.lossy(orElse: nil)
        }

        /// The lossy file, or a lossless one of at most `most` bytes: by the rule of
        /// ``WebPEncoding/LossyFault``, over all frames.
        private func chosen(most: Int) throws(CodecError) -> ImageBytes {
            let survey = try survey()
            var lossless: ImageBytes?
            if survey.isSmeared { lossless = try made(.lossless, most) }
            let lossy = try lossy(orElse: lossless)
            if let lossless, lossless.count <= lossy.count { return lossless }
            let fault = try fault(of: lossy, survey)
            guard fault != .none else { return lossy }
            // Every file takes a block of the disk.
            let limit = min(most, max(4_096, fault.mostLosslessBytes(beside: lossy.count, recipe)))
            if !survey.isSmeared { lossless = try made(.lossless, limit) }
            guard let lossless, lossless.count <= limit else { return lossy }
            return lossless
        }

        /// The lossy file, or the lossless one if it is too large.
        private func lossy(orElse lossless: ImageBytes?) throws(CodecError) -> ImageBytes {
            try QualitySearch.fitting(recipe) {
                (quality, most) throws(CodecError) -> ImageBytes? in
                let isFirst = most == .max / 4
                let made = try made(.quality(quality), isFirst ? animation.mostBytes : most)
                guard made == nil, isFirst else { return made }
                guard let lossless else { throw .tooLargeAnimation(animation) }
                return lossless
            }
        }

        /// Whether lossy coding would smear any frame, and the number of frames that differ from
        /// the last one.
        private func survey() throws(CodecError) -> (isSmeared: Bool, frames: Int) {
            var (isSmeared, frames) = (false, 0)
            var before: Raster?
            try animation.forEachFrame { picture, _ throws(CodecError) in
                isSmeared = isSmeared || WebPEncoding.isSmeared(picture, recipe)
                if before?.isEqual(to: picture) != true { frames += 1 }
                before = try picture.copy()
            }
            return (isSmeared, frames)
        }

        /// The worst fault of a file's frames. Smeared ones have none if all frames are as similar
        /// to their pictures as a JPEG of the recipe's quality usually is.
        private func fault(
            of file: ImageBytes, _ survey: (isSmeared: Bool, frames: Int)
        ) throws(CodecError) -> WebPEncoding.LossyFault {
            let least = QualityScale.similarity(of: recipe.quality)
            // Low qualities are less exact everywhere.
            let most = max(WebPEncoding.LossyFault.mostDifference, 240 * (1 - least))
            var (similarity, difference) = (1.0, 0.0)
            var hasAllFrames = true
            try file.withUnsafeBytes { (bytes) throws(CodecError) in
                // The library takes frames that differ a little for equal.
                hasAllFrames = try max(WebPFile(bytes).frames.count, 1) == survey.frames
                var shown = try WebPPlayback(bytes, interruption)
                var time = 0
                try animation.forEachFrame { picture, delay throws(CodecError) in
                    try shown.advance(to: time, interruption)
                    difference = max(
                        difference, try shown.worstBlock(beside: picture, interruption))
                    if survey.isSmeared {
                        similarity = min(
                            similarity, try shown.similarity(to: picture, interruption))
                    }
                    time += WebPAnimationEncoding.milliseconds(delay)
                }
            }
            if difference > most { return .wrong }
            return similarity < least || !hasAllFrames ? .visible : .none
        }

        /// The whole file; nil where it would have more bytes than `most`.
        private func made(
            _ coding: WebPEncoding.WebPCoding, _ most: Int
        ) throws(CodecError) -> ImageBytes? {
            var encoder: OpaquePointer?
            defer { if let encoder { cwebp_animation_free(encoder) } }
            var options = WebPEncoding.options(coding, recipe)
            var time = 0
            try animation.forEachFrame { picture, delay throws(CodecError) in
                guard var pixels = picture.picture else { throw .outOfMemory("no pixels") }
                if encoder == nil {
                    let status = cwebp_animation_begin(
                        pixels.width, pixels.height, UInt32(clamping: animation.description.plays),
                        &options, interruption.pointer, &encoder)
                    try check(status)
                }
                guard let encoder else { throw .outOfMemory("no memory for the encoder") }
                try check(cwebp_animation_add(encoder, &pixels, UInt32(time)))
                time = min(time + WebPAnimationEncoding.milliseconds(delay), Int(Int32.max))
            }
            guard let encoder else { throw .encodingFailed("no frames") }
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            let status = cwebp_animation_end(encoder, UInt32(time), most, &bytes, &count)
            if status == CCODEC_LIMIT { return nil }
            try check(status)
            guard let bytes else { throw .outOfMemory("no output") }
            let made = ImageBytes(owning: bytes, count: count)
            let file = try WebPEncoding.file(
                made, with: metadata, width: animation.size.width,
                height: animation.size.height, hasAlpha: !animation.isOpaque)
            return file.count <= most ? file : nil
        }

        /// The library's times have 31 bits, and a frame's 24.
        private static func milliseconds(_ delay: FrameDelay) -> Int {
            min(delay.units(perSecond: 1_000), 1 << 24 - 1)
        }

        private func check(_ status: ccodec_status) throws(CodecError) {
            switch status {
            case CCODEC_OK: return
            case CCODEC_INTERRUPTED: throw interruption.error
            case CCODEC_OUT_OF_MEMORY: throw .outOfMemory("no memory for the encoder")
            default: throw .encodingFailed("no WebP holds the animation")
            }
        }
    }

    /// The picture that a file shows as time passes.
    private struct WebPPlayback: ~Copyable {
        private let source: WebPSource
        private var canvas: AnimationCanvas
        private var next = 0
        /// In milliseconds.
        private var startOfNext = 0

        /// The bytes must outlive the value.
        init(
            _ file: UnsafeRawBufferPointer, _ interruption: Interruption
        ) throws(CodecError) {
            let header = try WebPSource.header(of: file)
            let source = try WebPSource(file, header: header, limits: CodecLimits())
            var canvas = try AnimationCanvas(of: header, isOpaque: false, interruption)
            // Equal frames have become a still picture.
            if source.file.frames.isEmpty {
                canvas.show(try source.raster(at: .full, interruption))
            }
            self.source = source
            self.canvas = canvas
        }

        mutating func advance(to time: Int, _ interruption: Interruption) throws(CodecError) {
            while next < source.file.frames.count, startOfNext <= time {
                let control = source.file.frames[next].control
                let raster = try source.raster(ofFrame: next, interruption)
                try canvas.draw(raster, control, interruption)
                startOfNext += control.delay.units(perSecond: 1_000)
                next += 1
            }
        }

        func similarity(
            to picture: borrowing Raster, _ interruption: Interruption
        ) throws(CodecError) -> Double {
            try canvas.picture.similarity(to: picture, interruption)
        }

        func worstBlock(
            beside picture: borrowing Raster, _ interruption: Interruption
        ) throws(CodecError) -> Double {
            try canvas.picture.worstBlock(beside: picture.picture, interruption)
        }
    }
#else
    extension AnimationEncoder {
        static let webP: AnimationEncoder? = nil
    }
#endif

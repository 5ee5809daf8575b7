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
                let raster = try Raster(
                    width: frame.control.width, height: frame.control.height, channels: 4,
                    interruption)
                try decode(
                    frame: index,
                    into: cwebp_rows(first: raster.firstSample, stride: raster.stride, channels: 4),
                    interruption)
                try body(raster, frame.control)
            }
        }
    }

    extension AnimationEncoder {
        static let webP: AnimationEncoder? = AnimationEncoder(
            format: .webp, sideLimit: ImageEncoder.webP.sideLimit, growth: 1,
            // libwebp's three canvases, and the frame in its own form.
            memory: { $0.encoding(.encoded(.webp)).peak + 20 * $0.pixels },
            encode: WebPAnimationEncoding.encoded)
    }

    enum WebPAnimationEncoding {
        /// Writes the frames by libwebp's encoder of animations: lossless if the first one would be
        /// and the result fits, else at the recipe's quality or the quality that fits its largest
        /// size. Equal neighbours become one frame.
        static func encoded(
            _ animation: TransformedAnimation, exif: [UInt8]?, by recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes {
            let metadata = WebPEncoding.WebPMetadata(profile: animation.profile, exif: exif)
            return try QualitySearch.fitting(recipe) {
                (quality, most) throws(CodecError) -> ImageBytes? in
                let isFirst = most == .max / 4
                let made = try encoded(
                    animation, quality, isFirst ? animation.mostBytes : most, metadata, recipe,
                    mayBeLossless: isFirst, interruption)
                if made == nil, isFirst { throw .tooLargeAnimation(animation) }
                return made
            }
        }

        /// The whole file; nil where it would have more bytes than `most`.
        private static func encoded(
            _ animation: TransformedAnimation, _ quality: Int, _ most: Int,
            _ metadata: WebPEncoding.WebPMetadata, _ recipe: Recipe, mayBeLossless: Bool,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes? {
            var encoder: OpaquePointer?
            defer { if let encoder { cwebp_animation_free(encoder) } }
            var time = 0
            try animation.forEachFrame { picture, delay throws(CodecError) in
                guard var pixels = picture.picture else { throw .outOfMemory("no pixels") }
                if encoder == nil {
                    var isLossless = false
                    if mayBeLossless {
                        isLossless = try WebPEncoding.isLossless(
                            beginningWith: picture, quality, recipe, interruption)
                    }
                    var options = WebPEncoding.options(
                        isLossless ? .lossless : .quality(quality), recipe)
                    let status = cwebp_animation_begin(
                        pixels.width, pixels.height, UInt32(clamping: animation.description.plays),
                        &options, interruption.pointer, &encoder)
                    try check(status, interruption)
                }
                guard let encoder else { throw .outOfMemory("no memory for the encoder") }
                try check(cwebp_animation_add(encoder, &pixels, UInt32(time)), interruption)
                // The library's times have 31 bits, and a frame's 24.
                time = min(time + min(delay.units(perSecond: 1_000), mostDelay), Int(Int32.max))
            }
            guard let encoder else { throw .encodingFailed("no frames") }
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            let status = cwebp_animation_end(encoder, UInt32(time), most, &bytes, &count)
            if status == CCODEC_LIMIT { return nil }
            try check(status, interruption)
            guard let bytes else { throw .outOfMemory("no output") }
            let made = ImageBytes(owning: bytes, count: count)
            let file = try WebPEncoding.file(
                made, with: metadata, width: animation.size.width,
                height: animation.size.height, hasAlpha: !animation.isOpaque)
            return file.count <= most ? file : nil
        }

        /// In milliseconds.
        private static let mostDelay = 1 << 24 - 1

        private static func check(
            _ status: ccodec_status, _ interruption: Interruption
        ) throws(CodecError) {
            switch status {
            case CCODEC_OK: return
            case CCODEC_INTERRUPTED: throw interruption.error
            case CCODEC_OUT_OF_MEMORY: throw .outOfMemory("no memory for the encoder")
            default: throw .encodingFailed("no WebP holds the animation")
            }
        }
    }
#else
    extension AnimationEncoder {
        static let webP: AnimationEncoder? = nil
    }
#endif

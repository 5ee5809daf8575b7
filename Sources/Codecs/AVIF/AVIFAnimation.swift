#if AVIF
    internal import CAVIF
    internal import CPNG

    extension AVIFSource: AnimationDecoding {
        var animation: AnimationDescription? {
            guard container.frames > 1 else { return nil }
            return AnimationDescription(
                frames: Int(container.frames), plays: AVIFRepetition.plays(in: source),
                isOpaque: !container.has_alpha)
        }

        /// The frames of an AVIF are differences to others.
        static var growthOfFrames: Int { 8 }

        /// Each frame is the whole picture.
        func decodeFrames(
            _ interruption: Interruption,
            _ body: (borrowing Raster, FrameControl) throws(CodecError) -> Void
        ) throws(CodecError) {
            try readFrames(keeping: .max, interruption) { frame, rows throws(CodecError) in
                let raster = raster(owning: rows, interruption)
                let control = FrameControl(
                    x: 0, y: 0, width: raster.widthInPixels, height: raster.heightInPixels,
                    delay: FrameDelay(frame), disposal: .none, isBlended: false)
                // Samples of 16 bits.
                try body(raster.isPlain ? raster : raster.plain(interruption), control)
            }
        }
    }

    extension FrameDelay {
        fileprivate init(_ frame: cavif_frame) {
            // A frame is shown for a day at most.
            let day: UInt64 = 86_400
            let timescale = min(max(frame.timescale, 1), UInt64(Int32.max))
            self.init(
                numerator: Int(min(frame.duration, day * timescale)), denominator: Int(timescale))
        }
    }

    /// The number of plays of a sequence, by the edit list of its track of pictures (ISO/IEC
    /// 14496-12, 8.6.6; MIAF, ISO/IEC 23000-22, 7.2.1.11), which libavif 0.11 does not read.
    enum AVIFRepetition {
        /// 0 for no end, which browsers assume without an edit list.
        static func plays(in source: UnsafeRawBufferPointer) -> Int {
            guard let track = HEIFTrack.shown(in: source),
                let list = track.first("edts", "elst")
            else { return 0 }
            var fields = FieldReader(source, list.payload)
            guard let head = fields.next(4), fields.next(4) == 1 else { return 0 }
            let isRepeated = head & 1 == 1
            guard isRepeated else { return 1 }
            guard let segment = fields.next(head >> 24 == 1 ? 8 : 4), segment > 0,
                let header = track.first("tkhd")
            else { return 0 }
            fields = FieldReader(source, header.payload)
            guard let head = fields.next(4) else { return 0 }
            let isLong = head >> 24 == 1
            // Two times, the track's number and a reserved one. All bits of the duration mean no
            // end, and so does more than fits.
            guard fields.skip(isLong ? 24 : 16), let duration = fields.next(isLong ? 8 : 4),
                duration != 0xFFFF_FFFF, duration / segment < 65_535
            else { return 0 }
            let (plays, rest) = duration.quotientAndRemainder(dividingBy: segment)
            return max(plays + (rest > 0 ? 1 : 0), 1)
        }
    }
#endif

internal import CPNG
internal import PrefetchModel

extension PNGSource: AnimationDecoding {
    /// A frame's data is assembled.
    static func frameMemory(of header: ImageHeader) -> ByteEstimate {
        ByteEstimate(header.sourceBytes)
    }

    var animation: AnimationDescription? {
        guard let animation = file.animation else { return nil }
        let controls =
            [animation.staticControl].compactMap(\.self) + animation.frames.map(\.control)
        let hasAlpha = [4, 6].contains(file.colorType) || file.chunks.contains { $0.type == .tRNS }
        let isOpaque =
            !hasAlpha && controls.first?.covers(header.widthInPixels, header.heightInPixels) == true
            && controls.first?.disposal != .previous && controls.allSatisfy(\.keepsOpacity)
        return AnimationDescription(
            frames: animation.count, plays: animation.plays, isOpaque: isOpaque)
    }

    func decodeFrames(
        _ interruption: Interruption,
        _ body: (borrowing Raster, FrameControl) throws(CodecError) -> Void
    ) throws(CodecError) {
        guard let animation = file.animation else { return }
        if let control = animation.staticControl {
            try body(try frame(source, interruption), control)
        } else {
            _ = try decoded(from: source, wholeBytes: 0, interruption, cpng_verify)
        }
        try forEachFrame(interruption) { still, control throws(CodecError) in
            try body(try frame(still, interruption), control)
        }
    }

    /// The plain colours of a still PNG.
    private func frame(
        _ still: UnsafeRawBufferPointer, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        var colour = ColourDescription()
        let rows = try decoded(from: still, interruption) { bytes, count, limits, rows, message in
            cpng_decode(bytes, count, limits, rows, &colour.samples, message)
        }
        let raster = Raster(owning: rows, colour: colour, decodeDuration: .zero)
        return try raster.plain(hasColour: true, interruption)
    }
}

internal import CPixels
internal import PrefetchModel

/// The frames of an animation as a recipe shows them. Each pass decodes them again, so the memory
/// does not depend on their number.
final class TransformedAnimation {
    private let source: any AnimationDecoding
    private let header: ImageHeader
    private let steps: TransformationPlan
    private let overlays: Overlays
    private let handling: ColourHandling
    private let interruption: Interruption
    /// Whether every pixel of every frame is opaque. All frames have three channels then, else
    /// four.
    let isOpaque: Bool
    let description: AnimationDescription
    /// Whether the pictures have the few colours of palettes.
    var hasPalettes: Bool { description.hasPalettes && !steps.mixesColours }
    /// The most bytes of a file that is made of it.
    let mostBytes: Int
    /// Processor time for decoding and drawing the frames, of all passes.
    private(set) var decodeDuration = Duration.zero
    private let wantsPlaceholder: Bool
    /// Made of the first frame before the steps, if it is wanted and there was a pass.
    private(set) var placeholder: Placeholder?

    init(
        _ source: any AnimationDecoding, _ description: AnimationDescription,
        of header: ImageHeader, by encoder: AnimationEncoder, _ steps: TransformationPlan,
        _ overlays: Overlays, _ handling: ColourHandling, wantsPlaceholder: Bool,
        _ interruption: Interruption
    ) {
        self.wantsPlaceholder = wantsPlaceholder
        self.source = source
        self.header = header
        self.steps = steps
        self.overlays = overlays
        self.interruption = interruption
        self.handling = handling
        self.description = description
        isOpaque = description.isOpaque && !steps.addsAlpha
        mostBytes = encoder.mostBytes(of: header, steps.size).count
    }

    var size: TransformationPlan.Size { steps.size }

    /// The ICC profile to store.
    var profile: [UInt8]? { handling.profile }

    /// Makes the pictures one after the other: 8 bits, red, green and blue, with alpha unless
    /// ``isOpaque``.
    ///
    /// - Parameter body: Takes a picture and the time for which it is shown.
    /// - Throws: The damage of the source, or the errors of `body`.
    func forEachFrame(
        _ body: (_ picture: borrowing Raster, FrameDelay) throws(CodecError) -> Void
    ) throws(CodecError) {
        var canvas = try AnimationCanvas(of: header, isOpaque: description.isOpaque, interruption)
        let begin = ThreadClock.now
        var otherDuration = Duration.zero
        try source.decodeFrames(interruption) { frame, control throws(CodecError) in
            try canvas.draw(frame, control, interruption)
            let decoded = ThreadClock.now
            if wantsPlaceholder, placeholder == nil {
                placeholder = Placeholder(of: canvas.picture)
            }
            var picture = try transformed(canvas.picture)
            // A grey step has removed the colours.
            if picture.channels < 3 {
                picture = try picture.plain(hasColour: true, interruption)
            }
            try picture.turn(interruption)
            try body(picture, control.delay)
            otherDuration += ThreadClock.now - decoded
        }
        decodeDuration += ThreadClock.now - begin - otherDuration
    }

    /// Colours are converted before steps that use them, else afterwards, when there are fewer
    /// pixels.
    private func transformed(_ canvas: borrowing Raster) throws(CodecError) -> Raster {
        guard let conversion = handling.conversion else {
            return try canvas.transformed(by: steps, overlays, interruption)
        }
        guard steps.usesColours else {
            return try canvas.transformed(by: steps, overlays, interruption)
                .converted(by: conversion, interruption)
        }
        return try canvas.copy().converted(by: conversion, interruption)
            .transformed(by: steps, overlays, interruption)
    }
}

/// The picture that an animation shows, drawn frame by frame. Takes the memory of one picture, and
/// of a second one from the first frame that is taken back.
struct AnimationCanvas: ~Copyable {
    /// 8-bit red, green and blue, and alpha unless the animation is opaque. Transparent at first.
    private(set) var picture: Raster
    /// The picture before the last frame, if that frame is taken back.
    private var before: Raster?
    private var last: FrameControl?

    init(of header: ImageHeader, isOpaque: Bool, _ interruption: Interruption) throws(CodecError) {
        picture = try Raster(
            width: header.widthInPixels, height: header.heightInPixels, channels: isOpaque ? 3 : 4,
            isClear: true, orientation: header.orientation, interruption)
    }

    /// Replaces the picture by another one of its size.
    mutating func show(_ picture: consuming Raster) {
        self.picture = picture
    }

    /// Takes the last frame's effect back, and draws the next one.
    mutating func draw(
        _ frame: borrowing Raster, _ control: FrameControl, _ interruption: Interruption
    ) throws(CodecError) {
        switch last?.disposal {
        case .background?: clear(last)
        case .previous?:
            if let before = before.take() { picture = before }
        case .none?, nil: break
        }
        if control.disposal == .previous { before = try picture.copy() }
        last = control
        guard var source = frame.picture, var target = picture.picture else { return }
        cpixels_draw(&source, &target, Int64(control.x), Int64(control.y), control.isBlended)
        try interruption.check(after: frame.heightInPixels * frame.stride)
    }

    private func clear(_ control: FrameControl?) {
        guard let control, var target = picture.picture else { return }
        cpixels_clear(
            &target, Int64(control.x), Int64(control.y), UInt32(clamping: control.width),
            UInt32(clamping: control.height))
    }
}

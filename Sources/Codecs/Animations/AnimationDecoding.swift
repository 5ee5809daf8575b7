internal import PrefetchModel

/// Decodes an animation frame by frame.
protocol AnimationDecoding: ImageDecoding {
    /// Nil for a still image.
    var animation: AnimationDescription? { get }

    /// Upper estimate of the memory for one frame, without its pixels and
    /// ``DecoderMemory/libraryBytes``.
    static func frameMemory(of header: ImageHeader) -> ByteEstimate

    /// How many times as large frames become that are stored without reference to others.
    static var growthOfFrames: Int { get }

    /// Decodes the frames in the order of the file, and with them everything that
    /// ``CheckDepth/pixels`` checks.
    ///
    /// `body` takes the pixels of a frame, 8 bits of three or four channels, with its place and
    /// time. Its errors end it.
    func decodeFrames(
        _ interruption: Interruption,
        _ body: (_ frame: borrowing Raster, FrameControl) throws(CodecError) -> Void
    ) throws(CodecError)
}

extension AnimationDecoding {
    static func frameMemory(of header: ImageHeader) -> ByteEstimate { 0 }

    static var growthOfFrames: Int { 1 }
}

/// The facts about an animation that concern all of its frames.
struct AnimationDescription {
    let frames: Int
    /// The number of plays; 0 for no end.
    let plays: Int
    /// Whether no pixel of the canvas is ever transparent.
    let isOpaque: Bool
    /// Whether every frame has a palette.
    var hasPalettes = false
}

/// The place, the time and the effect of one frame.
struct FrameControl {
    /// The treatment of a frame's place before the next frame is drawn.
    enum Disposal {
        /// The pixels stay.
        case none
        /// The pixels become transparent.
        case background
        /// The pixels become what they were before the frame.
        case previous
    }

    /// The place on the canvas, in pixels. A frame may extend beyond the canvas.
    var x: Int
    var y: Int
    var width: Int
    var height: Int
    var delay: FrameDelay
    var disposal: Disposal
    /// Whether the frame is drawn over the canvas, instead of replacing its pixels.
    var isBlended: Bool

    func covers(_ width: Int, _ height: Int) -> Bool {
        x == 0 && y == 0 && self.width >= width && self.height >= height
    }

    /// Whether the frame leaves every pixel as opaque as it was.
    var keepsOpacity: Bool { disposal != .background }
}

/// The time for which a frame is shown, as a fraction of seconds. Zero is kept, since each player
/// has its own rule for it.
struct FrameDelay: Hashable {
    let numerator: Int
    let denominator: Int

    /// The delay in units, rounded; a second has `count` of them.
    func units(perSecond count: Int) -> Int {
        (numerator * count + denominator / 2) / denominator
    }
}

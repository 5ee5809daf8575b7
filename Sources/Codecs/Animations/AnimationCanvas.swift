internal import CPixels
internal import PrefetchModel

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

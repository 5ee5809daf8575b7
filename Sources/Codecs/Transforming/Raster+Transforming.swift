internal import CInterruption
internal import CPNG
internal import CPixels
internal import Glibc
internal import PrefetchModel

extension Raster {
    /// Returns a new 8-bit raster with the plan's steps applied. Its orientation still has to be
    /// applied by the reader.
    ///
    /// - Throws: `outOfMemory`, `cancelled`, or `limitExceeded`; `unsupported` for an overlay that
    ///   is not loaded.
    func transformed(
        by plan: TransformationPlan, _ overlays: Overlays, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        var rest = plan.steps[...]
        var picture: Raster
        switch rest.first {
        case .resample(let area, let source, let target)? where isPlain:
            rest = rest.dropFirst()
            picture = try resampled(
                resampling(area, of: source, to: target, isLinear: plan.isLinear), interruption)
        case .crop(let x, let y, let size)? where isPlain:
            rest = rest.dropFirst()
            picture = try cropped(x: x, y: y, to: size, interruption)
        default: picture = try plain(interruption)
        }
        for step in rest {
            picture = try picture.applying(step, isLinear: plan.isLinear, overlays, interruption)
        }
        return picture
    }

    private consuming func applying(
        _ step: TransformationPlan.PlannedStep, isLinear: Bool, _ overlays: Overlays,
        _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        var picture = self
        switch step {
        case .resample(let area, let source, let target):
            picture = try picture.resampled(
                picture.resampling(area, of: source, to: target, isLinear: isLinear), interruption)
        case .crop(let x, let y, let size):
            picture = try picture.cropped(x: x, y: y, to: size, interruption)
        case .turn(let orientation):
            picture.orientation =
                ExifOrientation.Mapping(picture.orientation)
                .followed(by: ExifOrientation.Mapping(orientation)).orientation
        case .blur(let deviation):
            try picture.change(interruption) { cpixels_blur($0, deviation, $1) }
        case .tint(let color, let alpha):
            if !color.isGrey, picture.channels < 3 {
                picture = try picture.plain(hasColour: true, interruption)
            }
            try picture.change(interruption) {
                cpixels_tint($0, [color.red, color.green, color.blue], alpha, $1)
            }
        case .grey:
            guard picture.channels >= 3 else { break }
            try picture.change(interruption) { cpixels_make_grey($0, $1) }
            cpng_drop_channels(&picture.rows, true, false)
            try interruption.check()
        case .canvas(let x, let y, let size, let color, let isBehind):
            picture = try picture.able(toShow: color, interruption)
            picture = try picture.placed(
                x: x, y: y, on: size, color, isBehind: isBehind, interruption)
        case .tilt(let angle, let size, let color):
            picture = try picture.able(toShow: color, interruption)
            try picture.turn(interruption)
            picture = try picture.tilted(by: angle, onto: size, color, interruption)
        case .round(let radius, let corners):
            if picture.alpha == .none {
                picture = try picture.plain(hasAlpha: true, interruption)
            }
            if corners != .all { try picture.turn(interruption) }
            try picture.change(interruption) {
                cpixels_round($0, radius, UInt32(corners.rawValue), $1)
            }
        case .overlay(let digest, let gravity):
            let overlay = try overlays.picture(digest)
            if picture.channels < 3 {
                picture = try picture.plain(hasColour: true, interruption)
            }
            try picture.turn(interruption)
            try picture.draw(overlay, at: gravity, interruption)
        }
        return picture
    }

    /// Adds the channels that a background needs.
    private consuming func able(
        toShow color: RGBAColor, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let needsColour = channels < 3 && !color.color.isGrey
        let needsAlpha = alpha == .none && !color.isOpaque
        return needsColour || needsAlpha
            ? try plain(hasColour: needsColour, hasAlpha: needsAlpha, interruption) : self
    }

    /// Returns the picture as displayed on a larger canvas, in a new raster.
    private func placed(
        x: Int, y: Int, on canvas: TransformationPlan.Size, _ color: RGBAColor, isBehind: Bool,
        _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let mapping = ExifOrientation.Mapping(orientation)
        var (left, top) = mapping.isTransposed ? (y, x) : (x, y)
        let (width, height) =
            mapping.isTransposed
            ? (canvas.height, canvas.width) : (canvas.width, canvas.height)
        if mapping.flipsX { left = width - left - widthInPixels }
        if mapping.flipsY { top = height - top - heightInPixels }
        let made = try blank(width, height, interruption)
        guard var source = picture, var target = made.picture else { return made }
        cpixels_fill(&target, color.samples)
        try interruption.check(after: made.stride * height)
        cpixels_draw(&source, &target, Int64(left), Int64(top), isBehind)
        try interruption.check(after: stride * heightInPixels)
        return made
    }

    /// - Precondition: the orientation is applied.
    private func tilted(
        by angle: Angle, onto canvas: TransformationPlan.Size, _ color: RGBAColor,
        _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let made = try blank(canvas.width, canvas.height, interruption)
        guard var source = picture, var target = made.picture else { return made }
        let (cosine, sine) = angle.cosineAndSine
        guard
            cpixels_rotate(
                &source, cosine, sine, color.samples, &target, interruption.pointer) == CCODEC_OK
        else { throw interruption.error }
        return made
    }

    /// A raster of the same form, its samples undefined.
    func blank(
        _ width: Int, _ height: Int, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        var made = rows
        made.width = UInt32(width)
        made.height = UInt32(height)
        made.row_bytes = width * channels * bitDepth / 8
        made.interruption = interruption.pointer
        let (bytes, overflows) = (made.row_bytes + 1).multipliedReportingOverflow(by: height)
        guard !overflows, let memory = malloc(bytes) else {
            throw .outOfMemory("no memory for the pixels")
        }
        made.rows = memory.assumingMemoryBound(to: UInt8.self)
        return Raster(owning: made, colour: colour, orientation: orientation)
    }

    /// - Precondition: the orientation is applied, and there are colours.
    private func draw(
        _ overlay: OverlayPicture, at gravity: CropGeometry.Gravity, _ interruption: Interruption
    ) throws(CodecError) {
        let (horizontal, vertical) = gravity.shares
        let x = (widthInPixels - overlay.widthInPixels) * horizontal / 2
        let y = (heightInPixels - overlay.heightInPixels) * vertical / 2
        guard var target = picture else { return }
        overlay.withPicture { cpixels_draw($0, &target, Int64(x), Int64(y), true) }
        try interruption.check(after: overlay.heightInPixels * overlay.widthInPixels * 4)
    }

    /// Whether samples have 8 bits and stand for themselves: no palette, no transparent colour.
    var isPlain: Bool { bitDepth == 8 && !isIndexed && alpha != .byColour }

    /// Returns an 8-bit copy with at least the requested channels. Palettes and low bit depths are
    /// expanded, 16 bits rounded, and a transparent colour becomes alpha.
    func plain(
        hasColour: Bool = false, hasAlpha: Bool = false, dropsAlpha: Bool = false,
        _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let keepsAlpha = hasAlpha || alpha != .none && !dropsAlpha
        return try converted(interruption) { source, samples, made in
            cpng_make_plain(source, samples, hasColour, keepsAlpha, made)
        }
    }

    /// Translates a resize of the picture as displayed to the stored rows. A source decoded at a
    /// smaller scale has the same area in fewer pixels.
    private func resampling(
        _ area: Resampling.Area, of source: TransformationPlan.Size,
        to target: TransformationPlan.Size, isLinear: Bool
    ) -> Resampling {
        let mapping = ExifOrientation.Mapping(orientation)
        var (part, size, whole) = (area, target, source)
        if mapping.isTransposed {
            part = Resampling.Area(x: area.y, y: area.x, width: area.height, height: area.width)
            size = TransformationPlan.Size(width: target.height, height: target.width)
            whole = TransformationPlan.Size(width: source.height, height: source.width)
        }
        if mapping.flipsX { part.x = Double(whole.width) - part.x - part.width }
        if mapping.flipsY { part.y = Double(whole.height) - part.y - part.height }
        let horizontal = Double(widthInPixels) / Double(whole.width)
        let vertical = Double(heightInPixels) / Double(whole.height)
        part.x *= horizontal
        part.y *= vertical
        part.width = min(part.width * horizontal, Double(widthInPixels) - part.x)
        part.height = min(part.height * vertical, Double(heightInPixels) - part.y)
        return Resampling(
            area: part, widthInPixels: size.width, heightInPixels: size.height, isLinear: isLinear)
    }

    /// Returns a part of the picture as displayed, in a new raster.
    ///
    /// - Precondition: 8 bits a sample; the part lies inside.
    func cropped(
        x: Int, y: Int, to size: TransformationPlan.Size, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let mapping = ExifOrientation.Mapping(orientation)
        var (left, top) = mapping.isTransposed ? (y, x) : (x, y)
        let (width, height) =
            mapping.isTransposed ? (size.height, size.width) : (size.width, size.height)
        if mapping.flipsX { left = widthInPixels - left - width }
        if mapping.flipsY { top = heightInPixels - top - height }
        let made = try blank(width, height, interruption)
        guard let from = rows.rows, let to = made.rows.rows else { return made }
        for row in 0..<height {
            memcpy(
                to + row * made.stride + 1,
                from + (top + row) * stride + 1 + left * channels, made.bytesPerRow)
        }
        return made
    }

    mutating func change(
        _ interruption: Interruption,
        _ body: (
            UnsafePointer<ccodec_picture>, UnsafeMutablePointer<cinterruption>
        ) -> ccodec_status
    ) throws(CodecError) {
        guard var picture else { return }
        try interruption.check(
            body(&picture, interruption.pointer), noMemory: "no memory for the pixels")
    }
}

extension RGBAColor {
    fileprivate var samples: [UInt8] { [color.red, color.green, color.blue, alpha] }
}

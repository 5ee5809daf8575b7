internal import Glibc
internal import PrefetchModel

/// The steps of a recipe, computed for a picture of a certain size.
///
/// Steps without effect are omitted, so a picture that is already small enough is stored as if no
/// resizing was requested.
struct TransformationPlan {
    /// A size in pixels, with the EXIF orientation applied.
    struct Size: Hashable {
        var width: Int
        var height: Int
    }

    enum PlannedStep {
        /// Scales `area`, a part of a picture of size `source`, to `target`.
        case resample(area: Resampling.Area, source: Size, target: Size)
        case crop(x: Int, y: Int, Size)
        /// Rotates or flips as EXIF orientation 2…8 does.
        case turn(Int)
        /// The standard deviation, in pixels.
        case blur(Double)
        case tint(RGBColor, alpha: UInt8)
        case grey
        /// Puts the picture on a larger canvas, with the canvas behind transparent pixels or only
        /// around the picture.
        case canvas(x: Int, y: Int, Size, RGBAColor, isBehind: Bool)
        /// Turns clockwise by an angle, onto a canvas.
        case tilt(Angle, Size, RGBAColor)
        /// The radius, in pixels.
        case round(Double, Corners)
        case overlay(ContentDigest, CropGeometry.Gravity)
    }

    private(set) var steps: [PlannedStep] = []
    /// Whether the result depends on the meaning of samples: steps compute or add sRGB colours.
    var usesColours: Bool {
        steps.contains { step in
            switch step {
            case .resample, .crop, .turn, .blur, .round: false
            case .tint(let color, _): !color.isBlackOrWhite
            case .canvas(_, _, _, let color, _), .tilt(_, _, let color):
                !color.color.isBlackOrWhite
            case .grey, .overlay: true
            }
        }
    }
    /// Whether steps make many colours of few.
    var mixesColours: Bool {
        steps.contains { step in
            switch step {
            case .crop, .turn, .tint, .grey, .canvas: false
            case .resample, .blur, .tilt, .round, .overlay: true
            }
        }
    }
    /// Whether steps may make opaque pictures transparent.
    var addsAlpha: Bool {
        steps.contains { step in
            switch step {
            case .round: true
            case .canvas(_, _, _, let color, _), .tilt(_, _, let color): !color.isOpaque
            case .resample, .crop, .turn, .blur, .tint, .grey, .overlay: false
            }
        }
    }
    /// The scale at which to decode the source, if its format supports that.
    private(set) var scale = DecodingScale.full
    /// The size of the result.
    private(set) var size: Size
    /// The pixel count of the largest intermediate picture, not counting the source.
    private(set) var mostPixels = 0
    private(set) var longestSide = 0
    let isLinear: Bool

    var isEmpty: Bool { steps.isEmpty }

    /// - Throws: `unsupported` for a crop outside the picture.
    init(_ recipe: Recipe, of header: ImageHeader) throws(CodecError) {
        isLinear = recipe.isLinear
        let (width, height) = header.displayedSize
        size = Size(width: width, height: height)
        let frames =
            AnimationEncoder.chosen(by: recipe, of: header, isTransformed: true) == nil
            ? 1 : header.frames
        for transformation in recipe.transformations {
            // All frames count.
            if case .resize(.pixels(let count)) = transformation {
                try add(.resize(.pixels(max(1, count / frames))))
            } else {
                try add(transformation)
            }
        }
        guard header.codec?.source.decodesAtScales == true, !isLinear,
            case .resample(let area, _, let target)? = steps.first
        else { return }
        let ratio = min(area.width / Double(target.width), area.height / Double(target.height))
        // The decoder's averaging is poorer than Lanczos, which keeps a factor of two, as in vips.
        scale =
            DecodingScale.allCases.last { $0 != .full && ratio >= Double(2 * $0.rawValue) } ?? .full
    }

    private mutating func add(_ transformation: Transformation) throws(CodecError) {
        switch transformation {
        case .resize(let geometry): resize(geometry)
        case .crop(let geometry): try crop(geometry)
        case .rotate(let turn):
            steps.append(.turn(ExifOrientation.code(of: turn)))
            if turn != .half { size = Size(width: size.height, height: size.width) }
        case .flip(let axis): steps.append(.turn(ExifOrientation.code(of: axis)))
        case .blur(let deviation): steps.append(.blur(deviation.pixels))
        case .tint(_, alpha: 0): return
        case .tint(let color, let alpha): steps.append(.tint(color, alpha: alpha))
        case .grey: steps.append(.grey)
        case .border(let width, let color):
            put(x: width, y: width, on: size.extended(by: 2 * width), color, isBehind: false)
        case .tilt(let angle, let color):
            size = angle.canvas(of: size)
            steps.append(.tilt(angle, size, color))
        case .round(let radius, let corners): steps.append(.round(radius.pixels, corners))
        case .circle:
            let side = min(size.width, size.height)
            try crop(CropGeometry(width: side, height: side, place: .gravity(.center)))
            steps.append(.round(Double(side) / 2, .all))
        case .overlay(let digest, let gravity): steps.append(.overlay(digest, gravity))
        }
        let (pixels, overflows) = size.width.multipliedReportingOverflow(by: size.height)
        mostPixels = max(mostPixels, overflows ? .max : pixels)
        longestSide = max(longestSide, size.width, size.height)
    }

    private mutating func resize(_ geometry: ResizeGeometry) {
        let (area, target) = geometry.mapping(of: size)
        let isLarger = target.width < size.width || target.height < size.height
        let isWhole = area.width == Double(size.width) && area.height == Double(size.height)
        if !isWhole || target != size {
            steps.append(.resample(area: area, source: size, target: target))
            size = target
        }
        guard case .pad(let width, let height, let color, let scaling) = geometry,
            scaling != .onlyLarger || isLarger
        else { return }
        put(
            x: (width - size.width) / 2, y: (height - size.height) / 2,
            on: Size(width: width, height: height), color, isBehind: true)
    }

    private mutating func put(x: Int, y: Int, on canvas: Size, _ color: RGBAColor, isBehind: Bool) {
        // Also where it only fills transparent pixels.
        guard canvas != size || isBehind && color.alpha > 0 else { return }
        steps.append(.canvas(x: x, y: y, canvas, color, isBehind: isBehind))
        size = canvas
    }

    private mutating func crop(_ geometry: CropGeometry) throws(CodecError) {
        let (width, height) = (min(geometry.width, size.width), min(geometry.height, size.height))
        let (x, y): (Int, Int)
        switch geometry.place {
        case .offset(let left, let top): (x, y) = (left, top)
        case .gravity(let gravity):
            let (horizontal, vertical) = gravity.shares
            (x, y) = ((size.width - width) * horizontal / 2, (size.height - height) * vertical / 2)
        }
        guard x < size.width, y < size.height else {
            throw .unsupported(
                "crop=\(geometry) lies outside of \(size.width)×\(size.height) pixels")
        }
        let kept = Size(width: min(width, size.width - x), height: min(height, size.height - y))
        guard kept != size else { return }
        steps.append(.crop(x: x, y: y, kept))
        size = kept
    }
}

extension RGBColor {
    /// Whether every colour space has the colour at the same samples.
    fileprivate var isBlackOrWhite: Bool { self == .black || self == .white }
}

extension TransformationPlan.Size {
    fileprivate func extended(by pixels: Int) -> TransformationPlan.Size {
        TransformationPlan.Size(width: width + pixels, height: height + pixels)
    }

    /// Returns a size of at most this many pixels: the exact sides rounded down, or one of them up
    /// if that fits and is closer to the proportions.
    fileprivate func scaledDown(toPixels count: Int) -> TransformationPlan.Size {
        let (width, height, limit) = (Double(width), Double(height), Double(count))
        guard limit < width * height else { return self }
        // The limit also shortens a strip that becomes one pixel wide.
        let wide = min(limit, max(1, (limit * width / height).squareRoot().rounded(.down)))
        let high = min(limit, max(1, (limit * height / width).squareRoot().rounded(.down)))
        func error(_ size: (wide: Double, high: Double)) -> Double {
            abs(size.wide * height - size.high * width)
        }
        var best = (wide: wide, high: high)
        for size in [(wide: wide + 1, high: high), (wide: wide, high: high + 1)]
        where size.wide * size.high <= limit && error(size) < error(best) {
            best = size
        }
        return TransformationPlan.Size(width: Int(best.wide), height: Int(best.high))
    }
}

extension Angle {
    /// Cosine and sine in units of 1 / 2³⁰. So the last digits of the system's functions, which may
    /// differ between processors, have no effect.
    var cosineAndSine: (cosine: Int32, sine: Int32) {
        let radians = Double(thousandths) / 180_000 * Double.pi
        func fixed(_ value: Double) -> Int32 { Int32((value * Double(1 << 30)).rounded()) }
        return (fixed(cos(radians)), fixed(sin(radians)))
    }

    /// Returns the bounding box of a picture after the turn, rounded as in vips.
    fileprivate func canvas(of size: TransformationPlan.Size) -> TransformationPlan.Size {
        let (cosine, sine) = cosineAndSine
        func side(_ along: Int, _ across: Int) -> Int {
            let exact =
                (Double(along) * Double(abs(cosine)) + Double(across) * Double(abs(sine)))
                / Double(1 << 30)
            return max(1, Int(exact.rounded()))
        }
        return TransformationPlan.Size(
            width: side(size.width, size.height), height: side(size.height, size.width))
    }
}

extension ResizeGeometry {
    /// Returns the part of the picture to use, and its target size.
    fileprivate func mapping(
        of size: TransformationPlan.Size
    ) -> (area: Resampling.Area, target: TransformationPlan.Size) {
        let (width, height) = (Double(size.width), Double(size.height))
        let whole = Resampling.Area(x: 0, y: 0, width: width, height: height)
        func scaled(_ ratio: Double, _ scaling: Scaling = .shrinks) -> TransformationPlan.Size {
            guard ratio < 1 || scaling == .enlarges else { return size }
            // Ratios of huge sizes to small pictures have no limit; pixels do, see `mostPixels`.
            func side(_ pixels: Double) -> Int {
                max(1, Int(min(pixels * ratio, Double(ResizeGeometry.most)).rounded()))
            }
            return TransformationPlan.Size(width: side(width), height: side(height))
        }
        switch self {
        case .pad(let width, let height, _, let scaling):
            return ResizeGeometry.fit(width: width, height: height, scaling).mapping(of: size)
        case .fit(let mostWidth, let mostHeight, let scaling):
            let ratios = [
                mostWidth.map { Double($0) / width }, mostHeight.map { Double($0) / height },
            ]
            return (whole, scaled(ratios.compactMap(\.self).min() ?? 1, scaling))
        case .shorter(let side, let scaling):
            return (whole, scaled(Double(side) / min(width, height), scaling))
        case .percent(let share): return (whole, scaled(Double(share) / 100))
        case .pixels(let count): return (whole, size.scaledDown(toPixels: count))
        case .exact(let width, let height):
            return (whole, TransformationPlan.Size(width: width, height: height))
        case .cover(let leastWidth, let leastHeight, let scaling):
            let ratio = max(Double(leastWidth) / width, Double(leastHeight) / height)
            if ratio >= 1, scaling == .onlyLarger { return (whole, size) }
            let covering = scaled(ratio, scaling)
            let target = TransformationPlan.Size(
                width: min(leastWidth, covering.width), height: min(leastHeight, covering.height))
            // Equivalent to scaling the whole picture and then cropping it.
            let part = (
                width: width * Double(target.width) / Double(covering.width),
                height: height * Double(target.height) / Double(covering.height)
            )
            return (
                Resampling.Area(
                    x: (width - part.width) / 2, y: (height - part.height) / 2, width: part.width,
                    height: part.height), target
            )
        }
    }
}

extension CropGeometry.Gravity {
    /// The left and upper shares of the surplus pixels, in halves.
    var shares: (horizontal: Int, vertical: Int) {
        let horizontal =
            switch self {
            case .west, .northWest, .southWest: 0
            case .center, .north, .south: 1
            case .east, .northEast, .southEast: 2
            }
        let vertical =
            switch self {
            case .north, .northEast, .northWest: 0
            case .center, .east, .west: 1
            case .south, .southEast, .southWest: 2
            }
        return (horizontal, vertical)
    }
}

/// A recipe and its transformation plan for one picture.
struct PlannedRecipe {
    let recipe: Recipe
    /// Has no steps for ``Recipe/Encoding/original``; the error explains why the steps are
    /// impossible.
    let plan: Result<TransformationPlan, CodecError>
    /// Nil for a result that is not made frame by frame.
    let animationEncoder: AnimationEncoder?

    init(_ recipe: Recipe, of header: ImageHeader) {
        self.recipe = recipe
        let planned = recipe.encoding == .original ? recipe.untransformed : recipe
        let plan = Result { () throws(CodecError) in try TransformationPlan(planned, of: header) }
        self.plan = plan
        animationEncoder = (try? plan.get()).flatMap {
            AnimationEncoder.chosen(by: recipe, of: header, isTransformed: !$0.isEmpty)
        }
    }

    /// The plan; nil if it is impossible. The error is reported when the steps would be carried
    /// out.
    var steps: TransformationPlan? {
        if case .success(let plan) = plan { plan } else { nil }
    }

    /// The scale at which to decode the source.
    var scale: DecodingScale { steps?.scale ?? .full }
}

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

    enum Step {
        /// Scales `area`, a part of a picture of size `source`, to `target`.
        case resample(area: Resampling.Area, source: Size, target: Size)
        case crop(x: Int, y: Int, Size)
        /// Rotates or flips as EXIF orientation 2…8 does.
        case turn(Int)
        /// The standard deviation, in pixels.
        case blur(Double)
        case tint(RGBColor, alpha: UInt8)
        /// The radius, in pixels.
        case round(Double)
    }

    private(set) var steps: [Step] = []
    /// Whether grey pictures stay grey.
    var keepsGrey: Bool {
        steps.allSatisfy { if case .tint(let color, _) = $0 { color.isGrey } else { true } }
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
            AnimatedFormat(recipe, of: header, isTransformed: true) == nil ? 1 : header.frames
        for transformation in recipe.transformations {
            // All frames count.
            if case .resize(.pixels(let count)) = transformation {
                try add(.resize(.pixels(max(1, count / frames))))
            } else {
                try add(transformation)
            }
        }
        guard header.codec?.decodesAtScales == true, !isLinear,
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
        case .round(let radius): steps.append(.round(radius.pixels))
        }
        let (pixels, overflows) = size.width.multipliedReportingOverflow(by: size.height)
        mostPixels = max(mostPixels, overflows ? .max : pixels)
        longestSide = max(longestSide, size.width, size.height)
    }

    private mutating func resize(_ geometry: ResizeGeometry) {
        let (area, target) = geometry.mapping(of: size)
        let isWhole = area.width == Double(size.width) && area.height == Double(size.height)
        guard !isWhole || target != size else { return }
        steps.append(.resample(area: area, source: size, target: target))
        size = target
    }

    private mutating func crop(_ geometry: CropGeometry) throws(CodecError) {
        let (width, height) = (min(geometry.width, size.width), min(geometry.height, size.height))
        let (x, y): (Int, Int)
        switch geometry.place {
        case .offset(let left, let top): (x, y) = (left, top)
        case .gravity(let gravity):
            let (horizontal, vertical) = gravity.shares
            (x, y) = (
                (size.width - width) * horizontal / 2, (size.height - height) * vertical / 2
            )
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

extension ResizeGeometry {
    /// Returns the part of the picture to use, and its target size.
    fileprivate func mapping(
        of size: TransformationPlan.Size
    ) -> (area: Resampling.Area, target: TransformationPlan.Size) {
        let (width, height) = (Double(size.width), Double(size.height))
        let whole = Resampling.Area(x: 0, y: 0, width: width, height: height)
        func scaled(_ ratio: Double) -> TransformationPlan.Size {
            guard ratio < 1 else { return size }
            return TransformationPlan.Size(
                width: max(1, Int((width * ratio).rounded())),
                height: max(1, Int((height * ratio).rounded())))
        }
        switch self {
        case .fit(let mostWidth, let mostHeight):
            let ratios = [
                mostWidth.map { Double($0) / width }, mostHeight.map { Double($0) / height },
            ]
            return (whole, scaled(ratios.compactMap(\.self).min() ?? 1))
        case .percent(let share): return (whole, scaled(Double(share) / 100))
        case .pixels(let count):
            return (whole, scaled((Double(count) / (width * height)).squareRoot()))
        case .exact(let width, let height):
            return (whole, TransformationPlan.Size(width: width, height: height))
        case .cover(let leastWidth, let leastHeight):
            let ratio = min(1, max(Double(leastWidth) / width, Double(leastHeight) / height))
            let covering = scaled(ratio)
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
    fileprivate var shares: (horizontal: Int, vertical: Int) {
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

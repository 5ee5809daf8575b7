/// A step that changes the picture. A recipe's steps are applied in order to 8-bit samples, after
/// the EXIF orientation.
package enum Transformation: Hashable, Sendable {
    case resize(ResizeGeometry)
    case crop(CropGeometry)
    /// Clockwise.
    case rotate(Turn)
    /// Clockwise by any other angle, onto a canvas of this colour that holds the whole picture.
    case tilt(Angle, RGBAColor)
    case flip(Axis)
    /// A Gaussian blur with this standard deviation.
    case blur(PixelLength)
    /// A colour composited over the opaque parts of the picture.
    case tint(RGBColor, alpha: UInt8)
    /// The luminance (ITU-R BT.709, of linear light).
    case grey
    /// A frame of this many pixels around the picture.
    case border(Int, RGBAColor)
    /// Rounded corners of this radius; at most half the shorter side.
    case round(PixelLength, Corners)
    case circle
    /// The picture in the file with this digest, composited at its own size and clipped.
    case overlay(ContentDigest, CropGeometry.Gravity)

    package enum Turn: Int, CaseIterable, Sendable {
        case quarter = 90
        case half = 180
        case threeQuarters = 270
    }

    package enum Axis: String, CaseIterable, Sendable {
        case horizontal = "h"
        case vertical = "v"
    }

    /// The names of the steps, written before `=`.
    package enum StepName: String, CaseIterable, Sendable {
        case resize, crop, rotate, flip, blur, tint, grey, border, round, circle, overlay

        /// Parses the name of an item like `flip=h` or `grey`; nil if that is not a step.
        package init?(ofItem item: some StringProtocol) {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = StepName(rawValue: String(parts[0])),
                (parts.count == 2) == name.takesValue
            else { return nil }
            self = name
        }

        package var takesValue: Bool { self != .grey && self != .circle }

        /// The item as users write it.
        package var shown: String { takesValue ? rawValue + "=" : rawValue }

        /// A description of the value, for messages.
        package var form: String {
            switch self {
            case .resize: "a size like 800x600, 800, x600, 800x600^, 800x600!, 800x600~#fff or 50%"
            case .crop: "WxH, WxH+X+Y or WxH:GRAVITY like 300x200:north"
            case .rotate: "auto or degrees like 90, -7.5 or 45,#rrggbb"
            case .flip: "h or v"
            case .blur: "a number of pixels, 0.1 to 100"
            case .tint: "#rrggbbaa"
            case .grey, .circle: "no value"
            case .border: "W,#rrggbb with a width of 1 to \(Transformation.widestBorder) pixels"
            case .round: "a number of pixels, 0.1 to 10000, or with corners like 8:tl,tr"
            case .overlay: "FILE@GRAVITY like logo.png@south-east"
            }
        }
    }

    package static let widestBorder = 10_000

    /// Parses the value of a step; nil for a step without one. Returns nil for an invalid value,
    /// and no steps for `rotate=auto` and `rotate=0`, since the EXIF orientation is always applied.
    package static func steps(_ name: StepName, _ value: String?) -> [Transformation]? {
        switch (name, value) {
        case (.grey, nil): [.grey]
        case (.circle, nil): [.circle]
        case (.grey, _), (.circle, _), (_, nil): nil
        case (.resize, let value?): ResizeGeometry(text: value).map { [.resize($0)] }
        case (.crop, let value?): CropGeometry(text: value).map { [.crop($0)] }
        case (.rotate, let value?): rotation(value)
        case (.flip, let value?): Axis(rawValue: value).map { [.flip($0)] }
        case (.blur, let value?): PixelLength(text: value, most: 100).map { [.blur($0)] }
        case (.tint, let value?):
            RGBAColor(text: value).map { [.tint($0.color, alpha: $0.alpha)] }
        case (.border, let value?): border(value).map { [$0] }
        case (.round, let value?): round(value).map { [$0] }
        case (.overlay, let value?): overlay(value).map { [$0] }
        }
    }

    private static func rotation(_ value: String) -> [Transformation]? {
        if value == "auto" { return [] }
        let parts = value.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
        let color = parts.count == 2 ? RGBAColor(text: String(parts[1])) : .clear
        guard let angle = Angle(text: parts[0]), let color else { return nil }
        guard angle.thousandths % 90_000 == 0 else { return [.tilt(angle, color)] }
        return Turn(rawValue: angle.thousandths / 1000).map { [.rotate($0)] } ?? []
    }

    private static func border(_ value: String) -> Transformation? {
        let parts = value.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, (1...5).contains(parts[0].utf8.count),
            parts[0].utf8.allSatisfy(\.isDecimalDigit), let width = Int(parts[0]),
            (1...widestBorder).contains(width), let color = RGBAColor(text: String(parts[1]))
        else { return nil }
        return .border(width, color)
    }

    private static func round(_ value: String) -> Transformation? {
        let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let radius = PixelLength(text: String(parts[0]), most: 10_000),
            let corners = parts.count == 2 ? Corners(text: parts[1]) : .all
        else { return nil }
        return .round(radius, corners)
    }

    /// Parses the form in a recipe, with a digest in place of the file's name.
    private static func overlay(_ value: String) -> Transformation? {
        guard let (name, gravity) = overlayParts(value),
            var digits = Optional(name),
            let digest = digits.withUTF8({
                ContentDigest(lowercaseHexadecimal: UnsafeRawBufferPointer($0))
            })
        else { return nil }
        return .overlay(digest, gravity)
    }

    /// Splits `FILE@GRAVITY` at the last `@`.
    package static func overlayParts(
        _ value: String
    ) -> (file: String, gravity: CropGeometry.Gravity)? {
        guard let end = value.lastIndex(of: "@"), end != value.startIndex,
            let gravity = CropGeometry.Gravity(rawValue: String(value[value.index(after: end)...]))
        else { return nil }
        return (String(value[..<end]), gravity)
    }

    package var addsAlpha: Bool {
        switch self {
        case .round, .circle: true
        case .tilt(_, let color), .border(_, let color), .resize(.pad(_, _, let color, _)):
            !color.isOpaque
        case .resize, .crop, .rotate, .flip, .blur, .tint, .grey, .overlay: false
        }
    }
}

/// The form in a recipe: `resize=800x600^`.
extension Transformation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .resize(let geometry): "resize=\(geometry)"
        case .crop(let geometry): "crop=\(geometry)"
        case .rotate(let turn): "rotate=\(turn.rawValue)"
        case .tilt(let angle, .clear): "rotate=\(angle)"
        case .tilt(let angle, let color): "rotate=\(angle),\(color)"
        case .flip(let axis): "flip=\(axis.rawValue)"
        case .blur(let radius): "blur=\(radius)"
        case .tint(let color, let alpha): "tint=\(RGBAColor(color, alpha: alpha))"
        case .grey: "grey"
        case .border(let width, let color): "border=\(width),\(color)"
        case .round(let radius, .all): "round=\(radius)"
        case .round(let radius, let corners): "round=\(radius):\(corners)"
        case .circle: "circle"
        case .overlay(let digest, let gravity): "overlay=\(digest)@\(gravity.rawValue)"
        }
    }
}

/// Corners of a picture; at least one.
package struct Corners: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let all = Corners(rawValue: 15)

    private static let names = ["tl", "tr", "bl", "br"]

    package static func isName(_ text: some StringProtocol) -> Bool {
        names.contains { $0 == text }
    }

    init?(text: some StringProtocol) {
        var result: Corners = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let place = Corners.names.firstIndex(where: { $0 == name }),
                result.insert(Corners(rawValue: 1 << UInt8(place))).inserted
            else { return nil }
        }
        self = result
    }
}

extension Corners: CustomStringConvertible {
    package var description: String {
        Corners.names.enumerated().filter { rawValue >> UInt8($0.offset) & 1 == 1 }
            .map(\.element).joined(separator: ",")
    }
}

/// An angle in thousandths of a degree, so its text is exact.
package struct Angle: Hashable, Sendable {
    /// 0..<360,000.
    package let thousandths: Int

    /// Parses degrees with at most three decimals and five digits before them. Negative ones turn
    /// counterclockwise.
    init?(text: some StringProtocol) {
        let isNegative = text.hasPrefix("-")
        let parts = text.dropFirst(isNegative ? 1 : 0)
            .split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, (1...5).contains(parts[0].utf8.count),
            parts.count == 1 || (1...3).contains(parts[1].utf8.count),
            parts.allSatisfy({ $0.utf8.allSatisfy(\.isDecimalDigit) }), let whole = Int(parts[0])
        else { return nil }
        let decimals = parts.count == 2 ? String(parts[1]) : ""
        let padded = decimals + String(repeating: "0", count: 3 - decimals.utf8.count)
        guard let fraction = Int(padded) else { return nil }
        let turned = (1000 * whole + fraction) % 360_000
        thousandths = isNegative ? (360_000 - turned) % 360_000 : turned
    }
}

extension Angle: CustomStringConvertible {
    package var description: String {
        var decimals = String(1000 + thousandths % 1000).dropFirst()
        while decimals.last == "0" { decimals.removeLast() }
        return "\(thousandths / 1000)" + (decimals.isEmpty ? "" : ".\(decimals)")
    }
}

/// A length in tenths of a pixel, so its text is exact.
package struct PixelLength: Hashable, Sendable {
    package let tenths: Int

    package var pixels: Double { Double(tenths) / 10 }

    /// Parses a number with at most one decimal; nil for another text, and outside 0.1…`most`.
    package init?(text: String, most: Int) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let last = parts.last, parts.count == 1 || last.utf8.count == 1,
            parts.allSatisfy({
                (1...6).contains($0.utf8.count) && $0.utf8.allSatisfy(\.isDecimalDigit)
            }), let whole = Int(parts[0])
        else { return nil }
        let tenths = 10 * whole + (parts.count == 2 ? Int(last) ?? 0 : 0)
        guard (1...10 * most).contains(tenths) else { return nil }
        self.tenths = tenths
    }
}

extension PixelLength: CustomStringConvertible {
    package var description: String {
        tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}

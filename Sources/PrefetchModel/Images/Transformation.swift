/// A step that changes the picture. A recipe's steps are applied in order to 8-bit samples, after
/// the EXIF orientation.
package enum Transformation: Hashable, Sendable {
    case resize(ResizeGeometry)
    case crop(CropGeometry)
    /// Clockwise.
    case rotate(Turn)
    case flip(Axis)
    /// A Gaussian blur with this standard deviation.
    case blur(PixelLength)
    /// A colour composited over the opaque parts of the picture.
    case tint(RGBColor, alpha: UInt8)
    /// Rounded corners of this radius; at most half the shorter side.
    case round(PixelLength)

    package enum Turn: Int, CaseIterable, Sendable {
        case quarter = 90
        case half = 180
        case threeQuarters = 270
    }

    package enum Axis: String, CaseIterable, Sendable {
        /// Mirrors left and right.
        case horizontal = "h"
        /// Mirrors top and bottom.
        case vertical = "v"
    }

    /// The names of the steps, written before `=`.
    package enum Name: String, CaseIterable, Sendable {
        case resize, crop, rotate, flip, blur, tint, round

        /// A description of the value, for messages.
        package var form: String {
            switch self {
            case .resize: "a size like 800x600, 800, x600, 800x600^, 800x600! or 50%"
            case .crop: "WxH, WxH+X+Y or WxH:GRAVITY like 300x200:north"
            case .rotate: "auto, 90, 180 or 270"
            case .flip: "h or v"
            case .blur: "a number of pixels, 0.1 to 100"
            case .tint: "#rrggbbaa"
            case .round: "a number of pixels, 0.1 to 10000"
            }
        }
    }

    /// Parses the value of a step.
    ///
    /// - Returns: The steps; none for `rotate=auto`, since the EXIF orientation is always applied.
    ///   Nil for an invalid value.
    package static func steps(_ name: Name, _ value: String) -> [Transformation]? {
        switch name {
        case .resize: ResizeGeometry(text: value).map { [.resize($0)] }
        case .crop: CropGeometry(text: value).map { [.crop($0)] }
        case .rotate:
            value == "auto" ? [] : Int(value).flatMap(Turn.init(rawValue:)).map { [.rotate($0)] }
        case .flip: Axis(rawValue: value).map { [.flip($0)] }
        case .blur: PixelLength(text: value, most: 100).map { [.blur($0)] }
        case .tint:
            RGBColor.withAlpha(value).map { [.tint($0.color, alpha: $0.alpha)] }
        case .round: PixelLength(text: value, most: 10_000).map { [.round($0)] }
        }
    }

    /// Whether the step may add transparency.
    package var addsAlpha: Bool { if case .round = self { true } else { false } }
}

/// The form in a recipe: `resize=800x600^`.
extension Transformation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .resize(let geometry): "resize=\(geometry)"
        case .crop(let geometry): "crop=\(geometry)"
        case .rotate(let turn): "rotate=\(turn.rawValue)"
        case .flip(let axis): "flip=\(axis.rawValue)"
        case .blur(let radius): "blur=\(radius)"
        case .tint(let color, let alpha):
            "tint=\(color)" + (alpha < 16 ? "0" : "") + String(alpha, radix: 16)
        case .round(let radius): "round=\(radius)"
        }
    }
}

/// A length in tenths of a pixel, so that its text is exact.
package struct PixelLength: Hashable, Sendable {
    /// Above 0.
    package let tenths: Int

    package var pixels: Double { Double(tenths) / 10 }

    /// Parses a number with at most one decimal.
    ///
    /// - Returns: Nil for another text, and outside 0.1…`most`.
    package init?(text: String, most: Int) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let last = parts.last, parts.count == 1 || last.utf8.count == 1,
            parts.allSatisfy({ part in
                (1...6).contains(part.utf8.count)
                    && part.utf8.allSatisfy { (48...57).contains($0) }
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

extension RGBColor {
    /// Parses `#rrggbbaa` with an optional `#`, or an opaque colour in the form of ``init(text:)``.
    fileprivate static func withAlpha(_ text: String) -> (color: RGBColor, alpha: UInt8)? {
        let digits = text.hasPrefix("#") ? text.dropFirst() : text[...]
        guard digits.utf8.count == 8 else { return RGBColor(text: text).map { ($0, 255) } }
        guard digits.allSatisfy(\.isHexDigit), let alpha = UInt8(digits.suffix(2), radix: 16),
            let color = RGBColor(text: String(digits.prefix(6)))
        else { return nil }
        return (color, alpha)
    }
}

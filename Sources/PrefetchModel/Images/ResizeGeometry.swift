/// The target size of a picture in pixels, EXIF orientation applied.
///
/// Written as in ImageMagick and vips: `800x600` · `800` · `x600` · `800x600^` · `800x600!` · `50%`
/// · `2000000@`; `256^` for the shorter side, and `800x600~#ffffff` for padding. A `+` at the end
/// enlarges, a `>` leaves a smaller picture as it is: ``Scaling``.
package enum ResizeGeometry: Hashable, Sendable {
    /// Fits inside both sides and keeps the aspect ratio; a nil side is unconstrained.
    case fit(width: Int?, height: Int?, Scaling = .shrinks)
    /// The shorter side, keeping the aspect ratio.
    case shorter(Int, Scaling = .shrinks)
    /// Covers both sides, keeps the aspect ratio and crops the excess centrally. A smaller picture
    /// is cropped without scaling.
    case cover(width: Int, height: Int, Scaling = .shrinks)
    /// Exactly these sides, ignoring the aspect ratio. It also enlarges.
    case exact(width: Int, height: Int)
    /// Fits inside both sides, in the centre of a canvas of exactly these sides.
    case pad(width: Int, height: Int, RGBAColor, Scaling = .shrinks)
    /// The percentage of each side, 1…100.
    case percent(Int)
    /// At most this number of pixels, keeping the aspect ratio.
    case pixels(Int)

    /// The treatment of a picture that is smaller than the size.
    package enum Scaling: String, CaseIterable, Sendable {
        /// The picture is not scaled, but cropped or padded.
        case shrinks = ""
        case enlarges = "+"
        /// The picture stays as it is, as with `>` in ImageMagick.
        case onlyLarger = ">"
    }

    /// The largest side or number of pixels that can be written.
    package static let most = 1_000_000_000

    /// Nil for another text form, and for numbers outside 1…10⁹ (a percentage: 1…100).
    package init?(text: String) {
        let scaling = text.last.flatMap { Scaling(rawValue: String($0)) }
        guard let scaling else {
            self.init(size: text)
            return
        }
        guard let size = ResizeGeometry(size: String(text.dropLast())) else { return nil }
        switch size {
        // Without enlarging, a picture that already fits stays as it is.
        case .fit(let width, let height, _):
            self = .fit(width: width, height: height, scaling == .enlarges ? scaling : .shrinks)
        case .shorter(let side, _):
            self = .shorter(side, scaling == .enlarges ? scaling : .shrinks)
        case .cover(let width, let height, _): self = .cover(width: width, height: height, scaling)
        case .pad(let width, let height, let color, _):
            self = .pad(width: width, height: height, color, scaling)
        case .exact, .percent, .pixels: return nil
        }
    }

    /// A size without ``Scaling``.
    private init?(size text: String) {
        func number(_ digits: Substring) -> Int? {
            guard !digits.isEmpty, digits.utf8.allSatisfy(\.isDecimalDigit),
                let number = Int(digits), (1...ResizeGeometry.most).contains(number)
            else { return nil }
            return number
        }
        if let end = text.firstIndex(of: "~") {
            guard case .exact(let width, let height)? = ResizeGeometry(size: text[..<end] + "!"),
                let color = RGBAColor(text: String(text[text.index(after: end)...]))
            else { return nil }
            self = .pad(width: width, height: height, color)
            return
        }
        switch text.last {
        case "%":
            guard let share = number(text.dropLast()), share <= 100 else { return nil }
            self = .percent(share)
        case "@":
            guard let count = number(text.dropLast()) else { return nil }
            self = .pixels(count)
        case "^", "!":
            let sides = text.dropLast().split(separator: "x", omittingEmptySubsequences: false)
            if text.last == "^", sides.count == 1, let side = number(sides[0]) {
                self = .shorter(side)
                return
            }
            guard sides.count == 2, let width = number(sides[0]), let height = number(sides[1])
            else { return nil }
            self =
                text.last == "^"
                ? .cover(width: width, height: height) : .exact(width: width, height: height)
        default:
            let sides = text.split(separator: "x", omittingEmptySubsequences: false)
            let numbers = sides.map(number)
            switch (numbers.count, numbers.first ?? nil, numbers.last ?? nil) {
            case (1, let width?, _): self = .fit(width: width, height: nil)
            case (2, let width?, let height?): self = .fit(width: width, height: height)
            case (2, nil, let height?) where sides[0].isEmpty:
                self = .fit(width: nil, height: height)
            default: return nil
            }
        }
    }

    /// Whether a text is probably meant as a size, valid or not: it begins with digits, or an `x`
    /// and digits. A number up to 100 may be meant as a quality.
    package static func isLikely(_ text: String) -> Bool {
        let digits = text.hasPrefix("x") ? text.dropFirst() : text[...]
        guard digits.first?.isASCIIDigit == true else { return false }
        return !text.allSatisfy(\.isASCIIDigit) || Int(text).map { $0 > 100 } ?? true
    }
}

extension ResizeGeometry: CustomStringConvertible {
    package var description: String {
        switch self {
        case .fit(let width, let height, let scaling):
            (width.map(String.init) ?? "") + (height.map { "x\($0)" } ?? "") + scaling.rawValue
        case .shorter(let side, let scaling): "\(side)^\(scaling.rawValue)"
        case .cover(let width, let height, let scaling):
            "\(width)x\(height)^\(scaling.rawValue)"
        case .exact(let width, let height): "\(width)x\(height)!"
        case .pad(let width, let height, let color, let scaling):
            "\(width)x\(height)~\(color)\(scaling.rawValue)"
        case .percent(let share): "\(share)%"
        case .pixels(let count): "\(count)@"
        }
    }
}

/// The part of the picture to keep, in pixels, EXIF orientation applied. Clipped to the picture.
///
/// `300x200+10+20` · `300x200` · `300x200:north-east`.
package struct CropGeometry: Hashable, Sendable {
    package enum Place: Hashable, Sendable {
        /// The distance from the left and from the top.
        case offset(x: Int, y: Int)
        case gravity(Gravity)
    }

    /// The position of a crop without offset, or of an overlay.
    package enum Gravity: String, CaseIterable, Sendable {
        case center
        case north
        case northEast = "north-east"
        case east
        case southEast = "south-east"
        case south
        case southWest = "south-west"
        case west
        case northWest = "north-west"
    }

    package let width: Int
    package let height: Int
    package let place: Place

    package init(width: Int, height: Int, place: Place) {
        self.width = width
        self.height = height
        self.place = place
    }

    /// Nil for another text form, for sides outside 1…10⁹, and for larger offsets.
    package init?(text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let numbers = parts[0].split(separator: "+", omittingEmptySubsequences: false)
        guard case .exact(let width, let height)? = ResizeGeometry(text: numbers[0] + "!") else {
            return nil
        }
        switch (numbers.count, parts.count) {
        case (1, 1): self.init(width: width, height: height, place: .gravity(.center))
        case (1, 2):
            guard let gravity = Gravity(rawValue: String(parts[1])) else { return nil }
            self.init(width: width, height: height, place: .gravity(gravity))
        case (3, 1):
            let offsets = numbers.dropFirst().map { digits -> Int? in
                guard digits.allSatisfy(\.isASCIIDigit), digits.utf8.count <= 10 else { return nil }
                return Int(digits)
            }
            guard let x = offsets[0], let y = offsets[1] else { return nil }
            self.init(width: width, height: height, place: .offset(x: x, y: y))
        default: return nil
        }
    }
}

extension CropGeometry: CustomStringConvertible {
    package var description: String {
        switch place {
        case .offset(let x, let y): "\(width)x\(height)+\(x)+\(y)"
        case .gravity(.center): "\(width)x\(height)"
        case .gravity(let gravity): "\(width)x\(height):\(gravity.rawValue)"
        }
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { isASCII && isWholeNumber }
}

/// A colour of 8 bits a channel, in sRGB.
package struct RGBColor: Hashable, Sendable {
    package let red: UInt8
    package let green: UInt8
    package let blue: UInt8

    package static let white = RGBColor(red: 255, green: 255, blue: 255)
    package static let black = RGBColor(red: 0, green: 0, blue: 0)

    package init(red: UInt8, green: UInt8, blue: UInt8) {
        self.red = red
        self.green = green
        self.blue = blue
    }

    package var isGrey: Bool { red == green && green == blue }

    /// 0xRRGGBB.
    package var number: Int { Int(red) << 16 | Int(green) << 8 | Int(blue) }

    package init?(number: Int) {
        guard (0...0xFFFFFF).contains(number) else { return nil }
        self.init(number)
    }
}

/// Six hexadecimal digits in lower case: `ff8000`.
extension RGBColor: CustomStringConvertible {
    package var description: String {
        [red, green, blue].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension RGBColor {
    package static func isName(_ text: some StringProtocol) -> Bool {
        names[text.lowercased()] != nil
    }

    private static let names: [String: Int] = [
        "black": 0x000000, "silver": 0xC0C0C0, "gray": 0x808080, "white": 0xFFFFFF,
        "maroon": 0x800000, "red": 0xFF0000, "purple": 0x800080, "fuchsia": 0xFF00FF,
        "green": 0x008000, "lime": 0x00FF00, "olive": 0x808000, "yellow": 0xFFFF00,
        "navy": 0x000080, "blue": 0x0000FF, "teal": 0x008080, "aqua": 0x00FFFF,
    ]

    /// Parses a colour as in CSS: `#rgb`, `#rrggbb`, or one of the sixteen basic names (CSS Color
    /// 4, section 6.1). The `#` is optional, since shells begin comments with it.
    package init?(text: String) {
        if let value = RGBColor.names[text.lowercased()] {
            self.init(value)
            return
        }
        let digits = text.hasPrefix("#") ? text.dropFirst() : text[...]
        // `Int` would accept a sign.
        guard digits.allSatisfy(\.isHexDigit), let value = Int(digits, radix: 16) else {
            return nil
        }
        switch digits.utf8.count {
        case 3:
            // Each digit stands for two equal digits.
            self.init((value >> 8) * 0x110000 | (value >> 4 & 15) * 0x1100 | (value & 15) * 0x11)
        case 6: self.init(value)
        default: return nil
        }
    }

    private init(_ value: Int) {
        func byte(_ shift: Int) -> UInt8 { UInt8(truncatingIfNeeded: value >> shift) }
        self.init(red: byte(16), green: byte(8), blue: byte(0))
    }
}

package struct RGBAColor: Hashable, Sendable {
    package let color: RGBColor
    /// 255 is opaque.
    package let alpha: UInt8

    package static let clear = RGBAColor(.black, alpha: 0)

    /// A transparent colour is ``clear``, with any red, green and blue.
    package init(_ color: RGBColor, alpha: UInt8 = 255) {
        self.color = alpha == 0 ? .black : color
        self.alpha = alpha
    }

    /// Parses `#rrggbbaa` with an optional `#`, or an opaque colour in the form of
    /// ``RGBColor/init(text:)``.
    package init?(text: String) {
        let digits = text.hasPrefix("#") ? text.dropFirst() : text[...]
        guard digits.utf8.count == 8 else {
            guard let color = RGBColor(text: text) else { return nil }
            self.init(color)
            return
        }
        guard digits.allSatisfy(\.isHexDigit), let alpha = UInt8(digits.suffix(2), radix: 16),
            let color = RGBColor(text: String(digits.prefix(6)))
        else { return nil }
        self.init(color, alpha: alpha)
    }

    package var isOpaque: Bool { alpha == 255 }
}

/// Eight hexadecimal digits in lower case: `ff800080`.
extension RGBAColor: CustomStringConvertible {
    package var description: String {
        "\(color)" + (alpha < 16 ? "0" : "") + String(alpha, radix: 16)
    }
}

import ArgumentParser
import Pipeline
import PrefetchModel

/// A duration as flags and manifests take it; see `Duration.init(quantity:)`.
struct DurationArgument: ExpressibleByArgument {
    let duration: Duration

    init(_ duration: Duration) {
        self.duration = duration
    }

    init?(argument: String) {
        guard let duration = Duration(quantity: argument) else { return nil }
        self.duration = duration
    }

    var defaultValueDescription: String { duration.quantityDescription }
}

/// A size as flags take it: bytes, or with a decimal (`kB MB GB`) or binary (`KiB MiB GiB`) unit.
struct SizeArgument: ExpressibleByArgument {
    let size: ByteCount

    private static let units: [(suffix: String, bytes: Int)] = [
        ("", 1), ("b", 1), ("k", 1000), ("kb", 1000), ("m", 1_000_000), ("mb", 1_000_000),
        ("g", 1_000_000_000), ("gb", 1_000_000_000), ("kib", 1 << 10), ("mib", 1 << 20),
        ("gib", 1 << 30),
    ]

    init(_ size: ByteCount) {
        self.size = size
    }

    init?(argument: String) {
        let digits = argument.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let suffix = argument[digits.endIndex...].lowercased()
        guard let number = Double(digits),
            let unit = SizeArgument.units.first(where: { $0.suffix == suffix }),
            let bytes = Int(exactly: (number * Double(unit.bytes)).rounded())
        else { return nil }
        size = ByteCount(bytes)
    }

    var defaultValueDescription: String {
        for (suffix, unit) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        where size.bytes >= unit && size.bytes % unit == 0 {
            return "\(size.bytes / unit)\(suffix)"
        }
        return "\(size.bytes)"
    }
}

/// A colour as web pages write it: `#rgb`, `#rrggbb`, or one of the sixteen basic names (CSS Color 4,
/// section 6.1). The `#` may be left out, since shells begin comments with it.
struct ColourArgument: ExpressibleByArgument {
    let colour: RGBColor

    private static let names: [String: Int] = [
        "black": 0x000000, "silver": 0xC0C0C0, "gray": 0x808080, "white": 0xFFFFFF,
        "maroon": 0x800000, "red": 0xFF0000, "purple": 0x800080, "fuchsia": 0xFF00FF,
        "green": 0x008000, "lime": 0x00FF00, "olive": 0x808000, "yellow": 0xFFFF00,
        "navy": 0x000080, "blue": 0x0000FF, "teal": 0x008080, "aqua": 0x00FFFF,
    ]

    init(_ colour: RGBColor) {
        self.colour = colour
    }

    init?(argument: String) {
        if let value = ColourArgument.names[argument.lowercased()] {
            self.init(value)
            return
        }
        let digits = argument.hasPrefix("#") ? argument.dropFirst() : argument[...]
        // A number's own sign is none of a colour's.
        guard digits.allSatisfy(\.isHexDigit), let value = Int(digits, radix: 16) else {
            return nil
        }
        switch digits.utf8.count {
        case 3:
            // Each digit stands for two of itself.
            self.init((value >> 8) * 0x110000 | (value >> 4 & 15) * 0x1100 | (value & 15) * 0x11)
        case 6: self.init(value)
        default: return nil
        }
    }

    /// Red in the third byte, blue in the first.
    private init(_ value: Int) {
        func byte(_ shift: Int) -> UInt8 { UInt8(truncatingIfNeeded: value >> shift) }
        self.init(RGBColor(red: byte(16), green: byte(8), blue: byte(0)))
    }

    var defaultValueDescription: String { colour == .white ? "white" : "#\(colour)" }
}

/// A number of failures, `10`, or a share of the entries, `5%`.
struct ToleranceArgument: ExpressibleByArgument {
    let tolerance: FailureTolerance

    init?(argument: String) {
        if argument.hasSuffix("%") {
            guard let percent = Double(argument.dropLast()), (0...100).contains(percent) else {
                return nil
            }
            tolerance = .percent(percent)
        } else {
            guard let count = Int(argument), count >= 0 else { return nil }
            tolerance = .count(count)
        }
    }

    var defaultValueDescription: String { "0" }

    init(_ tolerance: FailureTolerance) {
        self.tolerance = tolerance
    }
}

/// What to do while another run holds the cache: `fail`, `skip`, `wait` or `wait=DURATION`.
enum LockArgument: ExpressibleByArgument, Equatable {
    case fail
    case skip
    case wait(Duration?)

    init?(argument: String) {
        switch argument {
        case "fail": self = .fail
        case "skip": self = .skip
        case "wait": self = .wait(nil)
        default:
            guard argument.hasPrefix("wait="),
                let limit = DurationArgument(argument: String(argument.dropFirst(5)))
            else { return nil }
            self = .wait(limit.duration)
        }
    }

    var defaultValueDescription: String { "fail" }
}

/// When something is shown: `auto` means on a terminal.
enum Showing: String, ExpressibleByArgument, CaseIterable {
    case auto, always, never

    func isOn(automatically: Bool) -> Bool {
        switch self {
        case .auto: automatically
        case .always: true
        case .never: false
        }
    }
}

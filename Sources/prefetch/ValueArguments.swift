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

import ArgumentParser
import CacheStorage
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

/// The size limit of a whole cache, as the rule ``PruneRule/maxSize`` reads it. Below 1 MiB a unit is required.
struct SizeLimitArgument: ExpressibleByArgument {
    let size: ByteCount

    init?(argument: String) {
        guard let setting = PruneRule.maxSize.setting(argument) else { return nil }
        size = ByteCount(Int(setting.value))
    }
}

/// A size as flags take it; see `ByteCount.init(quantity:)`.
struct SizeArgument: ExpressibleByArgument {
    let size: ByteCount

    init(_ size: ByteCount) {
        self.size = size
    }

    init?(argument: String) {
        guard let size = ByteCount(quantity: argument) else { return nil }
        self.size = size
    }

    var defaultValueDescription: String { size.quantityDescription }
}

/// Width and height in pixels, `640x480`; each is 0 or more.
struct DimensionsArgument: ExpressibleByArgument {
    let width: Int
    let height: Int

    init?(argument: String) {
        let parts = argument.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count == 2, let width = DimensionsArgument.number(parts[0]),
            let height = DimensionsArgument.number(parts[1])
        else { return nil }
        self.width = width
        self.height = height
    }

    private static func number(_ text: Substring) -> Int? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }
}

/// A colour as flags take it; see `RGBColor.init(text:)`.
struct ColourArgument: ExpressibleByArgument {
    let colour: RGBColor

    init(_ colour: RGBColor) {
        self.colour = colour
    }

    init?(argument: String) {
        guard let colour = RGBColor(text: argument) else { return nil }
        self.colour = colour
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

/// A percentage above 0 and up to 100.
struct ShareArgument: ExpressibleByArgument {
    let share: Share

    init(_ share: Share) {
        self.share = share
    }

    init?(argument: String) {
        guard let share = Share(percentage: argument) else { return nil }
        self.share = share
    }

    var defaultValueDescription: String { share.description }
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

import ArgumentParser
import CacheStorage
import Pipeline
import PrefetchModel

extension ArgumentHelp {
    /// The help about a value with a name: `--limit N`.
    static func value(_ name: String, _ text: String) -> ArgumentHelp {
        ArgumentHelp("\(text)", valueName: name)
    }
}

// Values of flags that no other module has

extension FixedWidthInteger {
    /// Takes digits only: the standard initializer takes a sign.
    init?(digits text: some StringProtocol) {
        guard text.utf8.allSatisfy(\.isDecimalDigit) else { return nil }
        self.init(text)
    }
}

/// The value of a flag that is `auto` or something else.
struct OrAuto<Wrapped: ExpressibleByArgument & Sendable>: ExpressibleByArgument {
    /// Nil for `auto`.
    let value: Wrapped?

    init(_ value: Wrapped?) {
        self.value = value
    }

    init?(argument: String) {
        guard argument != "auto" else {
            value = nil
            return
        }
        guard let argument = Wrapped(argument: argument) else { return nil }
        value = argument
    }

    var defaultValueDescription: String { value?.defaultValueDescription ?? "auto" }
}

/// The size limit of a whole cache, as the rule ``PruneRule/maxSize`` reads it. Below 1 MiB a unit
/// is required.
struct SizeLimitArgument: ExpressibleByArgument {
    let size: ByteCount

    init?(argument: String) {
        guard let setting = PruneRule.maxSize.setting(argument) else { return nil }
        size = ByteCount(Int(setting.value))
    }
}

/// A number of requests in a time: `5/s`, `0.5/s`, `30/m`, `100/h`; a bare number is per second.
struct RateArgument: ExpressibleByArgument, Equatable {
    /// The time between two requests, up to a day.
    let interval: Duration

    private static let units: [Substring: Duration] = [
        "s": .seconds(1), "m": .seconds(60), "h": .seconds(3600),
    ]

    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, let count = Double(first), count.isFinite, count > 0,
            let unit = parts.count == 1 ? .seconds(1) : RateArgument.units[parts[1]],
            parts.count <= 2, first.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." })
        else { return nil }
        interval = unit / count
        guard interval <= .seconds(86_400) else { return nil }
    }
}

/// Width and height in pixels, `640x480`; each is 0 or more.
struct DimensionsArgument: ExpressibleByArgument {
    let width: Int
    let height: Int

    init?(argument: String) {
        let parts = argument.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count == 2, let width = Int(digits: parts[0]),
            let height = Int(digits: parts[1])
        else { return nil }
        self.width = width
        self.height = height
    }
}

/// The value of `--allow-formats`: comma-separated names.
struct AllowedFormats {
    let formats: Set<EncodedImageFormat>
}

extension AllowedFormats: ExpressibleByArgument {
    init?(argument: String) {
        guard let formats = EncodedImageFormat.formats(in: argument, separator: ",") else {
            return nil
        }
        self.formats = formats
    }

    var defaultValueDescription: String {
        EncodedImageFormat.text(of: formats).replacing("+", with: ",")
    }
}

struct BodyFilterArgument: ExpressibleByArgument {
    /// Nil for `none`, which takes back the filter of a configuration file.
    let filter: BodyFilter?

    init?(argument: String) {
        filter = argument == "none" ? nil : BodyFilter(argument)
        if filter == nil, argument != "none" { return nil }
    }
}

/// When to show something: `auto` means on a terminal.
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

/// Whether a run writes for the CI system that runs it.
enum CIChoice: String, ExpressibleByArgument, CaseIterable {
    case auto, none
}

import ArgumentParser
import CacheStorage
import Glibc
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

/// The value of `--accept-formats`: names of formats, comma-separated.
struct AcceptedFormats: ExpressibleByArgument, Hashable {
    private let names: [String]

    init?(argument: String) {
        names = argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static let formats = DecodedFormats.all

    /// The end of the message about a format that is unknown, or that this build does not decode.
    var mistake: String? {
        let isKnown: (String) -> Bool = {
            ImageFormat(argument: $0).map(AcceptedFormats.formats.contains) == true
        }
        guard let wrong = names.first(where: { !isKnown($0) }) else { return nil }
        let known = AcceptedFormats.formats.map(\.rawValue).joined(separator: ",")
        return "takes formats that this build decodes, some of \(known), not '\(wrong)'"
    }

    /// The value of `Accept`. An origin without such an image may send another.
    var field: String {
        let types = names.compactMap { ImageFormat(argument: $0)?.mediaType }
        return (types + ["*/*;q=0.1"]).joined(separator: ", ")
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

/// The shard of a run: `I/N`, `I` with a plan, `auto`, or `auto/N`.
enum ShardArgument: ExpressibleByArgument, Hashable {
    case one(index: Int, count: Int?)
    /// The index of the array job that runs this command.
    case auto(count: Int?)

    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2 else { return nil }
        var count: Int?
        if parts.count == 2 {
            guard let number = Int(digits: parts[1]), Shard.counts.contains(number) else {
                return nil
            }
            count = number
        }
        if parts[0] == "auto" {
            self = .auto(count: count)
        } else {
            guard let index = Int(digits: parts[0]) else { return nil }
            self = .one(index: index, count: count)
        }
    }

    static var allValueStrings: [String] { ["I/N", "auto", "auto/N"] }
    static var defaultCompletionKind: CompletionKind { .list(["auto"]) }
}

/// The place of this process in an array job.
struct ArrayTask: Hashable {
    let index: Int
    /// Nil if the engine does not tell.
    let count: Int?
    /// The variable that gives the index.
    let variable: String
}

extension ArrayTask {
    /// The environment of AWS Batch, Slurm or Kubernetes; nil outside an array job.
    ///
    /// Slurm gives the number of tasks that were submitted. It is that of the shards only if their
    /// indexes are all from 0 on, which is not so when missing shards are submitted again.
    init?(_ value: (String) -> String?) {
        if let index = ArrayTask.number("AWS_BATCH_JOB_ARRAY_INDEX", value) {
            self.init(
                index: index, count: ArrayTask.number("AWS_BATCH_JOB_ARRAY_SIZE", value),
                variable: "AWS_BATCH_JOB_ARRAY_INDEX")
        } else if let index = ArrayTask.number("SLURM_ARRAY_TASK_ID", value) {
            let count = ArrayTask.number("SLURM_ARRAY_TASK_COUNT", value)
            let isWhole =
                ArrayTask.number("SLURM_ARRAY_TASK_MIN", value) == 0
                && ArrayTask.number("SLURM_ARRAY_TASK_MAX", value) == count.map { $0 - 1 }
            self.init(index: index, count: isWhole ? count : nil, variable: "SLURM_ARRAY_TASK_ID")
        } else if let index = ArrayTask.number("JOB_COMPLETION_INDEX", value) {
            self.init(index: index, count: nil, variable: "JOB_COMPLETION_INDEX")
        } else {
            return nil
        }
    }

    private static func number(_ name: String, _ value: (String) -> String?) -> Int? {
        value(name).flatMap { Int(digits: $0) }
    }
}

/// A time in the past: an age like `12h` or `7d`, or a date in UTC like `2026-11-21` or
/// `2026-11-21T05:37:16Z`.
enum SinceArgument: ExpressibleByArgument {
    case ago(Duration)
    case date(Timestamp)

    /// The accepted forms, for messages.
    static let form = "a duration like 12h or 7d, or a date like 2026-11-21 or 2026-11-21T05:37:16Z"

    init?(argument: String) {
        if let duration = Duration(quantity: argument) {
            self = .ago(duration)
        } else if let date = SinceArgument.date(argument) {
            self = .date(date)
        } else {
            return nil
        }
    }

    func moment(at now: Timestamp) -> Timestamp {
        switch self {
        case .ago(let duration): now.advanced(by: .zero - duration)
        case .date(let date): date
        }
    }

    /// Parses `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ` (RFC 3339).
    private static func date(_ text: String) -> Timestamp? {
        let parts = text.split(separator: "T", omittingEmptySubsequences: false)
        guard let date = parts.first, parts.count <= 2,
            let days = numbers(date, separator: "-", digits: [4, 2, 2])
        else { return nil }
        var fields = tm()
        fields.tm_year = days[0] - 1900
        fields.tm_mon = days[1] - 1
        fields.tm_mday = days[2]
        if parts.count == 2 {
            guard parts[1].last == "Z",
                let times = numbers(parts[1].dropLast(), separator: ":", digits: [2, 2, 2])
            else { return nil }
            (fields.tm_hour, fields.tm_min, fields.tm_sec) = (times[0], times[1], times[2])
        }
        var normal = fields
        let seconds = timegm(&normal)
        // `timegm` accepts 31 February as a day in March.
        guard normal.tm_mday == fields.tm_mday, normal.tm_mon == fields.tm_mon,
            normal.tm_hour == fields.tm_hour, normal.tm_min == fields.tm_min,
            normal.tm_sec == fields.tm_sec
        else { return nil }
        return Timestamp(seconds: Int64(seconds))
    }

    /// The parts as numbers, if each has the given count of digits.
    private static func numbers(
        _ text: Substring, separator: Character, digits: [Int]
    ) -> [Int32]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int32(digits: $0) }
        return parts.map(\.utf8.count) == digits && numbers.count == parts.count ? numbers : nil
    }
}

/// A time of the day in local time, `hh:mm`: the next moment with it.
struct TimeOfDayArgument: ExpressibleByArgument {
    private let time: TimeOfDay

    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            let hour = Int32(digits: parts[0]), let minute = Int32(digits: parts[1]),
            let time = TimeOfDay(hour: Int(hour), minute: Int(minute))
        else { return nil }
        self.time = time
    }

    /// The time until the next such moment, more than 0. The clock may be set while it passes.
    func timeLeft(at now: Timestamp) -> Duration {
        let moment = time.next(after: now.milliseconds / 1000) { seconds in
            var seconds = Int(seconds)
            var local = tm()
            localtime_r(&seconds, &local)
            return Int64(local.tm_gmtoff)
        }
        return Timestamp(seconds: moment).timeSince(now)
    }
}

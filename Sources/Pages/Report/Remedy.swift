import PrefetchModel
import Reporting

/// The advice about failures with one cause, and the command to run next.
struct Remedy {
    /// Nil if the command says everything.
    let advice: String?
    let command: String

    init(_ row: FailureRow, lists: [String]) {
        let cause = HostFailures.Cause(row.reason, httpStatus: row.httpStatus)
        let again = Remedy.run(lists)
        let list = Remedy.list(row)
        switch row.reason {
        case .httpStatus where row.httpStatus == 404 || row.httpStatus == 410:
            advice = "The images are gone: remove the URLs from the list."
            command = "\(list) --urls"
        case .dns, .connect, .tls:
            advice = nil
            command = "prefetch doctor --online"
        case .timeout: (advice, command) = (nil, "\(again) --timeout 15m")
        case .stalled: (advice, command) = (nil, "\(again) --stall-timeout 60s")
        case .redirect: (advice, command) = (nil, "\(again) --max-redirects 20")
        case .tooLarge: (advice, command) = (nil, "\(again) --max-filesize 256MiB")
        case .tooManyPixels: (advice, command) = (nil, "\(again) --max-pixels 400000000")
        case .unsupportedImage: (advice, command) = (nil, "\(again) --other-formats store")
        case .uncacheable:
            advice = "The host forbids storing; --ttl overrides it."
            command = "\(again) --ttl 1d"
        case .interrupted: (advice, command) = ("The next run tries again.", again)
        case .invalidEntry, .unsupportedScheme:
            (advice, command) = (
                "Correct the line in the list.", "prefetch plan\(Remedy.names(lists))"
            )
        case .disk: (advice, command) = ("Free space on the cache's disk.", "prefetch doctor")
        case .corruptImage, .notAnImage:
            advice = Remedy.sentence(Advice.about(cause)) ?? "The origin serves damaged files."
            command = list
        case .httpStatus, .refusedAddress, .bodyFilter, .internal, .otherFormat,
            .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes, .notSelected, .robots:
            advice = Remedy.sentence(Advice.about(cause))
            command = list
        }
    }

    private static func sentence(_ advice: String?) -> String? {
        advice.map { $0.prefix(1).uppercased() + $0.dropFirst() + "." }
    }

    private static func list(_ row: FailureRow) -> String {
        let host = row.host.map { " --host \(quoted($0))" } ?? ""
        return "prefetch failed list\(host) --reason \(row.reason.rawValue)"
    }

    private static func run(_ lists: [String]) -> String {
        "prefetch\(lists.first == nil ? " LIST" : names(lists)) --retry-failed"
    }

    private static func names(_ lists: [String]) -> String {
        lists.prefix(3).map { " \(quoted(clipped($0)))" }.joined()
    }

    /// The text as one word of a POSIX shell.
    static func quoted(_ text: String) -> String {
        let isPlain =
            !text.isEmpty && text.first != "-"
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 48...57, 65...90, 97...122: true
                default: "-._/:@%+,".utf8.contains(byte)
                }
            }
        guard !isPlain else { return text }
        let word = text.split(separator: "'", omittingEmptySubsequences: false)
            .joined(separator: "'\\''")
        return "\(text.first == "-" ? "./" : "")'\(word)'"
    }
}

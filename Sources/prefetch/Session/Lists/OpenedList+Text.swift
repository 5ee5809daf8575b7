import CacheStorage
import Pipeline
import PrefetchModel

extension OpenedList {
    /// One line on the way it was opened.
    var text: String {
        let stored = "the copy of \(file.list.validatedAt)"
        // It has failed before.
        let news = isNews ? "available again: " : ""
        return switch source {
        case .fetched(let time):
            "\(news)fetched \(ByteCount(file.size)) in \(time.wholeMilliseconds) ms"
        case .notModified(let time): "\(news)not modified, in \(time.wholeMilliseconds) ms"
        case .stored: "using \(stored)"
        case .copy(let failure): "\(failure.message); using \(stored)"
        }
    }

    /// Whether the request for it failed.
    var isFallback: Bool { if case .copy = source { true } else { false } }
}

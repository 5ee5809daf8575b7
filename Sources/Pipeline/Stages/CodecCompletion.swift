import EntryLifecycle
import PrefetchModel

/// The result of a codec job.
struct CodecCompletion: Sendable {
    enum Result: Sendable {
        case processed(ProcessingResult)
        /// The part of a broken body that was kept; nil when none was.
        case partSaved(PartialBody?)
        /// The cache cannot be written.
        case fatal(FatalError)
    }

    let id: Int
    let result: Result
    var decode: Duration?
    var encode: Duration?
    /// A remark about a stored image; empty for none.
    var remark = ""
}

import EntryLifecycle
import PrefetchModel

/// What the coordinator hears of a job.
struct CodecCompletion: Sendable {
    enum Result: Sendable {
        case processed(ProcessingResult)
        /// What there is of a broken body now; nil when nothing could be kept.
        case partSaved(PartialBody?)
        /// The cache cannot be written.
        case fatal(FatalError)
    }

    let id: Int
    let result: Result
    var decode: Duration?
    var encode: Duration?
    /// What is to be said of an image that is stored; empty for nothing.
    var remark = ""
}

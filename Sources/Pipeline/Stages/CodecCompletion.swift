import EntryLifecycle
import PrefetchModel

/// The result of a codec job.
struct CodecCompletion: Sendable {
    enum JobResult: Sendable {
        case processed(ProcessingResult)
        /// The part of a broken body that was kept; nil when none was.
        case partSaved(PartialBody?)
        case fatal(any Error)
    }

    let id: Int
    let result: JobResult
    var decode: Duration?
    var encode: Duration?
    var remark = ""
    /// Variants of ``CodecJob/Download/others``, for the same row.
    var others: [OtherVariant] = []
}

/// A variant that a run has not requested.
struct OtherVariant: Sendable {
    let variant: RequestedVariant
    let image: StoredImage?
}

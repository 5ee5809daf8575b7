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
    /// Variants of ``CodecJob/Download/others``, for the same row.
    var others: [OtherVariant] = []
}

/// A variant that a run has not requested.
struct OtherVariant: Sendable {
    let variant: RequestedVariant
    /// Nil if it could not be made.
    let image: StoredImage?
}

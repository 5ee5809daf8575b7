package import PrefetchModel

/// A failure of a request, after all retries.
package struct ObjectStorageError: ReportableError, CustomStringConvertible {
    package enum Cause: Sendable {
        /// The object, the bucket or the upload does not exist.
        case missing
        case cancelled
        case late
        /// The bytes differ from their digest.
        case damaged
        case other
    }

    package let kind: Cause
    /// The subject and what happened, without a final stop.
    package let description: String
    package let hint: String?

    package init(_ kind: Cause = .other, _ description: String, hint: String? = nil) {
        self.kind = kind
        self.description = description
        self.hint = hint
    }

    /// Whether one object or database is to blame, and others may be fine.
    var isOfOneObject: Bool { kind == .missing || kind == .damaged }

    package var userError: UserError {
        UserError(
            kind == .cancelled || kind == .late ? .cancelled : .failed, description, hint: hint)
    }
}

package import PrefetchModel

/// A failure of a request, after all retries.
package struct ObjectStorageError: Error, CustomStringConvertible {
    package enum Kind: Sendable {
        /// The object, the bucket or the upload does not exist.
        case missing
        /// The request was stopped.
        case cancelled
        /// The bytes differ from their digest.
        case damaged
        case other
    }

    package let kind: Kind
    /// The subject and what happened, without a final stop.
    package let description: String
    package let hint: String?

    package init(_ kind: Kind = .other, _ description: String, hint: String? = nil) {
        self.kind = kind
        self.description = description
        self.hint = hint
    }
}

extension ObjectStorageError: ReportableError {
    package var userError: UserError { UserError(description, hint: hint) }
}

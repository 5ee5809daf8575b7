package import PrefetchModel

/// The reason why a text is not a URL.
package enum URLParsingError: Error, Equatable {
    /// The text is not a URL that can be requested.
    case invalid(Failure)
    /// libcurl is needed to read the text and cannot be loaded.
    case missingLibrary(UserError)

    init(_ reason: FailureReason, _ message: String) {
        self = .invalid(Failure(reason, message))
    }

    /// One line that repeats nothing of the text.
    package var message: String {
        switch self {
        case .invalid(let failure): failure.message
        case .missingLibrary(let missing): missing.description
        }
    }

    /// A remedy other than correcting the text.
    package var hint: String? {
        switch self {
        case .invalid: nil
        case .missingLibrary(let missing): missing.hint
        }
    }
}

extension URLParsingError: ReportableError {
    package var userError: UserError { UserError(message, hint: hint) }
}

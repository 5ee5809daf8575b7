package import PrefetchModel

/// Why a text has not become a URL.
package enum URLParsingError: Error, Equatable {
    /// It is none that can be requested.
    case problem(EntryBatch.Problem)
    /// libcurl has to read it and cannot be loaded, which is no fault of the text.
    case missingLibrary(CurlLibrary.Missing)

    init(_ reason: FailureReason, _ message: String) {
        self = .problem(EntryBatch.Problem(reason: reason, message: message))
    }

    /// One line that holds nothing of the text.
    package var message: String {
        switch self {
        case .problem(let problem): problem.message
        case .missingLibrary(let missing): missing.description
        }
    }

    /// What can be done about it, beside mending the text.
    package var hint: String? {
        switch self {
        case .problem: nil
        case .missingLibrary(let missing): missing.hint
        }
    }
}

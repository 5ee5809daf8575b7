import PrefetchModel
import URLParsing

/// A line that is no entry.
struct LineProblem: Error, Equatable {
    /// One line, without the manifest's name and the line's number.
    let failure: Failure
    /// Whether the message names a field, so that the URL alone identifies the line.
    let namesField: Bool

    /// The header of a table with one column.
    static let header = LineProblem("a column's name, not a URL; remove this line")

    init(_ message: String, namesField: Bool = false) {
        self.init(Failure(.invalidEntry, message), namesField: namesField)
    }

    init(_ failure: Failure, namesField: Bool = false) {
        self.failure = failure
        self.namesField = namesField
    }
}

/// The reason why a line was not appended.
enum LineFailure: Error {
    case problem(LineProblem)
    /// libcurl is needed to read the line and cannot be loaded.
    case missingLibrary(CurlLibrary.Missing)

    init(_ error: URLParsingError) {
        switch error {
        case .invalid(let failure): self = .problem(LineProblem(failure))
        case .missingLibrary(let missing): self = .missingLibrary(missing)
        }
    }
}

import PrefetchModel
import URLParsing

/// A line that is no entry.
struct LineProblem: Error, Equatable {
    /// One line, without the manifest's name and the line's number.
    let failure: Failure
    /// Whether the message names a field, so the URL alone identifies the line.
    let namesField: Bool
    /// The kind of the line, which says whether it may name an image.
    let omission: ListOmission

    /// `unit` is the word for the text: `line`, `row`.
    static func tooLong(_ unit: String, _ maximumBytes: Int) -> LineProblem {
        LineProblem("the \(unit) is longer than \(maximumBytes) bytes")
    }

    /// Checks a URL, which in a text line always passes.
    ///
    /// `unit` is the word for its place: `line`, `row`.
    static func check(url: UnsafeBufferPointer<UInt8>, _ unit: String) throws {
        guard !url.isEmpty else { throw LineProblem.withoutURL(unit) }
        guard !url.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw LineProblem("the URL contains a control character")
        }
    }

    /// The same problem of a line that may still name an image.
    var hidingImages: LineProblem { LineProblem(failure, namesField: namesField) }

    var isExclusion: Bool { failure.reason.isExclusion }

    static func withoutURL(_ unit: String) -> LineProblem {
        LineProblem(Failure(.invalidEntry, "the \(unit) has no URL"), omission: .emptyURL)
    }

    /// The header of a table with one column.
    static let header = LineProblem(
        Failure(.invalidEntry, "a column's name, not a URL; remove this line"), omission: .header)

    init(_ message: String, namesField: Bool = false) {
        self.init(Failure(.invalidEntry, message), namesField: namesField)
    }

    init(_ failure: Failure, namesField: Bool = false, omission: ListOmission = .invalidEntry) {
        self.failure = failure
        self.namesField = namesField
        self.omission = omission
    }
}

extension URLParser {
    /// Calls a method of the parser for the URL of a line.
    ///
    /// - Throws: ``LineProblem`` if it is no URL; ``URLParsingError`` if libcurl cannot be loaded.
    func parse<Parsed>(
        lineURL url: UnsafeBufferPointer<UInt8>,
        _ parse: (URLParser) throws(URLParsingError) -> Parsed
    ) throws -> Parsed {
        do {
            return try parse(self)
        } catch {
            guard case .invalid(let failure) = error else { throw error }
            var omission = ListOmission.invalidEntry
            if failure.reason == .unsupportedScheme {
                let scheme = url.prefix { $0 != UInt8(ascii: ":") }.map(\.lowercased)
                omission = scheme.elementsEqual("data".utf8) ? .dataURL : .otherScheme
            }
            throw LineProblem(failure, omission: omission)
        }
    }
}

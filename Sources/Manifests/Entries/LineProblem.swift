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
    /// Whether the line is a row without a picture, which is counted and no failure.
    var isSkipped = false

    /// `unit` is the word for the text: `line`, `row`.
    static func tooLong(_ unit: String, _ maximumBytes: Int) -> LineProblem {
        LineProblem(
            "the \(unit) is longer than \(ByteCount(maximumBytes)) (--max-row-size)")
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
    var hidingImages: LineProblem {
        LineProblem(failure, namesField: namesField, isSkipped: isSkipped)
    }

    var isExclusion: Bool { failure.reason.isExclusion }

    static func withoutURL(_ unit: String) -> LineProblem {
        LineProblem(
            Failure(.invalidEntry, "the \(unit) has no URL"), omission: .emptyURL,
            isSkipped: true)
    }

    /// Several URLs where one is expected; `place` continues `several URLs in`.
    static func several(in place: String) -> LineProblem {
        LineProblem("several URLs in \(place); --each makes each of them an entry")
    }

    /// The header of a table with one column.
    static let header = LineProblem(
        Failure(.invalidEntry, "a column's name, not a URL; remove this line"), omission: .header)

    init(_ message: String, namesField: Bool = false) {
        self.init(Failure(.invalidEntry, message), namesField: namesField)
    }

    init(
        _ failure: Failure, namesField: Bool = false, omission: ListOmission = .invalidEntry,
        isSkipped: Bool = false
    ) {
        self.failure = failure
        self.namesField = namesField
        self.omission = omission
        self.isSkipped = isSkipped
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
            let scheme = String(
                decoding: url.prefix(24).prefix { $0 != UInt8(ascii: ":") }.map(\.lowercased),
                as: UTF8.self)
            let isLocal = LineProblem.localSchemes.contains(scheme)
            if failure.reason == .unsupportedScheme {
                let omission: ListOmission =
                    scheme == "data" ? .dataURL : isLocal ? .emptyURL : .otherScheme
                throw LineProblem(failure, omission: omission, isSkipped: isLocal)
            }
            guard url.starts(with: "//".utf8), failure.message == URLParser.missingScheme else {
                throw LineProblem(failure)
            }
            throw LineProblem(failure.message.replacing("https://", with: "https:"))
        }
    }
}

extension LineProblem {
    /// The schemes of URLs that mean something inside a program only, such as a browser, and so
    /// name no picture.
    fileprivate static let localSchemes: Set<String> = [
        "about", "blob", "chrome", "chrome-extension", "cid", "filesystem", "javascript",
        "moz-extension",
    ]
}

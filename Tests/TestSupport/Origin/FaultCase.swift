/// One row of the table of faults: an origin's behaviour and the expected result of the entry.
///
/// `Fault` gives the name and parameter in the URL (see ``Origin/serveFaults(of:fallback:)``),
/// ``meaning`` describes the response, and the rest is the expectation.
package struct FaultCase: Sendable {
    /// The target of the entry's URL.
    package enum Place: Sendable {
        /// `/f/NAME/PARAMETER/FILE` at an origin that serves faults.
        case path
        /// Its own port, which treats connections like this.
        case port(Origin.Accepting)
        /// A closed port.
        case closedPort
        /// This URL.
        case url(String)
    }

    /// The kind of a failure, in the terms of the table `failure`.
    package enum Kind: String, Sendable {
        case permanent
        case transient
        /// Fixable by the user: recorded but never blacklisted.
        case ours
    }

    package struct Expectation: Sendable {
        /// Whether `downloaded` is acceptable.
        package let mayArrive: Bool
        /// The acceptable reasons; empty if it must be downloaded.
        package let reasons: Set<String>
        /// Nil if it must be downloaded, or if the kind depends on the reason.
        package let kind: Kind?

        static let arrives = Expectation(mayArrive: true, reasons: [], kind: nil)

        static func permanent(_ reasons: String...) -> Expectation {
            Expectation(mayArrive: false, reasons: Set(reasons), kind: .permanent)
        }

        static func transient(_ reasons: String...) -> Expectation {
            Expectation(mayArrive: false, reasons: Set(reasons), kind: .transient)
        }

        static func ours(_ reasons: String...) -> Expectation {
            Expectation(mayArrive: false, reasons: Set(reasons), kind: .ours)
        }

        /// Rejected with any of these reasons, for responses that clients interpret differently.
        static func refused(_ reasons: String...) -> Expectation {
            Expectation(mayArrive: false, reasons: Set(reasons), kind: nil)
        }

        /// Stored or rejected, as the client prefers.
        static func either(_ reasons: String...) -> Expectation {
            Expectation(mayArrive: true, reasons: Set(reasons), kind: nil)
        }
    }

    /// The time-out that ends the transfer, if any.
    package enum Wait: Sendable {
        case none
        case connecting
        case stall
        case total
    }

    /// The input for creating a response.
    struct Context: Sendable {
        let request: Origin.Request
        let parameter: Int
        let file: [UInt8]
        let fileName: String

        /// A URL of the same origin under another host name.
        func url(_ path: String, host: String) -> String {
            let port = request.header("host")?.split(separator: ":").last ?? ""
            return "http://\(host):\(port)\(path)"
        }

        /// The path of the valid file at this origin.
        var plainPath: String { "/f/plain/0/\(fileName)" }
    }

    typealias Answer = @Sendable (Context) -> Response

    package let name: String
    package let parameter: Int
    /// One of ``files``.
    package let file: String
    package let place: Place
    package let expectation: Expectation
    package let wait: Wait
    /// Whether a client pauses the whole host after this response.
    package let coolsHost: Bool
    /// One sentence that describes the origin's behaviour.
    package let meaning: String
    let answer: Answer

    init(
        _ name: String, at parameter: Int = 0, file: String = "x.png", place: Place = .path,
        _ expectation: Expectation, wait: Wait = .none, coolsHost: Bool = false,
        _ meaning: String, _ answer: @escaping Answer = { .image($0.file) }
    ) {
        self.name = name
        self.parameter = parameter
        self.file = file
        self.place = place
        self.expectation = expectation
        self.wait = wait
        self.coolsHost = coolsHost
        self.meaning = meaning
        self.answer = answer
    }

    package var path: String { "/f/\(name)/\(parameter)/\(file)" }

    /// A separate host name per case isolates effects on a host.
    package var host: String { "\(name)-\(parameter).localhost" }

    /// The files that the rows use: a PNG of about 5 kB, a JPEG, a TIFF and a page.
    package static let files: [String: [UInt8]] = [
        "x.png": Fixtures.png(width: 40, height: 40, isNoise: true),
        "x.jpg": (try? Fixtures.file("baseline.jpg")) ?? [],
        "x.tiff": Fixtures.tiff,
        "page.html": Array("<!doctype html><title>Sign in</title>".utf8),
    ]

    /// All rows.
    package static let all: [FaultCase] =
        connections + endings + silences + reuse + lengths + chunks + ambiguousFraming + encodings
        + heads + statuses
        + redirects + cooling + validators + contents
}

extension FaultCase: CustomStringConvertible {
    package var description: String { "\(name)/\(parameter)/\(file): \(meaning)" }
}

/// One row of the table of faults: what an origin does, and what must become of the entry.
///
/// `Fault` says under which name and parameter a URL asks for it (see
/// ``Origin/serveFaults(of:fallback:)``), ``meaning`` what is answered, and the rest what a client owes.
package struct FaultCase: Sendable {
    /// Where the entry's URL leads.
    package enum Place: Sendable {
        /// To `/f/NAME/PARAMETER/FILE` at an origin that serves faults.
        case path
        /// To a port of its own that treats connections so.
        case port(Origin.Accepting)
        /// To a port where nobody listens.
        case closedPort
        /// To this URL.
        case url(String)
    }

    /// What failures mean for later runs, in the words of the table `failure`.
    package enum Kind: String, Sendable {
        case permanent
        case transient
        /// The user's to mend: known, and counted for nothing.
        case ours
    }

    package struct Expectation: Sendable {
        /// Whether `downloaded` is right.
        package let mayArrive: Bool
        /// The reasons that are right; empty when it must arrive.
        package let reasons: Set<String>
        /// Nil where it must arrive, or where it depends on the reason.
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

        /// Refused for any of these: what no two clients read alike.
        static func refused(_ reasons: String...) -> Expectation {
            Expectation(mayArrive: false, reasons: Set(reasons), kind: nil)
        }

        /// Whole or refused, as the client likes.
        static func either(_ reasons: String...) -> Expectation {
            Expectation(mayArrive: true, reasons: Set(reasons), kind: nil)
        }
    }

    /// The time-out that ends it; everything else ends at once.
    package enum Wait: Sendable {
        case none
        case connecting
        case stall
        case total
    }

    /// What an answer is made from.
    struct Context: Sendable {
        let request: Origin.Request
        let parameter: Int
        let file: [UInt8]
        let fileName: String

        /// A URL of the same origin by another of its names.
        func url(_ path: String, host: String) -> String {
            let port = request.header("host")?.split(separator: ":").last ?? ""
            return "http://\(host):\(port)\(path)"
        }

        /// The sound file at this origin.
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
    /// Whether the answer makes a client leave the whole host alone for a while.
    package let coolsHost: Bool
    /// One sentence on what the origin does.
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

    /// A host of its own, so that what one fault does to its host is no other's matter.
    package var host: String { "\(name)-\(parameter).localhost" }

    /// The files that the rows name: a PNG of about 5 kB, a JPEG, a TIFF and a page.
    package static let files: [String: [UInt8]] = [
        "x.png": Fixtures.png(width: 40, height: 40, isNoise: true),
        "x.jpg": (try? Fixtures.file("baseline.jpg")) ?? [],
        "x.tiff": Fixtures.tiff,
        "page.html": Array("<!doctype html><title>Sign in</title>".utf8),
    ]

    /// Every row.
    package static let all: [FaultCase] =
        connections + endings + silences + reuse + lengths + chunks + encodings + heads + statuses
        + redirects + cooling + validators + contents
}

extension FaultCase: CustomStringConvertible {
    package var description: String { "\(name)/\(parameter)/\(file): \(meaning)" }
}

/// The head of a final response.
package struct Response: Sendable {
    package let status: Int
    package let fields: [HeaderField]
    /// Whether the response announces the body's end, by a length or by chunks. If not, a failing
    /// connection may look like the end.
    package let hasFramedBody: Bool
    /// The target in `Location`; nil without one, and for a status outside of 300..<400.
    package let redirect: Redirect?
    /// The arrival of its last byte.
    package let receivedAt: Timestamp
    /// The reason that an error gives, on one line; nil without one.
    package var reason: String?

    /// The statuses of a whole image: 200, 203 of a proxy that changed the fields, and
    /// 201 and 226, which servers send in its place.
    package static let wholeStatuses: Set = [200, 201, 203, 226]

    /// Whether a host refuses the request for now with this status, and may accept it at a slower
    /// pace.
    package static func isRefusalForPace(_ status: Int?) -> Bool { status == 429 || status == 503 }

    /// Whether the status is that of a redirect to ``redirect``.
    package var isRedirect: Bool { [301, 302, 303, 307, 308].contains(status) }

    package init(
        status: Int, fields: [HeaderField], hasFramedBody: Bool = true, redirect: Redirect? = nil,
        receivedAt: Timestamp
    ) {
        self.status = status
        self.fields = fields
        self.hasFramedBody = hasFramedBody
        self.redirect = redirect
        self.receivedAt = receivedAt
    }
}

package enum Redirect: Hashable, Sendable {
    /// Without credentials: only the user may give them.
    case to(RequestURL)
    /// A target that cannot be requested. `location` is its beginning, for messages.
    case nowhere(location: String, message: String)

    /// The target, for messages.
    package var shown: String {
        switch self {
        case .to(let url): url.description
        case .nowhere(let location, _): location
        }
    }
}

/// The bytes of a body in memory, by count. This includes the gap: bytes at the front that an
/// earlier transfer brought, 0 for a body that is not resumed.
package typealias BodyExtent = (count: Int, gap: Int)

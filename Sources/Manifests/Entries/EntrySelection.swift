import Glibc
package import PrefetchModel

/// The entries that a run wants, by patterns of their URLs.
///
/// An entry is selected if it matches any of ``included``, or there is none, and matches none of
/// ``excluded``.
package struct EntrySelection: Sendable {
    /// A shell pattern (`*`, `?`, `[a-z]`). With a slash it is for the whole URL without user
    /// information, where `*` also matches slashes; otherwise it is for the host's name.
    package struct URLPattern: Sendable {
        package let text: String
        private let isOfHost: Bool
        /// For a host in lower case, as URLs have it.
        private let pattern: [CChar]

        /// - Returns: nil for an empty pattern, and for characters that no URL in normal form has:
        ///   control characters, spaces and all beyond ASCII.
        package init?(_ text: String) {
            guard !text.isEmpty, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                return nil
            }
            self.text = text
            isOfHost = !text.utf8.contains(UInt8(ascii: "/"))
            pattern = Array((isOfHost ? text.lowercased() : text).utf8CString)
        }

        /// `url` and `host` end with a NUL.
        fileprivate func matches(url: [CChar], host: [CChar]) -> Bool {
            fnmatch(pattern, isOfHost ? host : url, 0) == 0
        }
    }

    package var included: [URLPattern] = []
    package var excluded: [URLPattern] = []

    package init() {}

    var isEverything: Bool { included.isEmpty && excluded.isEmpty }

    /// Returns why an entry is not selected, by its URL in normal form; nil if it is.
    func objection(to url: some Collection<UInt8>) -> Failure? {
        guard !isEverything else { return nil }
        let shown = RequestURL(normalized: String(decoding: url, as: UTF8.self)).withoutCredentials
        let text = Array(shown.text.utf8CString)
        let host = Array(String(shown.host).utf8CString)
        if !included.isEmpty, !included.contains(where: { $0.matches(url: text, host: host) }) {
            return Failure(.notSelected, "no --include matches")
        }
        if let pattern = excluded.first(where: { $0.matches(url: text, host: host) }) {
            return Failure(.notSelected, "--exclude \(pattern.text)")
        }
        return nil
    }
}

/// Fields for the entries of some hosts; an entry's own fields are stronger.
package struct HostDefaults: Sendable {
    package var timeToLive: Duration?
    package var headers: [HeaderField] = []
    /// The filter of bodies; nil for the run's.
    package var bodyFilter: BodyFiltering?

    package init() {}

    package var isEmpty: Bool { timeToLive == nil && headers.isEmpty && bodyFilter == nil }

    /// Adds the fields to an entry's own.
    func adding(to own: EntryExtras?) -> EntryExtras {
        var extras = own ?? .empty
        extras.timeToLive = extras.timeToLive ?? timeToLive
        extras.headers = headers.replaced(by: extras.headers)
        extras.bodyFilter = bodyFilter
        return extras
    }
}

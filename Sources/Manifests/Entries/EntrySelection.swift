import Glibc
package import PrefetchModel

/// The entries that a run wants, by patterns of their URLs.
///
/// A URL is selected if it matches any of ``included``, or there is none, and matches none of
/// ``excluded``. This holds for URLs of lists, even if they cannot be requested. Targets of
/// redirects may not be excluded; where a selected image lies is its origin's choice.
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

        fileprivate func matches(_ subject: MatchedText) -> Bool {
            (isOfHost ? subject.hosts : [subject.url]).contains { fnmatch(pattern, $0, 0) == 0 }
        }
    }

    /// The texts that patterns match, each with a NUL.
    fileprivate struct MatchedText {
        let url: [CChar]
        let hosts: [[CChar]]

        /// - Parameter url: In normal form.
        init(_ url: RequestURL) {
            guard !url.isLocal else {
                self = MatchedText(refused: url.text.utf8)
                return
            }
            let shown = url.withoutCredentials
            self.url = Array(shown.text.utf8CString)
            hosts = [Array(String(shown.host).utf8CString)]
        }

        /// The text of a URL that cannot be requested. Patterns without a slash match it, too:
        /// most schemes have no host.
        init(refused bytes: some Collection<UInt8>) {
            let scheme = bytes.prefix { $0 != UInt8(ascii: ":") }
            let rest = bytes.dropFirst(scheme.count)
            let text =
                rest.isEmpty ? Array(bytes) : scheme.map(\.lowercased) + rest
            let lower = text.map(\.lowercased)
            url = text.terminated
            var hosts = [lower]
            if rest.starts(with: "://".utf8) {
                let authority = lower.dropFirst(scheme.count + 3).prefix {
                    !"/?#".utf8.contains($0)
                }
                let host = authority.split(separator: UInt8(ascii: "@")).last ?? []
                hosts.append(Array(host.prefix { $0 != UInt8(ascii: ":") }))
            }
            self.hosts = hosts.map(\.terminated)
        }
    }

    package var included: [URLPattern] = []
    package var excluded: [URLPattern] = []

    package init() {}

    var isEverything: Bool { included.isEmpty && excluded.isEmpty }

    /// Returns why the target of a redirect is excluded; nil without such patterns.
    package var ofRedirects: (@Sendable (Redirect) -> Failure?)? {
        if excluded.isEmpty { return nil }
        return { redirect in
            switch redirect {
            case .to(let url): exclusion(of: MatchedText(url))
            case .nowhere(let location, _): exclusion(of: MatchedText(refused: location.utf8))
            }
        }
    }

    /// Returns why a URL is not selected; nil if it is.
    package func objection(to url: RequestURL) -> Failure? {
        if isEverything { return nil }
        let subject = MatchedText(url)
        return exclusion(of: subject) ?? omission(of: subject)
    }

    /// Returns why an entry is not selected, by its URL in normal form; nil if it is.
    func objection(to url: some Collection<UInt8>) -> Failure? {
        guard !isEverything else { return nil }
        return objection(to: RequestURL(normalized: String(decoding: url, as: UTF8.self)))
    }

    /// Returns the problem of a URL that cannot be requested: that it is not selected, if so.
    ///
    /// One that no pattern includes may be a misspelt one, and still hides an image.
    func judged(_ problem: LineProblem, of url: some Collection<UInt8>) -> LineProblem {
        guard !isEverything, !url.isEmpty else { return problem }
        let subject = MatchedText(refused: url)
        if let failure = exclusion(of: subject) {
            return LineProblem(failure, omission: .notSelected)
        }
        return omission(of: subject).map { LineProblem($0, omission: problem.omission) } ?? problem
    }

    private func exclusion(of subject: MatchedText) -> Failure? {
        excluded.first { $0.matches(subject) }.map {
            Failure(.notSelected, "--exclude \($0.text)")
        }
    }

    private func omission(of subject: MatchedText) -> Failure? {
        included.isEmpty || included.contains { $0.matches(subject) }
            ? nil : Failure(.notSelected, "no --include matches")
    }
}

extension [UInt8] {
    /// As a C string.
    fileprivate var terminated: [CChar] { map { CChar(bitPattern: $0) } + [0] }
}

/// Fields for the entries of some hosts; an entry's own fields are stronger.
package struct HostDefaults: Sendable {
    package var timeToLive: Duration?
    package var headers: [HeaderField] = []
    /// The filter of bodies; nil for the run's.
    package var bodyFilter: BodyFiltering?

    package init() {}

    /// For entries that are stored without a request.
    package var lifetimeOnly: HostDefaults {
        var defaults = HostDefaults()
        defaults.timeToLive = timeToLive
        return defaults
    }

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

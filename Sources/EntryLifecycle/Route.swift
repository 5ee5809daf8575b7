package import PrefetchModel

/// The path of one attempt through redirects, from the listed URL on.
package struct Route: Sendable {
    /// The URL of the present transfer; changes with each redirect.
    package var target: RequestURL
    /// Nil without permanent redirects.
    package var permanent: PermanentTarget?
    package var isPermanentSoFar = true
    /// Whether the first transfer used the target of a remembered permanent redirect.
    package var followsMemory = false
    /// The addresses that the present transfer may use; nil for the rule of listed URLs.
    package var addressRule: AddressRule?
    /// The requests so far, including the present one, to detect loops: a URL without credentials
    /// and ``cookies``. As hashes: a host of long names may have redirected a million waiting
    /// entries.
    package var visited: [Int] = []
    /// The kept cookies that redirects have set: a hash of each value, by a hash of its origin and
    /// name.
    package var cookies: [Int: Int] = [:]
    package var setsCookies = false
    /// Redirects followed since the listed URL was requested.
    package var redirects = 0

    /// libcurl takes no more cookies from a response.
    private static let mostCookies = 50

    /// `addressRule` is for the first transfer; nil for the rule of listed URLs.
    package init(from url: RequestURL, addressRule: AddressRule? = nil) {
        target = url
        self.addressRule = addressRule
    }

    /// Whether a redirect led to another origin than the listed one, which the user's fields and
    /// credentials are not for.
    package func isForeign(to listed: RequestURL) -> Bool {
        target != listed && target.origin != listed.origin
    }

    func hasVisited(_ url: RequestURL) -> Bool { visited.contains(hash(of: url)) }

    private func hash(of url: RequestURL) -> Int {
        url.withoutCredentials.hashValue ^ cookies.hashValue
    }

    mutating func leaveLast() { visited.removeLast() }

    package mutating func visit(_ url: RequestURL) { visited.append(hash(of: url)) }

    /// Takes the cookies that the target's redirect sets, names and values. Later requests send the
    /// kept ones.
    mutating func take(_ cookies: [Substring], isKept: Bool) {
        guard !cookies.isEmpty else { return }
        setsCookies = true
        guard isKept else { return }
        let origin = target.origin
        for cookie in cookies.prefix(Route.mostCookies) {
            let name = String(cookie.prefix { $0 != "=" })
            self.cookies[[origin, name].hashValue] = cookie.hashValue
        }
    }

    /// Uses the target of a remembered permanent redirect.
    mutating func followMemory(to url: RequestURL, until: Timestamp) {
        target = url
        permanent = PermanentTarget(url: url.text, until: until)
        followsMemory = true
    }

    /// Follows a redirect; `rule` is for its target, and `until` the end of its freshness if its
    /// status is permanent.
    ///
    /// A redirect over plain HTTP is not remembered for an entry with an encrypted listed URL.
    package mutating func follow(
        to url: RequestURL, until: Timestamp?, listed: RequestURL, rule: AddressRule
    ) {
        let isDowngraded = listed.isEncrypted && !url.isEncrypted
        target = url
        redirects += 1
        isPermanentSoFar = isPermanentSoFar && !isDowngraded && until != nil
        if isPermanentSoFar, let until {
            permanent = PermanentTarget(
                url: url.text, until: min(until, permanent?.until ?? until))
        }
        // After a redirect from a public address, no further target is the user's choice.
        if addressRule != .redirectedFromPublic { addressRule = rule }
    }
}

extension Route {
    /// The URL of the present transfer, with the listed credentials inside the listed origin, as
    /// with curl.
    package func requestURL(listed: RequestURL) -> RequestURL {
        isForeign(to: listed) ? target : target.withCredentials(of: listed)
    }

    /// Takes the cookies of a redirect, and returns its target; throws the reason not to follow it.
    package mutating func target(
        of response: Response, _ rules: RedirectRules
    ) throws(Failure) -> RequestURL {
        take(response.cookies, isKept: rules.keepsCookies)
        switch response.redirect {
        case nil:
            throw Failure(.redirect, "a redirect without a Location")
        case .nowhere(let location, let message)?:
            throw Failure(.redirect, "a redirect to \(location), which is not followed: \(message)")
        case .to(let url)?:
            if let refusal = refusal(of: url, rules) { throw Failure(.redirect, refusal) }
            return url
        }
    }

    private func refusal(of url: RequestURL, _ rules: RedirectRules) -> String? {
        guard rules.mayLead(from: target, to: url) else {
            return "a redirect from https to \(url) is not followed without --allow-downgrade"
        }
        let remedy =
            setsCookies && !rules.keepsCookies
            ? "; the origin sets a cookie, which --cookie-jar FILE keeps" : ""
        if hasVisited(url) { return "a redirect loop, back to \(url)\(remedy)" }
        let most = rules.maximum
        guard redirects < most else {
            return "more redirects than --max-redirects (\(most))\(remedy)"
        }
        return nil
    }
}

extension Response {
    fileprivate var cookies: [Substring] {
        fields.values(of: "set-cookie").map { $0.prefix { $0 != ";" } }
    }
}

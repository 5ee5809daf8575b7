package import PrefetchModel

extension Route {
    /// The URL of the present transfer, with the listed credentials inside the listed origin, as
    /// with curl.
    package func requestURL(listed: RequestURL) -> RequestURL {
        isForeign(to: listed) ? target : target.withCredentials(of: listed)
    }

    /// Takes the cookies of a redirect, and returns its target.
    ///
    /// - Throws: the reason not to follow it.
    package mutating func target(
        of response: Response, _ rules: EntryRules
    ) throws(Failure) -> RequestURL {
        take(response.cookies, isKept: rules.keepsCookies)
        switch response.redirect {
        case nil:
            throw Failure(.redirect, "a redirect without a Location")
        case .nowhere(let location, let message)?:
            throw Failure(
                .redirect, "a redirect to \(location), which is not followed: \(message)")
        case .to(let url)?:
            if let refusal = refusal(of: url, rules) { throw Failure(.redirect, refusal) }
            return url
        }
    }

    private func refusal(of url: RequestURL, _ rules: EntryRules) -> String? {
        guard rules.mayLead(from: target, to: url) else {
            return "a redirect from https to \(url) is not followed without --allow-downgrade"
        }
        let remedy =
            setsCookies && !rules.keepsCookies
            ? "; the origin sets a cookie, which --cookie-jar FILE keeps" : ""
        if hasVisited(url) { return "a redirect loop, back to \(url)\(remedy)" }
        let most = rules.maximumRedirects
        guard redirects < most else {
            return "more redirects than --max-redirects (\(most))\(remedy)"
        }
        return nil
    }
}

extension Response {
    /// The names and values of cookies.
    fileprivate var cookies: [Substring] {
        fields.values(of: "set-cookie").map { $0.prefix { $0 != ";" } }
    }
}

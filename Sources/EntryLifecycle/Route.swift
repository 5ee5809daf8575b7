package import PrefetchModel

/// The way of one attempt from the listed URL on, through redirects.
package struct Route: Sendable {
    /// Where the present transfer goes; changes with each redirect.
    package internal(set) var target: RequestURL
    /// Where permanent redirects (301, 308) led, as long as no other kind came before them; nil for
    /// nowhere.
    package internal(set) var permanentTarget: RequestURL?
    /// Whether all redirects so far were permanent.
    package internal(set) var isPermanentSoFar: Bool
    /// Whether the first transfer went where an earlier run was redirected for good.
    package internal(set) var followsMemory: Bool
    /// Where the present transfer may lead; nil for the rule of what is listed.
    package internal(set) var addressRule: AddressRule?
    /// The URLs asked so far, without credentials, the present one included, to see loops: their
    /// hashes, since a million entries may wait that a host of long names has redirected.
    package internal(set) var visited: [Int]
    /// Redirects that were followed since the listed URL was asked.
    package internal(set) var redirects: Int

    package init(from url: RequestURL) {
        self.init(
            target: url, permanentTarget: nil, isPermanentSoFar: true, followsMemory: false,
            addressRule: nil, visited: [], redirects: 0)
    }

    /// As it was written down.
    package init(
        target: RequestURL, permanentTarget: RequestURL?, isPermanentSoFar: Bool,
        followsMemory: Bool, addressRule: AddressRule?, visited: [Int], redirects: Int
    ) {
        self.target = target
        self.permanentTarget = permanentTarget
        self.isPermanentSoFar = isPermanentSoFar
        self.followsMemory = followsMemory
        self.addressRule = addressRule
        self.visited = visited
        self.redirects = redirects
    }

    /// Whether a redirect has led to another origin than the listed one, for which nothing that the
    /// user gave is meant.
    package func isForeign(to listed: RequestURL) -> Bool {
        target != listed && target.origin != listed.origin
    }

    func hasVisited(_ url: RequestURL) -> Bool {
        visited.contains(url.withoutCredentials.hashValue)
    }

    /// Forgets that the target was asked.
    mutating func leaveLast() { visited.removeLast() }

    mutating func visit(_ url: RequestURL) { visited.append(url.withoutCredentials.hashValue) }

    /// Goes straight to where an earlier run was redirected for good.
    mutating func followMemory(to url: RequestURL) {
        target = url
        permanentTarget = url
        followsMemory = true
    }

    /// Takes a redirect, which may be permanent by its status; `rule` is for where it leads.
    ///
    /// What an unprotected answer says is not remembered for an entry whose listed URL asks for
    /// protection.
    mutating func follow(
        to url: RequestURL, isPermanent: Bool, listed: RequestURL, rule: AddressRule
    ) {
        let isDowngraded = listed.isEncrypted && !url.isEncrypted
        target = url
        redirects += 1
        isPermanentSoFar = isPermanentSoFar && !isDowngraded && isPermanent
        if isPermanentSoFar { permanentTarget = url }
        // Once the public has sent us somewhere, nothing on the way is the user's choice.
        if addressRule != .redirectedFromPublic { addressRule = rule }
    }
}

package import PrefetchModel

/// Fields for the entries of some hosts; an entry's own fields are stronger.
package struct HostDefaults: Sendable {
    package let timeToLive: Duration?
    package let headers: [HeaderField]
    /// The filter of bodies; nil for the run's.
    package let bodyFilter: BodyFiltering?

    package init(
        timeToLive: Duration? = nil, headers: [HeaderField] = [], bodyFilter: BodyFiltering? = nil
    ) {
        self.timeToLive = timeToLive
        self.headers = headers
        self.bodyFilter = bodyFilter
    }

    package var isEmpty: Bool { timeToLive == nil && headers.isEmpty && bodyFilter == nil }

    /// Adds the fields to an entry's own.
    func adding(to own: EntryExtras?) -> EntryExtras {
        var extras = own ?? EntryExtras()
        extras.timeToLive = extras.timeToLive ?? timeToLive
        extras.headers = headers.replaced(by: extras.headers)
        extras.bodyFilter = bodyFilter
        return extras
    }
}

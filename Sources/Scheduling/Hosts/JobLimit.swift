/// The limit of simultaneous transfers of a run: a number, or found like that of a host.
package struct JobLimit: Sendable {
    private var concurrency: AdaptiveConcurrency
    private let maximum: Int
    private let isAdaptive: Bool
    private var starts = 0

    package init(fixed limit: Int) {
        concurrency = AdaptiveConcurrency(limit: limit, ramps: false)
        maximum = limit
        isAdaptive = false
    }

    /// A limit that grows while the latency of the responses does not.
    package init(first: Int, maximum: Int) {
        concurrency = AdaptiveConcurrency(limit: min(first, maximum), ramps: true)
        self.maximum = maximum
        isAdaptive = true
    }

    package var limit: Int { concurrency.limit }

    /// Notes a start beside `running` transfers.
    package mutating func started(running: Int) -> HostPacing.NumberedStart {
        starts += 1
        return HostPacing.NumberedStart(number: starts, running: running + 1)
    }

    package mutating func answered(after latency: Duration, _ start: HostPacing.NumberedStart) {
        guard isAdaptive else { return }
        concurrency.answered(
            after: latency, start: start.number, running: start.running, of: starts,
            maximum: maximum)
    }
}

/// A pause of a host that held up a run, as seen about once a second.
package struct HostPause: Hashable, Sendable {
    /// Scheme, host and port.
    package let host: String
    /// The time since the run's start.
    package let start: Duration
    package var end: Duration

    package init(host: String, start: Duration, end: Duration) {
        self.host = host
        self.start = start
        self.end = end
    }
}

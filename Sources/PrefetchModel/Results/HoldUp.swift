/// A host that limits the speed of a run.
package struct HoldUp: Hashable, Sendable {
    package var host: String
    /// Its responses a second; nil if unknown.
    package var perSecond: Double?
    package var inFlight: Int
    /// Entries waiting for it, including retries.
    package var waiting: Int
    /// The remaining pause of the host; nil if it is being requested.
    package var pause: Duration?

    package init(host: String, inFlight: Int, waiting: Int, pause: Duration? = nil) {
        self.host = host
        self.inFlight = inFlight
        self.waiting = waiting
        self.pause = pause
    }
}

/// A pause of a host that held up a run, as seen about once a second.
package struct HostPause: Hashable, Sendable {
    package var host: String
    package var start: Duration
    package var end: Duration

    package init(host: String, start: Duration, end: Duration) {
        self.host = host
        self.start = start
        self.end = end
    }
}

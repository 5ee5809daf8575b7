internal import PrefetchModel

/// The pauses of hosts that held up a run, from its progress.
struct PauseLog: Sendable {
    /// The first pauses.
    private(set) var pauses: [HostPause] = []

    private static let limit = 100
    /// Progress names the host once a second; a longer gap ends a pause.
    private static let longestGap = Duration.milliseconds(1500)

    mutating func note(_ progress: RunProgress) {
        guard let holdUp = progress.holdUp, holdUp.pause != nil else { return }
        let now = progress.elapsed
        if let last = pauses.indices.last, pauses[last].host == holdUp.host,
            now - pauses[last].end <= PauseLog.longestGap
        {
            pauses[last].end = now
        } else if pauses.count < PauseLog.limit {
            pauses.append(HostPause(host: holdUp.host, start: now, end: now))
        }
    }
}

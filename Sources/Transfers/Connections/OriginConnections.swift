/// The connections of origins over TLS, and the transfers that wait for one.
///
/// The first transfer of an origin connects alone, since only the handshake tells whether
/// connections can be shared (HTTP/2). Then the others start: each with its own connection, or on
/// at most two shared ones. A transfer beyond the peer's MAX_CONCURRENT_STREAMS makes libcurl open
/// another connection; then its socket is refused, and it waits for another transfer's end.
///
/// libcurl's own way to wait (CURLOPT_PIPEWAIT) wakes one transfer per event in 7.88, the first of
/// any host, and opens a connection for each transfer beyond the limit or after a GOAWAY.
///
/// Used on the loop's thread. The thread that frees the multi handle may close sockets later.
final class OriginConnections {
    private enum Sharing {
        /// No request was sent yet.
        case unknown
        /// libcurl knows the protocol, and shows it by the second transfer's need of a socket.
        case undisclosed
        /// HTTP/1.1.
        case separate
        /// HTTP/2.
        case shared
    }

    private struct ConnectedOrigin {
        var sharing = Sharing.unknown
        var running = 0
        /// Transfers that have opened a socket and not yet sent their request.
        var connecting = 0
        var sockets = 0
        /// The number of transfers that fit on the shared connections, as far as it is known.
        var limit = Int.max
        /// Transfers that ended at the limit since it changed.
        var endsAtLimit = 0
        var waiting: [TransferAttempt] = []
        /// The first of them, which were refused a socket.
        var returned = 0

        var admits: Bool {
            switch sharing {
            case .unknown: running == 0
            case .undisclosed: running < 2
            case .separate: true
            case .shared: running < limit
            }
        }

        var isUnused: Bool { running == 0 && sockets == 0 && waiting.isEmpty }
    }

    private var origins: [String: ConnectedOrigin] = [:]
    /// The origins with waiting transfers that may be able to start.
    private var changed: Set<String> = []
    private var originsOfSockets: [Int32: String] = [:]
    /// The origins with an issuer in the folder of authorities only.
    private var originsOfFolder: Set<String> = []
    private var originsOfDigest: Set<String> = []
    /// Whether bytes have arrived on a shared connection since the last call of ``takeActivity()``.
    private var isActive = false

    /// The second one takes over when the first takes no new requests (GOAWAY).
    private static let sharedConnections = 2

    // MARK: Starts and ends

    /// Counts a transfer that starts now; or keeps it, and returns false.
    func admit(_ attempt: TransferAttempt) -> Bool {
        guard let name = attempt.origin else { return true }
        var origin = origins.removeValue(forKey: name) ?? ConnectedOrigin()
        let isAdmitted = origin.waiting.isEmpty && origin.admits
        if isAdmitted { origin.running += 1 } else { origin.waiting.append(attempt) }
        origins[name] = origin
        return isAdmitted
    }

    /// Removes, counts and returns the waiting transfers that may start now.
    func takeStarting() -> [TransferAttempt] {
        guard !changed.isEmpty else { return [] }
        var starting: [TransferAttempt] = []
        for name in changed {
            guard var origin = origins.removeValue(forKey: name) else { continue }
            var count = 0
            while count < origin.waiting.count, origin.admits {
                origin.running += 1
                count += 1
            }
            // The first connection may have shown where the issuer is found.
            let authorities = authorities(of: name)
            starting += origin.waiting.prefix(count).map { attempt in
                authorities == .ofFolder ? attempt.trusting(.ofFolder) : attempt
            }
            origin.waiting.removeFirst(count)
            origin.returned = 0
            if !origin.isUnused { origins[name] = origin }
        }
        changed.removeAll(keepingCapacity: true)
        return starting
    }

    func putBack(_ attempt: TransferAttempt) {
        guard let name = attempt.origin else { return }
        var origin = origins.removeValue(forKey: name) ?? ConnectedOrigin()
        origin.waiting.insert(attempt, at: origin.returned)
        origin.returned += 1
        origins[name] = origin
        changed.insert(name)
    }

    /// Notes that a transfer was refused a socket: no more fit than run now.
    func noteFull(_ origin: String) {
        update(origin) { origin in
            origin.limit = max(1, origin.running)
            origin.endsAtLimit = 0
        }
    }

    func takeWaiting() -> [TransferAttempt] {
        Array(origins.keys).flatMap(takeWaiting)
    }

    /// Removes and returns the transfers that wait for the first connection to an origin.
    func takeWaitingForFirst(_ origin: String) -> [TransferAttempt] {
        origins[origin]?.sharing == .unknown ? takeWaiting(origin) : []
    }

    private func takeWaiting(_ origin: String) -> [TransferAttempt] {
        let waiting = origins[origin]?.waiting ?? []
        origins[origin]?.waiting = []
        origins[origin]?.returned = 0
        return waiting
    }

    func noteEnd(_ use: ConnectionUse) {
        update(use.origin) { origin in
            let wasFull = origin.running >= origin.limit
            origin.running -= 1
            if use.isConnecting { origin.connecting -= 1 }
            guard wasFull, use.isSent else { return }
            // The peer may have raised its limit, or the connections are others.
            origin.endsAtLimit += 1
            if origin.endsAtLimit >= origin.limit {
                origin.limit += 1
                origin.endsAtLimit = 0
            }
        }
    }

    // MARK: Connections

    func mayOpen(_ use: ConnectionUse) -> Bool {
        guard let origin = origins[use.origin], !use.isConnecting, origin.running > 1 else {
            return true
        }
        switch origin.sharing {
        case .unknown, .separate: return true
        case .undisclosed:
            update(use.origin) { $0.sharing = .separate }
            return true
        case .shared:
            return origin.connecting == 0 && origin.sockets < OriginConnections.sharedConnections
        }
    }

    func noteOpened(_ socket: Int32, _ use: ConnectionUse) {
        originsOfSockets[socket] = use.origin
        origins[use.origin]?.sockets += 1
        if !use.isConnecting { origins[use.origin]?.connecting += 1 }
    }

    /// Notes that libcurl is about to send a request.
    func noteRequest(_ use: ConnectionUse) {
        guard let sharing = origins[use.origin]?.sharing,
            use.isConnecting || sharing == .unknown || sharing == .undisclosed
        else { return }
        update(use.origin) { origin in
            switch origin.sharing {
            case .unknown: origin.sharing = .undisclosed
            case .undisclosed: if !use.isConnecting { origin.sharing = .shared }
            case .separate, .shared: break
            }
            if use.isConnecting { origin.connecting -= 1 }
            origin.limit = .max
        }
    }

    func noteAnswer(_ use: ConnectionUse, isShared: Bool) {
        let sharing = isShared ? Sharing.shared : .separate
        guard let origin = origins[use.origin], origin.sharing != sharing else { return }
        update(use.origin) { $0.sharing = sharing }
    }

    func noteClosed(_ socket: Int32) {
        guard let origin = originsOfSockets.removeValue(forKey: socket) else { return }
        update(origin) { origin in
            origin.sockets -= 1
            origin.limit = .max
        }
    }

    /// Whether the origin speaks HTTP/2.
    func isShared(_ use: ConnectionUse) -> Bool { origins[use.origin]?.sharing == .shared }

    private func update(_ name: String, _ change: (inout ConnectedOrigin) -> Void) {
        guard var origin = origins.removeValue(forKey: name) else { return }
        change(&origin)
        guard !origin.isUnused else { return }
        origins[name] = origin
        if !origin.waiting.isEmpty { changed.insert(name) }
    }

    // MARK: Activity

    func noteBytes(_ use: ConnectionUse) {
        if use.isShared { isActive = true }
    }

    func takeActivity() -> Bool {
        defer { isActive = false }
        return isActive
    }

    // MARK: Authorities

    func authorities(of origin: String?) -> TrustedAuthorities {
        origin.map(originsOfFolder.contains) ?? false ? .ofFolder : .ofFile
    }

    func noteIssuerInFolder(_ use: ConnectionUse) { originsOfFolder.insert(use.origin) }

    // MARK: Credentials

    /// Whether an origin wants credentials by the scheme Digest.
    func usesDigest(_ origin: @autoclosure () -> String) -> Bool {
        !originsOfDigest.isEmpty && originsOfDigest.contains(origin())
    }

    func noteDigest(_ origin: String) { originsOfDigest.insert(origin) }
}

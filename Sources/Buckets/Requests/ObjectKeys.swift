import PrefetchModel
import Threading

/// The keys that sign a storage's requests. Temporary ones are renewed before they expire.
struct ObjectKeys: Sendable {
    private struct Temporary {
        /// The last keys of the metadata service.
        var credentials: ObjectCredentials?
        /// No new ones are requested before, while the last ones are valid.
        var nextRenewal: Timestamp?

        /// The credentials, unless new ones are due.
        func current(at now: Timestamp) -> ObjectCredentials? {
            guard let credentials else { return nil }
            guard let end = credentials.expiresAt,
                end <= now.advanced(by: ObjectKeys.renewalTime)
            else { return credentials }
            return now < end && now < nextRenewal ?? .distantPast ? credentials : nil
        }
    }

    let choice: CredentialChoice
    let fixed: ObjectCredentials?
    let service: MetadataService
    let wallClock: @Sendable () -> Timestamp
    private let temporary = Monitor(Temporary())
    /// Held during a request to the metadata service.
    private let renewal = Monitor(())

    /// Temporary credentials are renewed this long before they expire.
    private static let renewalTime = Duration.seconds(300)
    /// The time between two requests while the last keys are valid.
    private static let renewalInterval = Duration.seconds(60)

    func stop() { service.stop() }

    /// The keys of a request; nil for unsigned ones.
    func current() throws -> ObjectCredentials? {
        switch choice {
        case .none: return nil
        case .auto: return fixed
        case .metadata: break
        }
        if let known = temporary.withLock({ $0.current(at: wallClock()) }) { return known }
        return try renewal.withLock { _ in
            let now = wallClock()
            // Another thread may have renewed them.
            if let known = temporary.withLock({ $0.current(at: now) }) { return known }
            do {
                let renewed = try service.credentials()
                temporary.withLock { $0.credentials = renewed }
            } catch {
                // The last ones may be valid for some minutes.
                guard let end = temporary.withLock({ $0.credentials?.expiresAt }), now < end else {
                    throw error
                }
            }
            return temporary.withLock { temporary in
                temporary.nextRenewal = now.advanced(by: ObjectKeys.renewalInterval)
                return temporary.credentials
            }
        }
    }

    /// Forgets temporary keys that were refused.
    ///
    /// - Returns: whether there may be others.
    func forget() -> Bool {
        temporary.withLock { $0.credentials = nil }
        return choice == .metadata
    }
}

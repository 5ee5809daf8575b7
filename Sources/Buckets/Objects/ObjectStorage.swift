internal import CCurl
import Glibc
package import PrefetchModel
import Synchronization
import Threading
import Transfers
import URLParsing

/// A bucket of an S3-compatible service, shared by the clients of several threads.
package final class ObjectStorage: Sendable {
    package let location: ObjectLocation
    package let endpoint: ObjectEndpoint
    let limits: HTTPExchange.Limits
    let authorityFile: String?
    private let choice: CredentialChoice
    private let fixed: ObjectCredentials?
    private let service: MetadataService
    private let wallClock: @Sendable () -> Timestamp

    private struct State {
        /// The last answer of the metadata service.
        var temporary: ObjectCredentials?
        /// No new ones are asked for before, if the last ones are valid.
        var nextRenewal: Timestamp?
        /// No request begins before; the service has asked for fewer.
        var pauseEnd: ContinuousClock.Instant?
        var isStopped = false

        /// The temporary credentials, unless new ones are due.
        func temporary(at now: Timestamp) -> ObjectCredentials? {
            guard let temporary else { return nil }
            guard let end = temporary.expiresAt,
                end <= now.advanced(by: ObjectStorage.renewalTime)
            else { return temporary }
            return now < end && now < nextRenewal ?? .distantPast ? temporary : nil
        }
    }

    private let state = Monitor(State())
    /// Held while the metadata service is asked.
    private let renewal = Monitor(())

    /// The temporary credentials are renewed this long before they expire.
    private static let renewalTime = Duration.seconds(300)
    /// The time between two questions while the last keys are valid.
    private static let renewalInterval = Duration.seconds(60)

    /// Sets the storage up; nothing is sent.
    ///
    /// - Parameters:
    ///   - location: bucket and prefix.
    ///   - choice: the source of credentials.
    ///   - connectTimeout: the longest time to connect.
    ///   - stallTimeout: the longest time without a byte.
    ///   - variable: the value of a variable of the environment; nil for none and for an empty one.
    ///   - file: the contents of a file; nil if it cannot be read.
    ///   - wallClock: for the expiry of credentials.
    /// - Throws: when there are no credentials, the endpoint is no URL, or libcurl is missing.
    package init(
        _ location: ObjectLocation, credentials choice: CredentialChoice,
        connectTimeout: Duration, stallTimeout: Duration, variable: (String) -> String?,
        file: (String) -> [UInt8]?, wallClock: @escaping @Sendable () -> Timestamp
    ) throws(ObjectStorageError) {
        do throws(CurlLibrary.Missing) {
            try CurlLibrary.load()
        } catch {
            throw ObjectStorageError(.other, error.reason, hint: error.hint)
        }
        let settings = ObjectSettings(variable: variable, file: file)
        if let address = settings.address {
            let scheme = address.lowercased()
            guard scheme.hasPrefix("http://") || scheme.hasPrefix("https://"),
                !address.contains(where: { "@?#".contains($0) || $0.isWhitespace })
            else {
                throw ObjectStorageError(
                    .other,
                    "the endpoint is no http or https URL, or has user information or a query",
                    hint: "set AWS_ENDPOINT_URL_S3, like https://minio.example:9000")
            }
        }
        if choice == .auto, settings.credentials == nil {
            throw ObjectStorageError(
                .other, "\(location): no credentials (profile '\(settings.profile)')",
                hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or write "
                    + "~/.aws/credentials; --sink-credentials metadata asks the machine's service")
        }
        if let credentials = settings.credentials, choice == .auto, !credentials.arePrintable {
            throw ObjectStorageError(
                .other, "\(location): the keys have spaces, control or other characters",
                hint: "a line end may have been copied with them")
        }
        let region = settings.region ?? "us-east-1"
        guard region.utf8.allSatisfy({ $0.isOfRegion }) else {
            throw ObjectStorageError(.other, "\(location): AWS_REGION is no name of a region")
        }
        self.location = location
        self.choice = choice
        self.wallClock = wallClock
        endpoint = ObjectEndpoint(
            bucket: location.bucket, address: settings.address,
            region: region)
        fixed = settings.credentials
        service = MetadataService(variable: variable, file: file)
        authorityFile = settings.authorityFile
        limits = HTTPExchange.Limits(connectTimeout: connectTimeout, stallTimeout: stallTimeout)
    }

    /// Ends all requests soon, permanently. Any thread may call it.
    package func stop() { state.update { $0.isStopped = true } }

    package var isStopped: Bool { state.withLock { $0.isStopped } }

    // MARK: Credentials

    /// The credentials of a request; nil for unsigned ones.
    func credentials() throws(ObjectStorageError) -> ObjectCredentials? {
        switch choice {
        case .none: return nil
        case .auto: return fixed
        case .metadata: break
        }
        if let known = state.withLock({ $0.temporary(at: wallClock()) }) { return known }
        return try renewal.withLock { _ throws(ObjectStorageError) in
            let now = wallClock()
            // Another thread may have asked meanwhile.
            if let known = state.withLock({ $0.temporary(at: now) }) { return known }
            do throws(ObjectStorageError) {
                let renewed = try service.credentials { [self] in isStopped }
                state.withLock { $0.temporary = renewed }
            } catch {
                // The last ones may be valid for some minutes.
                let known = state.withLock { $0.temporary }
                guard let known, let end = known.expiresAt, now < end else { throw error }
            }
            return state.withLock { state in
                state.nextRenewal = now.advanced(by: ObjectStorage.renewalInterval)
                return state.temporary
            }
        }
    }

    /// Forgets temporary credentials that were refused.
    ///
    /// - Returns: whether others may be had.
    func forgetCredentials() -> Bool {
        state.withLock { $0.temporary = nil }
        return choice == .metadata
    }

    // MARK: Pauses

    /// Lets no request begin for some time.
    func pause(_ time: Duration) {
        let end = ContinuousClock.now + time
        state.withLock { $0.pauseEnd = max($0.pauseEnd ?? end, end) }
    }

    /// Waits until a time and for the end of a pause.
    ///
    /// - Throws: when all requests are stopped.
    func wait(until time: ContinuousClock.Instant?) throws(ObjectStorageError) {
        let isStopped = state.wait { state, now -> Monitor<State>.Decision<Bool> in
            if state.isStopped { return .ready(true) }
            let end = [time, state.pauseEnd].compactMap(\.self).max()
            guard let end, now < end else { return .ready(false) }
            return .wait(until: end)
        }
        if isStopped { throw ObjectStorageError(.cancelled, "stopped") }
    }
}

extension UInt8 {
    /// Whether a region's name may have it: others would change what is signed.
    fileprivate var isOfRegion: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

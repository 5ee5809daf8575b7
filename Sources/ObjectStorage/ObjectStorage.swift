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
        /// No request begins before; the service has asked for fewer.
        var pauseEnd: ContinuousClock.Instant?
        var isStopped = false
    }

    private let state = Monitor(State())

    /// The temporary credentials are renewed this long before they expire.
    private static let renewal = Duration.seconds(300)

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
            guard address.hasPrefix("http://") || address.hasPrefix("https://") else {
                throw ObjectStorageError(
                    .other, "the endpoint '\(address)' is no http or https URL",
                    hint: "set AWS_ENDPOINT_URL_S3")
            }
        }
        if choice == .auto, settings.credentials == nil {
            throw ObjectStorageError(
                .other, "\(location): no credentials (profile '\(settings.profile)')",
                hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or write "
                    + "~/.aws/credentials; --sink-credentials metadata asks the machine's service")
        }
        self.location = location
        self.choice = choice
        self.wallClock = wallClock
        endpoint = ObjectEndpoint(
            bucket: location.bucket, address: settings.address,
            region: settings.region ?? "us-east-1")
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
        let now = wallClock()
        // Several threads may ask at once; each answer is valid.
        let known = state.withLock { $0.temporary }
        if let known, known.expiresAt.map({ now.advanced(by: ObjectStorage.renewal) < $0 }) ?? true
        {
            return known
        }
        let renewed = try service.credentials { [self] in isStopped }
        state.withLock { $0.temporary = renewed }
        return renewed
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

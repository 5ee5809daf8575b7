package import PrefetchModel
import Threading

/// The limits of transfers, and the fields of their requests.
package struct TransferConfiguration: Sendable {
    package var limits = TransferLimits()
    /// The limit for all bodies in memory together, including bodies that wait for a codec worker.
    package var bodyBudget: ByteCount = .mebibytes(64)
    /// The most bodies in memory that other processes can read.
    package var sharedBodies = 0
    /// The limit of received bytes, heads included; nil for none.
    package var rateLimit: RateLimit?
    /// The responses with images as bodies.
    package var responses = ResponseRules()
    /// The configurations of hosts; their limits of the whole loop do not count.
    package var hosts = HostTable<TransferConfiguration>()
    /// Connections kept open for reuse. libcurl's default is four per running transfer, which
    /// closes good connections whenever few run.
    package var maximumIdleConnections = 64
    package var requests = RequestSettings()
    /// Replaces a secret by a digest, which tells secrets apart without revealing them.
    package var fingerprint: @Sendable (String) -> String = { _ in "hidden" }
    /// The value of `User-Agent`, unless a field of the user replaces it.
    package var userAgent: String
    /// The value of `Accept`, unless the user or a field replaces it.
    package var accept = TransferConfiguration.notedAccept
    /// The text that stands for ``accept`` in stored `Vary` values. It must not change when a
    /// build accepts more formats: all stored responses that vary on `Accept` would become stale.
    private static let notedAccept = "image/jpeg, image/png, image/*;q=0.5, */*;q=0.1"

    /// The request fields that a response may vary on (`Vary`), for the database. Secret values are
    /// replaced by their ``fingerprint``.
    ///
    /// Without the fields that libcurl adds itself: cookies of the jar, and credentials from a
    /// netrc file or a URL.
    package func requestFields(
        to url: some StringProtocol, userFields: [HeaderField] = [], isForeign: Bool = false
    ) -> [HeaderField] {
        let host = hosts[hostIn: url] ?? self
        var fields = [
            HeaderField(
                name: "Accept", value: host.requests.accept ?? TransferConfiguration.notedAccept),
            HeaderField(name: "Accept-Encoding", value: TransferConfiguration.acceptedEncodings),
            HeaderField(name: "User-Agent", value: host.userAgent),
        ]
        guard !isForeign else {
            return fields.replaced(by: host.fields(userFields).following).filter {
                !$0.value.isEmpty
            }
        }
        let requests = host.requests
        if let credentials = requests.credentials {
            let text = "\(credentials.user):\(credentials.password)"
            fields.append(HeaderField(name: "Authorization", value: fingerprint(text)))
        }
        let given = requests.fields.replaced(by: userFields).map { field in
            let isPlain = TransferConfiguration.plainFields.contains(field.name.lowercased())
            guard !field.value.isEmpty, !isPlain else { return field }
            return HeaderField(name: field.name, value: fingerprint(field.value))
        }
        return fields.replaced(by: given).filter { !$0.value.isEmpty }
    }

    /// User fields that never hold secrets.
    private static let plainFields: Set = ["accept", "accept-language", "user-agent"]

    /// The user's fields at this host, for a request of its own.
    func fields(_ userFields: [HeaderField]) -> [HeaderField] {
        requests.fields.replaced(by: userFields)
    }

    /// Images gain nothing from a content encoding.
    static let acceptedEncodings = "identity"

    package init(userAgent: String) {
        self.userAgent = userAgent
    }
}

extension [HeaderField] {
    /// The fields that also follow a redirect to another origin: the wanted formats. They are no
    /// secret, and the image is there.
    var following: [HeaderField] { filter { $0.name.lowercased() == "accept" } }
}

/// A limit of received bytes per second, which several transfer loops may share.
///
/// A token bucket: bytes are taken while there is credit, and cost credit afterwards. Used from any
/// thread.
package final class RateLimit: Sendable {
    private struct Bucket {
        /// Bytes that may be taken; negative after a chunk that was larger than the rest.
        var credit: Double
        var updatedAt: ContinuousClock.Instant
    }

    let bytesPerSecond: Double
    /// A twentieth of a second.
    private let mostCredit: Double
    private let bucket: Monitor<Bucket>

    package init(_ size: ByteCount) {
        bytesPerSecond = Double(max(1, size.bytes))
        mostCredit = bytesPerSecond / 20
        bucket = Monitor(Bucket(credit: mostCredit, updatedAt: .now))
    }

    /// The bytes that may be taken; zero or less if none.
    func credit(at now: ContinuousClock.Instant) -> Double {
        bucket.withLock { bucket in
            // Another thread's instant may be later.
            let passed = max(.zero, now - bucket.updatedAt)
            bucket.credit = min(bucket.credit + passed / .seconds(1) * bytesPerSecond, mostCredit)
            bucket.updatedAt = max(bucket.updatedAt, now)
            return bucket.credit
        }
    }

    /// Whether no credit has been used for a while.
    func isIdle(at now: ContinuousClock.Instant) -> Bool { credit(at: now) >= mostCredit }

    func take(_ count: Int) {
        bucket.withLock { $0.credit -= Double(count) }
    }
}

import ArgumentParser
import Buckets
import ConfigurationFiles
import Pipeline
import PrefetchModel

/// Flags of commands other than `run` about requests to a bucket.
struct BucketFlags: FlagRows {
    static let flags = FlagTable(BucketFlags())

    let credentials = SinkFlags.flags.credentials
    let requesterPays = SinkFlags.flags.requesterPays
    let connectTimeout = TransferLimitFlags.flags.connectTimeout
    let stallTimeout = TransferLimitFlags.flags.stallTimeout
    let timeout = TransferLimitFlags.flags.timeout
    let deadline = RunLimitFlags.flags.deadline
    let rate = TransferLimitFlags.flags.rate
    let proxy = RouteFlags.flags.proxy
    let proxyExceptions = RouteFlags.flags.proxyExceptions
    let authorityFile = RouteFlags.flags.authorityFile
    let usesIPv4Only = RouteFlags.flags.usesIPv4Only
    let usesIPv6Only = RouteFlags.flags.usesIPv6Only

    static func combined(_ flags: Flags<BucketFlags>) throws {
        try RouteFlags.combined(Flags(flags))
    }
}

extension Flags<BucketFlags> {
    /// The same reaction to a held cache, within `--deadline`.
    func limited(_ lock: LockArgument) -> LockArgument {
        lock.limited(to: self.deadline)
    }

    /// The bucket; nothing is sent.
    func storage(_ location: ObjectLocation) throws -> ObjectStorage {
        var settings = RunSettings(RunFlags.defaults)
        try apply(to: &settings)
        try Flags<RouteFlags>(self).applyEnvironment(to: &settings)
        settings.run.runLimits = Flags<RunLimitFlags>(self).limits()
        var options = ObjectOptions()
        options.paysRequests = self.requesterPays
        return try SinkFlags.storage(location, self.credentials, options, settings.run)
    }
}

extension CredentialChoice: ExpressibleByArgument {}

extension BucketAddressing: ExpressibleByArgument {}

extension ObjectLocation: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}

/// Flags about the bucket that has the caches of shards.
struct SinkFlags: FlagRows {
    static let flags = FlagTable(SinkFlags())

    let sink = RunFlag<ObjectLocation?>(
        "sink", value: "url",
        help: """
            Copy the cache to this bucket of an S3-compatible service after a complete run, \
            s3://BUCKET/PREFIX: content files that it lacks, the database, and last _DONE.json. \
            AWS_ENDPOINT_URL_S3 and AWS_REGION say where it is. `prefetch pull` reads it.
            """, inProjects: .refused)

    let credentials = RunFlag<CredentialChoice>(
        "sink-credentials", value: "from", default: .auto,
        help: """
            The keys for --sink: auto takes AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else the \
            profile's in ~/.aws; metadata requests them from the machine or container; none signs \
            nothing.
            """, inProjects: .refused)

    let addressing = RunFlag<BucketAddressing>(
        "sink-addressing", value: "style", default: .auto,
        help: """
            The place of the bucket's name: path (HOST/BUCKET) or host (BUCKET.HOST). auto takes \
            Amazon's host, and otherwise the path, unless the service refuses it.
            """, inProjects: .refused)

    let encryption = RunFlag<String?>(
        "sink-encryption", value: "how",
        help: """
            Have the service encrypt what --sink writes: AES256, aws:kms or aws:kms:KEY. Otherwise \
            the bucket decides.
            """, inProjects: .refused, check: .printable)

    let storageClass = RunFlag<String?>(
        "sink-storage-class", value: "name",
        help: "Storage class of what --sink writes, like STANDARD_IA.", inProjects: .refused,
        check: .printable)

    let requesterPays = RunFlag<Bool>(
        "sink-requester-pays",
        help: "Pay for the requests to a bucket with requester pays.",
        inProjects: .refused)

    /// Amazon's tools do not write larger files.
    private static let largestFile = 1 << 20

    /// The bucket; nothing is sent.
    ///
    /// - Throws: `UserError` if there are no credentials, or libcurl is missing.
    static func storage(
        _ location: ObjectLocation, _ credentials: CredentialChoice, _ options: ObjectOptions,
        _ configuration: RunConfiguration
    ) throws -> ObjectStorage {
        try ObjectStorage(
            location, credentials: credentials, options: options,
            transfers: configuration.transfers,
            until: configuration.runLimits.deadline, variable: environment,
            file: { try? InputFile($0).read(limit: largestFile) }, wallClock: WallClock.now)
    }
}

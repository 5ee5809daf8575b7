import ArgumentParser
import Buckets
import ConfigurationFiles
import Pipeline
import PrefetchModel

/// Flags of commands other than `run` about requests to a bucket.
struct BucketFlags: FlagRows {
    static let flags = FlagTable(BucketFlags())

    let access = BucketAccessFlags()
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

    /// The bucket; nothing is sent.
    static func storage(
        _ location: ObjectLocation, _ flags: Flags<some FlagRows>
    ) throws -> ObjectStorage {
        var settings = RunSettings(RunFlags.defaults)
        try flags.apply(to: &settings)
        try Flags<RouteFlags>(flags).applyEnvironment(to: &settings)
        settings.run.runLimits = Flags<RunLimitFlags>(flags).limits()
        return try SinkFlags.storage(location, Flags(flags), settings.run)
    }
}

/// The flags of ``SinkFlags`` that reading needs, too.
struct BucketAccessFlags: FlagRows {
    static let flags = FlagTable(BucketAccessFlags())

    let credentials = SinkFlags.flags.credentials
    let addressing = SinkFlags.flags.addressing
    let requesterPays = SinkFlags.flags.requesterPays
}

/// The flags of a command that writes objects.
struct BucketWritingFlags: FlagRows {
    static let flags = FlagTable(BucketWritingFlags())

    let bucket = BucketFlags()
    let encryption = SinkFlags.flags.encryption
    let storageClass = SinkFlags.flags.storageClass

    static func combined(_ flags: Flags<BucketWritingFlags>) throws {
        try BucketFlags.combined(flags.bucket)
    }
}

extension Flags<BucketFlags> {
    /// The same reaction to a held cache, within `--deadline`.
    func limited(_ lock: LockArgument) -> LockArgument {
        lock.limited(to: self.deadline)
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
            The keys for the bucket: auto takes AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else the \
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
            Have the service encrypt new objects: AES256, aws:kms or aws:kms:KEY. Otherwise \
            the bucket decides.
            """, inProjects: .refused, check: .printable)

    let storageClass = RunFlag<String?>(
        "sink-storage-class", value: "name",
        help: "Storage class of new objects, like STANDARD_IA.", inProjects: .refused,
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
        _ location: ObjectLocation, _ flags: Flags<SinkFlags>, _ configuration: RunConfiguration
    ) throws -> ObjectStorage {
        var options = ObjectOptions()
        options.addressing = flags.addressing
        options.encryption = flags.encryption
        options.storageClass = flags.storageClass
        options.paysRequests = flags.requesterPays
        return try ObjectStorage(
            location, credentials: flags.credentials, options: options,
            transfers: configuration.transfers,
            until: configuration.runLimits.deadline, variable: environment,
            file: { try? InputFile($0).read(limit: largestFile) }, wallClock: WallClock.now)
    }
}

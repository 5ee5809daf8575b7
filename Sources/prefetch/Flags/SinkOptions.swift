import ArgumentParser
import Buckets
import Pipeline
import PrefetchModel

/// Flags about the bucket that has the caches of shards.
struct SinkOptions: ParsableArguments {
    @Option(RunFlags.sink) var sink: ObjectLocation?
    @Option(RunFlags.sinkCredentials) var credentials: CredentialChoice

    /// Larger settings are none of Amazon's tools.
    private static let largestFile = 1 << 20

    /// The bucket; nothing is sent.
    ///
    /// - Throws: `UserError` if there are no credentials, or libcurl is missing.
    static func storage(
        _ location: ObjectLocation, _ credentials: CredentialChoice,
        _ configuration: RunConfiguration
    ) throws -> ObjectStorage {
        try ObjectStorage(
            location, credentials: credentials, transfers: configuration.transfers,
            until: configuration.runLimits.deadline, variable: environment,
            file: { try? InputFile($0).read(limit: largestFile) }, wallClock: WallClock.now)
    }
}

/// Flags of commands other than `run` about requests to a bucket.
struct BucketOptions: ParsableArguments {
    @Option(RunFlags.sinkCredentials) var credentials: CredentialChoice
    @Option(RunFlags.connectTimeout) var connectTimeout: DurationArgument
    @Option(RunFlags.stallTimeout) var stallTimeout: DurationArgument
    @Option(RunFlags.timeout) var timeout: DurationArgument
    @Option(RunFlags.deadline) var deadline: DurationArgument?
    @Option(RunFlags.limitRate) var rate: SizeArgument?
    @Option(RunFlags.proxy) var proxy: String?
    @Option(RunFlags.noProxy) var proxyExceptions: String?
    @Option(RunFlags.authorityFile) var authorityFile: String?
    @Flag(RunFlags.ipv4) var usesIPv4Only: Bool
    @Flag(RunFlags.ipv6) var usesIPv6Only: Bool

    /// The bucket; nothing is sent.
    func storage(_ location: ObjectLocation) throws -> ObjectStorage {
        var configuration = RunFlags.defaults
        configuration.limits.connectTimeout = connectTimeout.duration
        configuration.limits.stallTimeout = stallTimeout.duration
        configuration.limits.totalTimeout = timeout.duration
        configuration.limits.bytesPerSecond = rate?.size
        configuration.runLimits.deadline = deadline.map { ContinuousClock.now + $0.duration }
        let texts = [
            (RunFlags.proxy.row, proxy), (RunFlags.noProxy.row, proxyExceptions),
            (RunFlags.authorityFile.row, authorityFile),
        ].compactMap { row, value in value.map { "--\(row.name)=\($0)" } }
        let switches = [(RunFlags.ipv4.row, usesIPv4Only), (RunFlags.ipv6.row, usesIPv6Only)]
            .filter(\.1).map { "--\($0.0.name)" }
        try RequestOptions.parse(texts + switches).apply(to: &configuration)
        return try SinkOptions.storage(location, credentials, configuration)
    }
}

extension CredentialChoice: ExpressibleByArgument {}

extension ObjectLocation: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}

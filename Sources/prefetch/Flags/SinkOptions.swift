import ArgumentParser
import Buckets
import Glibc
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
        connectTimeout: Duration = .seconds(10), stallTimeout: Duration = .seconds(30)
    ) throws -> ObjectStorage {
        return try ObjectStorage(
            location, credentials: credentials, connectTimeout: connectTimeout,
            stallTimeout: stallTimeout, variable: environment,
            file: { try? InputFile($0).read(limit: largestFile) }, wallClock: WallClock.now)
    }
}

extension CredentialChoice: ExpressibleByArgument {}

extension ObjectLocation: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}

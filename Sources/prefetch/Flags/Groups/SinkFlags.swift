import Buckets
import ConfigurationFiles

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
            profile's in ~/.aws; metadata asks the service of the machine or container; none signs \
            nothing.
            """, inProjects: .refused)
}

import BuildRecord
import Pipeline

/// The output of `--version`: the facts that a bug report needs.
///
/// ```
/// prefetch 0.1.0
/// commit 8c03971f0d… with uncommitted changes
/// cache schema 2
/// libcurl 7.88.1 (OpenSSL/3.0.17 zlib/1.2.13 nghttp2/1.52.0)
/// …
/// ```
enum VersionText {
    static func make() -> String {
        let changes = SourceCommit.hasChanges ? " with uncommitted changes" : ""
        let lines = [
            "prefetch \(Prefetch.version)", "commit \(SourceCommit.hash ?? "unknown")\(changes)",
        ]
        return (lines + Components.lines).joined(separator: "\n")
    }
}

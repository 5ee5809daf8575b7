/// The commit that the program was built from. `CommitRecorder` writes its two values before each
/// build; only this module, the executable and the link follow when they change.
package enum SourceCommit {
    /// The hash in full; nil where the sources were not a repository of their own, as in an archive.
    package static var hash: String? { recordedHash }

    /// Whether files that git knows, or would add, differed from that commit.
    package static var hasChanges: Bool { recordedChanges }
}

/// The commit that the program was built from. `CommitRecorder` writes its two values before each
/// build. A change rebuilds only this module and the executable.
package enum SourceCommit {
    /// The full hash; nil if the sources were not a git repository, as in an archive.
    package static var hash: String? { recordedHash }

    /// Whether tracked or untracked files differed from that commit.
    package static var hasChanges: Bool { recordedChanges }
}

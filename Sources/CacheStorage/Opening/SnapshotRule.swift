/// When a run leaves a snapshot of the database.
package enum SnapshotRule: String, CaseIterable, Sendable {
    /// After a run that changed something, if the last snapshot is a day old.
    case daily
    case off
}

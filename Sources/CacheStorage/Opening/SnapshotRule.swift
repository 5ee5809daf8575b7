/// When a run leaves a snapshot of the database beside it.
package enum SnapshotRule: String, CaseIterable, Sendable {
    /// After a run that changed something, when the last one is a day old.
    case daily
    case off
}

import CacheStorage
import EntryLifecycle
import PrefetchModel

/// What a run reads and writes of its cache besides its entries: its own row, hosts, and which failures
/// block.
protocol RunRecording: AnyObject {
    /// Notes that the run begins. Without room for that it goes on: what is warm needs none, and what
    /// is not ends it.
    func begin(at time: Timestamp) throws(FatalError)
    /// What earlier runs have found out about hosts.
    func forEachHost(at now: Timestamp, _ body: (HostState) -> Void) throws(FatalError)
    /// The part of a body that is kept of a key; in memory since ``begin(at:)``. Nil without one.
    func part(of key: String) throws(FatalError) -> PartialBody?
    func hasWholeFile(_ image: StoredImage) -> Bool
    /// Keeps a file from being removed until the change that names it is committed.
    func pin(_ image: StoredImage)

    /// Sees that the cache is still this run's, before its end is written.
    func checkHold() throws(FatalError)
    /// Decides which of the run's failures block; `decide` gives nil for those that do not count.
    func settleFailures(
        _ decide: (FailureRecord) -> FailureLog.Settlement?
    ) throws(FatalError)
    func save(_ hosts: [HostState]) throws(FatalError)
    /// Notes how the run ended. Nothing is written of a run that could not be noted.
    ///
    /// `listed` are the resources that its lists have named and that were there before it. Pruning ends
    /// when `isStopped` says so.
    ///
    /// - Returns: what was pruned, by rules or for the cache's bound; nil when it was not time for the one, and nothing had
    ///   to go for the other.
    func end(
        at time: Timestamp, exitStatus: Int32, _ counters: RunCounters, listed: ResourceSet,
        isStopped: () -> Bool
    ) throws(FatalError) -> PrunedCounts?
    /// Leaves a snapshot of the database, where one is due; `isStopped` ends that.
    ///
    /// - Returns: why it could not be taken, which is no failure of the run; nil where it was, or need not be.
    func takeSnapshot(
        at time: Timestamp, _ counters: RunCounters, isStopped: () -> Bool
    ) -> String?
    /// Closes the cache; nothing is read or written afterwards.
    func close() throws(FatalError)

    /// Removes the files of this run whose rows found no room, and the parts of bodies, so that a
    /// full disk is not left fuller than it need be.
    func makeRoom(at now: Timestamp)
    /// Has the next run salvage a database that turned out to be damaged.
    ///
    /// - Returns: what the user can do; nil when the next run finds out.
    func noteDamage() -> String?
}

import CacheStorage
import EntryLifecycle
import PrefetchModel
import Transfers

// The seams between a run and the threads that work for it. What they have to say comes as events.

/// Asks origins.
protocol Transferring: AnyObject {
    func start(_ requests: [TransferRequest])
    /// Ends every transfer; each is heard of.
    func cancelAll()
    /// Returns when nothing more comes.
    func finish()
}

/// Decodes, encodes and stores.
protocol ImageProcessing: AnyObject {
    /// How many images are worked at, at most.
    var workers: Int { get }
    func enqueue(_ job: CodecJob)
    /// Drops images that nobody has begun, and returns their entries.
    func dropWaiting() -> [Int]
    /// Ends the images that are being worked at, which takes a few tenths of a second.
    func cancel()
    /// Returns when no job is left.
    func finish()
}

/// Commits changes of rows.
protocol Committing: AnyObject {
    /// Only changes with a token are heard of.
    func enqueue(_ change: MetadataChange, token: Int?)
    /// Bytes that uncommitted changes take in memory, at a guess.
    var backlog: ByteCount { get }
    /// Lets it commit what is there without waiting for more.
    func hurry()
    /// Returns when everything is committed.
    func finish()
}

/// Looks up what earlier runs have left of entries.
protocol CopyFinding: AnyObject {
    func find(_ requests: [CopyRequest])
    /// Returns when nothing more comes.
    func finish()
}

/// Makes the stages, each when it is first needed.
protocol StageProviding: AnyObject {
    /// Those that store: called once, and again only after an error.
    func makeStoring() throws(FatalError) -> StoringStages
    func makeTransferring() throws(FatalError) -> any Transferring
    func makeCopyFinding() throws(FatalError) -> any CopyFinding
    /// Says which resources the lists have named, all of them: they stay, and the others may make room for
    /// what is new.
    func protect(_ listed: ResourceSet)
}

/// The threads that decode, store and commit.
struct StoringStages {
    let images: any ImageProcessing
    let writer: any Committing
    /// Whether images that ended earlier runs are told by their bytes.
    let knowsCrashes: Bool
    /// What the cache may take; nil for any.
    let room: RoomBudget?
    /// Ends what notes such images.
    let endCrashLog: () throws(FatalError) -> Void
}

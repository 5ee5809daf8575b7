package import CacheStorage
package import PrefetchModel

/// What one run is asked to do; every default is the command line's.
package struct RunConfiguration: Sendable {
    package var order: StartOrder = .fifo
    /// Entries that wait in memory before reading pauses, in FIFO order. In LIFO order the last
    /// line starts first, so everything is held.
    package var queueCapacity = 10_000
    /// Transfers at once.
    package var jobs = 32
    /// Transfers at once at one host.
    package var hostConcurrency = 8
    /// Threads that decode and encode.
    package var codecWorkers: Int
    package var recipe = Recipe()
    package var connectTimeout: Duration = .seconds(10)
    package var stallTimeout: Duration = .seconds(15)
    package var totalTimeout: Duration = .seconds(300)
    package var maximumBodySize: ByteCount = .mebibytes(64)
    /// Width × height, from the header.
    package var maximumPixels = 100_000_000
    /// The budget over all stages: a quarter for bodies, the rest for pixels.
    package var memory: ByteCount = .mebibytes(256)
    package var maximumRedirects = 10
    /// The lifetime when the origin says nothing, and the ceiling of heuristic ones.
    package var defaultLifetime: Duration = .seconds(7 * 86400)
    package var durability: MetadataWriter.Durability = .normal
    /// Failures that still count as success.
    package var tolerance: FailureTolerance = .count(0)
    package var userAgent: String
    /// The manifests' names, for the run log.
    package var manifests: [String]

    /// There are as many codec workers as the caller sees cores.
    package init(userAgent: String, manifests: [String], codecWorkers: Int) {
        self.userAgent = userAgent
        self.manifests = manifests
        self.codecWorkers = codecWorkers
    }

    /// The share of ``memory`` for bodies that arrive or wait for a codec worker.
    ///
    /// Bodies and pixels have pools of their own: if a decode could take what bodies hold, all
    /// workers might wait for memory that only they can free.
    var bodyBudget: ByteCount { ByteCount(memory.bytes / 4) }
    var pixelBudget: ByteCount { ByteCount(memory.bytes - bodyBudget.bytes) }
}

/// How many failures a run may have and still exit with 0.
package enum FailureTolerance: Hashable, Sendable {
    case count(Int)
    /// 0…100 percent of the entries read.
    case percent(Double)

    package func accepts(failures: Int, of entries: Int) -> Bool {
        switch self {
        case .count(let limit): failures <= limit
        case .percent(let limit): Double(failures) * 100 <= limit * Double(entries)
        }
    }
}

/// How other threads reach a run.
package final class RunControl: Sendable {
    let mailbox = Mailbox()

    package init() {}

    /// Stops the run because of a signal: nothing more starts, what runs is finished or cancelled
    /// within ten seconds, and what is stored is committed. Any thread may call it.
    package func stop(signal: Int32) {
        mailbox.put(.stop(signal: signal))
    }
}

/// The shares of a run's parts in the files and sockets that the process may have open.
///
/// Each constant is the maximum number open at the same time, counted from the code. The minimum is
/// the run's own files and one of each part.
package struct DescriptorBudget: Equatable {
    /// The cache's folders, lock and database, the coordinator's connection, the report, the
    /// queue's temporary file, and the start of a decoder.
    static let ownFiles = 17
    static let filesOfReader = 2
    /// A temporary file and its target folder, and a decoder's socket.
    static let filesOfCodecWorker = 3
    /// libcurl's wake-up descriptors, and a certificate file, a hosts file or a library being
    /// loaded.
    static let filesOfTransfers = 3
    /// A connection attempt uses both address families.
    static let socketsOfTransfer = 2

    static let maximumReaders = 4
    static let maximumFolders = 256
    static let maximumSharedBodies = 32

    var readers: Int
    var codecWorkers: Int
    package var transfers: Int
    /// Connections kept for later transfers, including the ones in use.
    var connections: Int
    var folders: Int
    /// Bodies in memory that decoders can read; none if descriptors are short.
    var sharedBodies = DescriptorBudget.maximumSharedBodies

    package init(codecWorkers: Int, transfers: Int) {
        readers = min(codecWorkers, DescriptorBudget.maximumReaders)
        self.codecWorkers = codecWorkers
        self.transfers = transfers
        connections = max(64, 2 * transfers)
        folders = DescriptorBudget.maximumFolders
    }

    static let minimum: DescriptorBudget = {
        var minimum = DescriptorBudget(codecWorkers: 1, transfers: 1)
        minimum.connections = 0
        // The worker has its own.
        minimum.folders = 0
        minimum.sharedBodies = 0
        return minimum
    }()

    package var total: Int {
        DescriptorBudget.ownFiles + readers * DescriptorBudget.filesOfReader
            + codecWorkers * DescriptorBudget.filesOfCodecWorker
            + DescriptorBudget.filesOfTransfers + transfers * DescriptorBudget.socketsOfTransfer
            + connections + folders + sharedBodies
    }

    /// Fits the budget to the available descriptors: a quarter for threads, and half of the rest
    /// each for folders and transfers. Nil when `available` is too little for any run.
    package func fitted(to available: Int) -> DescriptorBudget? {
        guard total > available else { return self }
        var fitted = DescriptorBudget.minimum
        var left = available - fitted.total
        guard left >= 0 else { return nil }
        let ofThreads = DescriptorBudget.filesOfReader + DescriptorBudget.filesOfCodecWorker
        let threads = left / 4 / ofThreads
        fitted.readers = min(readers, 1 + threads)
        fitted.codecWorkers = min(codecWorkers, 1 + threads)
        left = available - fitted.total
        fitted.folders = min(folders, left / 2)
        left -= fitted.folders
        // Each transfer with a kept connection.
        let more = left / (DescriptorBudget.socketsOfTransfer + 1)
        fitted.transfers = min(transfers, 1 + more)
        left = available - fitted.total
        fitted.connections = min(connections, left)
        return fitted
    }
}

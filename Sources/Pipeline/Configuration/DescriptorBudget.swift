/// How a run shares out the files and sockets that the process may have open at once.
///
/// The largest number of each that are open at the same time, counted from the code. What a run
/// holds itself, and one of each of the rest, is the least that it can do with.
package struct DescriptorBudget: Equatable {
    /// The cache's folders, lock and database, the coordinator's connection, the report, the
    /// temporary file of the queue.
    static let ownFiles = 11
    /// A connection of its own to the database: the file and its log.
    static let filesOfReader = 2
    /// A temporary file and the folder that it goes to.
    static let filesOfCodecWorker = 2
    /// What wakes libcurl up, and a file of certificates or of names, or a library that is loaded.
    static let filesOfTransfers = 3
    /// A connection is tried over both families of addresses.
    static let socketsOfTransfer = 2

    static let maximumReaders = 4
    static let maximumFolders = 256

    var readers: Int
    var codecWorkers: Int
    package var transfers: Int
    /// Connections that are kept for the next transfers, those in use included.
    var connections: Int
    /// Folders of the content that are kept open.
    var folders: Int

    /// What the user asked for, whatever it takes.
    package init(codecWorkers: Int, transfers: Int) {
        readers = min(codecWorkers, DescriptorBudget.maximumReaders)
        self.codecWorkers = codecWorkers
        self.transfers = transfers
        connections = max(64, 2 * transfers)
        folders = DescriptorBudget.maximumFolders
    }

    /// The least that a run can do with: everything one at a time.
    static let minimum: DescriptorBudget = {
        var minimum = DescriptorBudget(codecWorkers: 1, transfers: 1)
        minimum.connections = 0
        // The worker has its own.
        minimum.folders = 0
        return minimum
    }()

    /// How many are open at once.
    package var total: Int {
        DescriptorBudget.ownFiles + readers * DescriptorBudget.filesOfReader
            + codecWorkers * DescriptorBudget.filesOfCodecWorker
            + DescriptorBudget.filesOfTransfers + transfers * DescriptorBudget.socketsOfTransfer
            + connections + folders
    }

    /// Fits it to what there is: a quarter for threads, and of the rest one half for folders and one
    /// for transfers.
    ///
    /// - Returns: nil when `available` is too little for any run.
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
        // Each with a connection that is kept for the next one.
        let more = left / (DescriptorBudget.socketsOfTransfer + 1)
        fitted.transfers = min(transfers, 1 + more)
        left = available - fitted.total
        fitted.connections = min(connections, left)
        return fitted
    }
}

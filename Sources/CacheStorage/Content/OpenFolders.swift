/// A least-recently-used cache of open folders.
struct OpenFolders {
    private struct OpenFolder {
        let handle: FileDescriptor
        var lastUse: Int
    }

    private let capacity: Int
    private var folders: [UInt8: OpenFolder] = [:]
    private var uses = 0

    /// Creates an empty cache.
    ///
    /// - Precondition: The capacity is at least 1.
    init(capacity: Int) {
        self.capacity = capacity
    }

    var count: Int { folders.count }

    /// The folder, if it is open.
    mutating func use(_ number: UInt8) -> FileDescriptor? {
        uses += 1
        folders[number]?.lastUse = uses
        return folders[number]?.handle
    }

    /// Adds a folder, replacing its previous handle or, at capacity, the least recently used
    /// folder.
    ///
    /// - Returns: The replaced handle, to be closed by its last user.
    mutating func add(_ handle: FileDescriptor, _ number: UInt8) -> FileDescriptor? {
        uses += 1
        var replaced = folders.updateValue(
            OpenFolder(handle: handle, lastUse: uses), forKey: number)
        if folders.count > capacity,
            let oldest = folders.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            replaced = folders.removeValue(forKey: oldest.key)
        }
        return replaced?.handle
    }
}

/// The resources of a run's warm entries, to find duplicates: a bit each, so that a million of
/// them stay in the processor's cache.
struct ResourceSet {
    /// Bits of 2¹⁵ identifiers a page; those without any are empty. SQLite numbers rows one after
    /// the other, so the pages are dense.
    private var pages: [[UInt64]] = []
    /// Identifiers that no cache of ours comes to: a page table for them would be larger than they
    /// are worth.
    private var strangers: Set<Int64> = []

    private static let pageBits: Int64 = 15
    private static let pageWords = 512
    private static let largestPage: Int64 = 1 << 20

    /// Adds a resource.
    ///
    /// - Returns: false when it was there.
    mutating func insert(_ resource: Int64) -> Bool {
        let page = resource >> ResourceSet.pageBits
        guard (0..<ResourceSet.largestPage).contains(page) else {
            return strangers.insert(resource).inserted
        }
        let index = Int(page)
        while pages.count <= index { pages.append([]) }
        if pages[index].isEmpty {
            pages[index] = [UInt64](repeating: 0, count: ResourceSet.pageWords)
        }
        let (word, bit) = ResourceSet.place(of: resource)
        let isNew = pages[index][word] & bit == 0
        pages[index][word] |= bit
        return isNew
    }

    func contains(_ resource: Int64) -> Bool {
        let page = resource >> ResourceSet.pageBits
        guard (0..<ResourceSet.largestPage).contains(page) else {
            return strangers.contains(resource)
        }
        guard page < pages.count, !pages[Int(page)].isEmpty else { return false }
        let (word, bit) = ResourceSet.place(of: resource)
        return pages[Int(page)][word] & bit != 0
    }

    /// In its page.
    private static func place(of resource: Int64) -> (word: Int, bit: UInt64) {
        (Int(resource >> 6) & (pageWords - 1), 1 << UInt64(resource & 63))
    }
}

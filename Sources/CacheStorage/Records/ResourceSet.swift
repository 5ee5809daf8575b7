/// A set of identifiers of resources, one bit each: a million fit into the processor's cache.
package struct ResourceSet: Hashable, Sendable {
    /// Pages of 2¹⁵ bits; empty if none is set. SQLite numbers rows consecutively.
    var pages: [[UInt64]] = []
    /// Identifiers of damaged databases, for which pages would take too much memory.
    private var outliers: Set<Int64> = []

    static let pageBits: Int64 = 15
    static let pageWords = 512
    static let largestPage: Int64 = 1 << 20

    package init() {}

    /// Adds a resource. Returns false if it was in the set.
    @discardableResult
    package mutating func insert(_ resource: Int64) -> Bool {
        let page = resource >> ResourceSet.pageBits
        guard (0..<ResourceSet.largestPage).contains(page) else {
            return outliers.insert(resource).inserted
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

    package func contains(_ resource: Int64) -> Bool {
        let page = resource >> ResourceSet.pageBits
        guard (0..<ResourceSet.largestPage).contains(page) else {
            return outliers.contains(resource)
        }
        guard page < pages.count, !pages[Int(page)].isEmpty else { return false }
        let (word, bit) = ResourceSet.place(of: resource)
        return pages[Int(page)][word] & bit != 0
    }

    package var isEmpty: Bool { outliers.isEmpty && pages.allSatisfy(\.isEmpty) }

    package var count: Int {
        pages.reduce(outliers.count) { sum, page in
            page.reduce(sum) { $0 + $1.nonzeroBitCount }
        }
    }

    func forEach(_ body: (Int64) throws -> Void) rethrows {
        for (number, page) in pages.enumerated() {
            for (index, word) in page.enumerated() {
                var bits = word
                while bits != 0 {
                    let bit = bits.trailingZeroBitCount
                    try body(Int64(number) << ResourceSet.pageBits | Int64(index * 64 + bit))
                    bits &= bits - 1
                }
            }
        }
        try outliers.forEach(body)
    }

    package mutating func formUnion(_ other: ResourceSet) {
        outliers.formUnion(other.outliers)
        while pages.count < other.pages.count { pages.append([]) }
        for (index, page) in other.pages.enumerated() where !page.isEmpty {
            guard !pages[index].isEmpty else {
                pages[index] = page
                continue
            }
            for word in page.indices { pages[index][word] |= page[word] }
        }
    }

    private static func place(of resource: Int64) -> (word: Int, bit: UInt64) {
        (Int(resource >> 6) & (pageWords - 1), 1 << UInt64(resource & 63))
    }
}

import PrefetchModel

/// The position, the request mark, the variants and the outcome of every entry, for later entries
/// of the same key: 7 bytes for each entry, and 4 more each where its request has a mark and where
/// its variants are not the run's.
package struct EntryPositions {
    private(set) var manifests: [String] = []
    private var lines = ChunkedArray<UInt32>()
    private var manifestIndices = ChunkedArray<UInt16>()
    private var requestMarks = ChunkedArray<UInt32>()
    private var variantSets = ChunkedArray<UInt32>()
    /// 0 without an outcome, ``endedWithoutReason``, or ``firstReason`` plus a reason's index.
    private var ends = ChunkedArray<UInt8>()

    private static let endedWithoutReason: UInt8 = 1
    private static let firstReason: UInt8 = 2

    package init() {}

    package mutating func note(
        _ identifier: Int, manifest: String, line: Int, requestMark: UInt32, variantSet: UInt32
    ) {
        lines[identifier] = UInt32(clamping: line)
        manifestIndices[identifier] = UInt16(clamping: index(of: manifest))
        if requestMark != 0 { requestMarks[identifier] = requestMark }
        note(variantSet: variantSet, of: identifier)
    }

    /// Changes the variants of all lines of an entry's key.
    package mutating func note(variantSet: UInt32, of identifier: Int) {
        guard variantSet != 0 || variantSets[identifier] != 0 else { return }
        variantSets[identifier] = variantSet
    }

    mutating func noteEnd(_ identifier: Int, reason: FailureReason?) {
        ends[identifier] =
            reason.map { EntryPositions.firstReason + UInt8($0.index) }
            ?? EntryPositions.endedWithoutReason
    }

    func hasEnded(_ identifier: Int) -> Bool { ends[identifier] != 0 }

    package func knownPosition(of identifier: Int) -> (manifest: String, line: Int)? {
        lines[identifier] == 0 ? nil : position(of: identifier)
    }

    package func position(of identifier: Int) -> (manifest: String, line: Int) {
        (manifests[Int(manifestIndices[identifier])], Int(lines[identifier]))
    }

    package func requestMark(of identifier: Int) -> UInt32 { requestMarks[identifier] }

    package func variantSet(of identifier: Int) -> UInt32 { variantSets[identifier] }

    func reason(of identifier: Int) -> FailureReason? {
        let end = ends[identifier]
        guard end >= EntryPositions.firstReason else { return nil }
        return FailureReason.allCases[Int(end - EntryPositions.firstReason)]
    }

    /// Returns the index of a manifest, which is added when it is new.
    mutating func index(of manifest: String) -> Int {
        // Backwards: few manifests are read at a time, mostly the last one.
        if let index = manifests.lastIndex(of: manifest) { return index }
        manifests.append(manifest)
        return manifests.count - 1
    }
}

package import PrefetchModel

/// The position, the request mark, the variants and the outcome of every entry, for later entries
/// of the same key. An entry takes a byte, 4 more if lines without an entry precede it, 4 if its
/// request has a mark, and 4 if its variants are not the run's.
package struct EntryPositions {
    private(set) var manifests: [String] = []
    /// Lines minus identifiers: mostly the same for all entries of a list.
    private var lines = ChunkedArray<UInt32>()
    /// Plus one; 0 for an entry that was not noted.
    private var manifestNumbers = ChunkedArray<UInt16>()
    private var requestMarks = ChunkedArray<UInt32>()
    private var variantSets = ChunkedArray<UInt32>()
    /// The URLs of entries with request marks, as far as they have room: keys do not name them.
    private var urls: [Int: String] = [:]
    private var urlBytes = 0
    private static let mostURLBytes = 8 << 20
    /// 0 without an outcome, ``endedWithoutReason``, or ``firstReason`` plus a reason's index.
    private var ends = ChunkedArray<UInt8>()

    private static let endedWithoutReason: UInt8 = 1
    private static let firstReason: UInt8 = 2

    package init() {}

    /// Notes an entry; `requestMark` is 0 for a request that the key describes fully.
    package mutating func note(
        _ identifier: Int, manifest: String, line: Int, requestMark: UInt32, url: String? = nil,
        variantSet: UInt32 = 0
    ) {
        lines[identifier] = UInt32(clamping: line) &- UInt32(truncatingIfNeeded: identifier)
        manifestNumbers[identifier] = UInt16(clamping: index(of: manifest) + 1)
        if requestMark != 0 { requestMarks[identifier] = requestMark }
        if let url, urlBytes + url.utf8.count <= EntryPositions.mostURLBytes {
            urlBytes += url.utf8.count
            urls[identifier] = url
        }
        note(variantSet: variantSet, of: identifier)
    }

    /// Changes the variants of all lines of an entry's key.
    package mutating func note(variantSet: UInt32, of identifier: Int) {
        guard variantSet != 0 || variantSets[identifier] != 0 else { return }
        variantSets[identifier] = variantSet
    }

    package mutating func noteEnd(_ identifier: Int, reason: FailureReason?) {
        ends[identifier] =
            reason.map { EntryPositions.firstReason + UInt8($0.index) }
            ?? EntryPositions.endedWithoutReason
    }

    package func hasEnded(_ identifier: Int) -> Bool { ends[identifier] != 0 }

    /// `list.txt:7`, as messages name an entry; one that was not noted is `an earlier line`.
    package func place(of identifier: Int) -> String {
        let manifest = Int(manifestNumbers[identifier])
        let line = lines[identifier] &+ UInt32(truncatingIfNeeded: identifier)
        guard manifest != 0, line != 0 else { return "an earlier line" }
        return "\(manifests[manifest - 1]):\(line)"
    }

    /// The URL of an entry with a request mark, if it is known.
    package func url(of identifier: Int) -> String? { urls[identifier] }

    package func requestMark(of identifier: Int) -> UInt32 { requestMarks[identifier] }

    /// The number of the variants of all lines so far of an entry's key.
    package func variantSet(of identifier: Int) -> UInt32 { variantSets[identifier] }

    /// The reason that an entry failed for; nil when it did not fail, or has not ended.
    package func reason(of identifier: Int) -> FailureReason? {
        let end = ends[identifier]
        guard end >= EntryPositions.firstReason else { return nil }
        return FailureReason.allCases[Int(end - EntryPositions.firstReason)]
    }

    mutating func index(of manifest: String) -> Int {
        // Backwards: few manifests are read at a time, mostly the last one.
        if let index = manifests.lastIndex(of: manifest) { return index }
        manifests.append(manifest)
        return manifests.count - 1
    }
}

/// Values by entry, zero where none was set.
///
/// Memory is allocated in chunks of 2¹⁴ values where values are set: growing copies nothing, and
/// unused chunks cost nothing, nor do chunks that were filled upwards with one value.
package struct ChunkedArray<Value: FixedWidthInteger> {
    private var chunks: [ValueChunk] = []

    private struct ValueChunk {
        /// Empty while only one value is set.
        var values: [Value] = []
        var only: Value = 0
        /// The indices of ``only``.
        var range = 0..<0

        subscript(index: Int) -> Value {
            get {
                guard values.isEmpty else { return values[index] }
                return range.contains(index) ? only : 0
            }
            set {
                if values.isEmpty {
                    if range.isEmpty { (only, range) = (newValue, index..<index) }
                    if newValue == only, index == range.upperBound {
                        range = range.lowerBound..<index + 1
                        return
                    }
                    values = [Value](repeating: 0, count: ChunkedArray.chunkCount)
                    for index in range { values[index] = only }
                }
                values[index] = newValue
            }
        }
    }

    package init() {}

    private static var chunkBits: Int { 14 }
    private static var chunkCount: Int { 1 << chunkBits }

    package subscript(index: Int) -> Value {
        get {
            let chunk = index >> Self.chunkBits
            return chunk < chunks.count ? chunks[chunk][index & (Self.chunkCount - 1)] : 0
        }
        set {
            let chunk = index >> Self.chunkBits
            while chunks.count <= chunk { chunks.append(ValueChunk()) }
            chunks[chunk][index & (Self.chunkCount - 1)] = newValue
        }
    }
}

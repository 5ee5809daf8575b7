import PrefetchModel
import SeededRandom
import Testing

@testable import EntryQueue

@Suite(.timeLimit(.minutes(15)))
struct EntryPositionsTests {
    /// Runs of one value upwards, which take no memory, among values at random places.
    @Test(arguments: 0..<6 as Range<UInt64>)
    func arrayAgreesWithADictionary(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var array = ChunkedArray<UInt16>()
        var model: [Int: UInt16] = [:]
        for _ in 0..<12 {
            let start = Int.random(in: 0..<100_000, using: &random)
            let value = UInt16.random(in: 0...3, using: &random)
            let isDescending = Int.random(in: 0..<5, using: &random) == 0
            let places = start..<start + Int.random(in: 1...30_000, using: &random)
            for place in isDescending ? Array(places.reversed()) : Array(places) {
                array[place] = value
                model[place] = value
            }
        }
        let differing = (0..<140_000).filter { array[$0] != model[$0, default: 0] }
        #expect(differing.isEmpty, "\(differing.prefix(5))")
    }

    /// Entries of several lists, with lines between them that have no entry.
    @Test func placesAreExactAcrossLists() {
        var positions = EntryPositions()
        var places: [String] = []
        for list in 0..<4 {
            for line in 1...40_000 where list == 0 || line % (list * 700) != 0 {
                positions.note(
                    places.count, manifest: "m\(list)", line: line, requestMark: 0)
                places.append("m\(list):\(line)")
            }
        }
        let differing = places.indices.filter { positions.place(of: $0) != places[$0] }
        #expect(differing.isEmpty, "\(differing.prefix(5))")
        #expect(positions.place(of: places.count) == "an earlier line")
        positions.note(places.count, manifest: "last", line: 1 << 31, requestMark: 0)
        #expect(positions.place(of: places.count) == "last:2147483648")
    }
}

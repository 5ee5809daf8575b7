package import PrefetchModel

/// The sets of variants that a run's lines request, by number, so that an entry needs four bytes
/// for its set. 0 is the run's own set.
///
/// Nearly all lists have few different sets. Beyond a size, further ones are kept in a temporary
/// file, each time under a new number.
package final class VariantSetTable {
    private var sets: [VariantSet]
    private var numbers: [String: UInt32]
    /// The numbers of two sets, to the number of both together.
    private var unions: [UInt64: UInt32] = [:]
    private var bytes = 0
    private let maximumBytes: Int
    private let file: SpillFile
    /// The place in the file by number, less ``firstSpilled``.
    private var places = ChunkedArray<UInt64>()
    private var spilled: UInt32 = 0

    private static let firstSpilled: UInt32 = 1 << 31
    private static let maximumUnions = 1 << 16
    /// The estimated size of a variant in memory, beside its text.
    private static let variantBytes = 256

    package init(_ usual: VariantSet, folder: String, maximumBytes: Int = 16 << 20) {
        sets = [usual]
        numbers = [usual.text: 0]
        self.maximumBytes = maximumBytes
        file = SpillFile(folder: folder)
    }

    package var spilledCount: Int { Int(spilled) }

    package func number(of set: VariantSet) throws -> UInt32 {
        let text = set.text
        if let known = numbers[text] { return known }
        let size = 2 * text.utf8.count + set.count * VariantSetTable.variantBytes
        guard bytes + size > maximumBytes else {
            bytes += size
            let number = UInt32(sets.count)
            sets.append(set)
            numbers[text] = number
            return number
        }
        var payload = SpillWriter(reservingCapacity: text.utf8.count + 8)
        payload.put(text)
        var record = SpillWriter(reservingCapacity: text.utf8.count + 32)
        record.put(payload: payload)
        places[Int(spilled)] = UInt64(try file.append(record.bytes))
        spilled += 1
        return VariantSetTable.firstSpilled + spilled - 1
    }

    package func set(_ number: UInt32) throws -> VariantSet {
        guard number >= VariantSetTable.firstSpilled else { return sets[Int(number)] }
        let place = places[Int(number - VariantSetTable.firstSpilled)]
        var reader = SpillReader(try file.payload(at: Int(place)))
        guard let set = VariantSet(text: reader.text()) else {
            preconditionFailure("a set was written")
        }
        return set
    }

    /// Returns the number of a key's set with the variants of another line added: `number` itself
    /// if it has them all, nil for too many variants.
    package func union(_ number: UInt32, _ line: UInt32) throws -> UInt32? {
        if number == line { return number }
        let pair = UInt64(number) << 32 | UInt64(line)
        if let known = unions[pair] { return known }
        let before = try set(number)
        guard let after = before.adding(try set(line)) else { return nil }
        let result = after.count == before.count ? number : try self.number(of: after)
        if result < VariantSetTable.firstSpilled, unions.count < VariantSetTable.maximumUnions {
            unions[pair] = result
        }
        return result
    }
}

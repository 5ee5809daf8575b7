@testable import Codecs

/// A one-component baseline JPEG, written symbol by symbol, with tables that no encoder makes
/// (ITU-T T.81, annexes B, C and F).
struct HandmadeScan {
    /// A Huffman table: symbols by code length, shortest first.
    struct Table {
        let lengths: [Int]
        let symbols: [UInt8]

        /// All symbols have codes of this length.
        init(_ symbols: [UInt8], length: Int = 16) {
            self.init(symbols, lengths: [Int](repeating: length, count: symbols.count))
        }

        /// The lengths ascend, one per symbol.
        init(_ symbols: [UInt8], lengths: [Int]) {
            self.symbols = symbols
            self.lengths = lengths
        }

        /// A symbol's code: ascending numbers, shifted left as codes get longer (annex C).
        func code(of symbol: UInt8) -> (bits: Int, length: Int) {
            var code = 0
            var last = lengths.first ?? 0
            for (each, length) in zip(symbols, lengths) {
                code <<= length - last
                last = length
                if each == symbol { return (code, length) }
                code += 1
            }
            return (0, 0)
        }

        fileprivate func segment(_ place: UInt8) -> [UInt8] {
            let counts = (1...16).map { length in UInt8(lengths.count { $0 == length }) }
            return JPEGFile.segment(0xC4, [place] + counts + symbols)
        }
    }

    private let dc: Table
    private let ac: Table
    private var pending = 0
    private var pendingCount = 0
    private var restarts = 0
    /// The entropy-coded data.
    private(set) var data: [UInt8] = []

    init(dc: Table, ac: Table) {
        self.dc = dc
        self.ac = ac
    }

    private mutating func append(_ bits: Int, count: Int) {
        for shift in stride(from: count - 1, through: 0, by: -1) {
            pending = pending << 1 | (bits >> shift & 1)
            pendingCount += 1
            guard pendingCount == 8 else { continue }
            data.append(UInt8(pending))
            if pending == 0xFF { data.append(0) }
            (pending, pendingCount) = (0, 0)
        }
    }

    private mutating func append(_ symbol: UInt8, of table: Table, value: Int) {
        let (bits, length) = table.code(of: symbol)
        append(bits, count: length)
        let category = Int.bitWidth - abs(value).leadingZeroBitCount
        append(value > 0 ? value : value + (1 << category) - 1, count: category)
    }

    /// Begins a block with its DC difference.
    mutating func begin(difference: Int = 0) {
        let category = Int.bitWidth - abs(difference).leadingZeroBitCount
        append(UInt8(category), of: dc, value: difference)
    }

    /// Writes a coefficient after `run` zeros, fewer than 16.
    mutating func put(_ value: Int, run: Int = 0) {
        let category = Int.bitWidth - abs(value).leadingZeroBitCount
        append(UInt8(run << 4 | category), of: ac, value: value)
    }

    /// Writes a symbol without a value.
    mutating func put(symbol: UInt8) { append(symbol, of: ac, value: 0) }

    /// Ends a block that has fewer than all coefficients.
    mutating func end() { put(symbol: 0) }

    /// Pads the last byte and writes a restart marker.
    mutating func restart() {
        fill()
        data += [0xFF, 0xD0 + UInt8(restarts % 8)]
        restarts += 1
    }

    private mutating func fill() {
        while pendingCount > 0 { append(1, count: 1) }
    }

    /// Creates the whole file with one row of blocks.
    ///
    /// - Parameters:
    ///   - blocks: The number of blocks written.
    ///   - restartInterval: 0 for none.
    /// - Returns: The bytes of the file.
    mutating func file(blocks: Int, restartInterval: Int = 0) -> [UInt8] {
        fill()
        let width = 8 * blocks
        let frame: [UInt8] = [8, 0, 8, UInt8(width >> 8), UInt8(width & 255), 1, 1, 0x11, 0]
        let interval =
            restartInterval == 0
            ? []
            : JPEGFile.segment(0xDD, [UInt8(restartInterval >> 8), UInt8(restartInterval & 255)])
        return [0xFF, 0xD8] + JPEGFile.segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
            + JPEGFile.segment(0xC0, frame) + dc.segment(0) + ac.segment(0x10) + interval
            + JPEGFile.segment(0xDA, [1, 1, 0, 0, 63, 0]) + data + [0xFF, 0xD9]
    }
}

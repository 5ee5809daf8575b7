import PrefetchModel

/// Puts values into the bytes of a record of ``SpillFile``: numbers in 8 bytes, little end first,
/// texts and blobs behind their length. Read back by the process that wrote them only.
struct SpillWriter {
    private(set) var bytes: [UInt8] = []

    init(reservingCapacity count: Int) {
        bytes.reserveCapacity(count)
    }

    mutating func put(_ number: Int) {
        withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }

    mutating func put(_ first: Int, _ second: Int) {
        put(first)
        put(second)
    }

    mutating func put(_ blob: [UInt8]) {
        put(blob.count)
        bytes += blob
    }

    mutating func put(_ text: String) {
        put(text.utf8.count)
        bytes += text.utf8
    }
}

/// Takes the values of a record in the order in which they were put.
struct SpillReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func number() -> Int {
        defer { position += 8 }
        return bytes.withUnsafeBytes {
            Int(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: Int.self))
        }
    }

    mutating func blob() -> [UInt8] {
        let count = number()
        defer { position += count }
        return Array(bytes[position..<(position + count)])
    }

    mutating func text() -> String {
        let count = number()
        defer { position += count }
        return String(decoding: bytes[position..<(position + count)], as: UTF8.self)
    }
}

extension SpillWriter {
    mutating func put(_ extras: EntryExtras?) {
        guard let extras else { return put(0) }
        put(1)
        if let lifetime = extras.timeToLive {
            let (seconds, attoseconds) = lifetime.components
            put(1)
            put(Int(seconds))
            put(Int(attoseconds))
        } else {
            put(0)
        }
        put(extras.attributes.count)
        for attribute in extras.attributes {
            put(attribute.name)
            put(attribute.value)
        }
        put(extras.headers.count)
        for field in extras.headers {
            put(field.name)
            put(field.value)
        }
    }
}

extension SpillReader {
    mutating func extras() -> EntryExtras? {
        guard number() == 1 else { return nil }
        var extras = EntryExtras()
        if number() == 1 {
            extras.timeToLive = Duration(
                secondsComponent: Int64(number()), attosecondsComponent: Int64(number()))
        }
        for _ in 0..<number() {
            extras.attributes.append(EntryAttribute(storedName: text(), value: blob()))
        }
        for _ in 0..<number() {
            extras.headers.append(HeaderField(name: text(), value: text()))
        }
        return extras
    }
}

import Codecs

/// Writes a message for another process: numbers of eight bytes, texts and bytes after their
/// length.
struct WireWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ number: Int) {
        withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }

    mutating func put(_ flag: Bool) { put(flag ? 1 : 0) }
    mutating func put(_ number: Double) { put(Int(bitPattern: UInt(number.bitPattern))) }

    mutating func put(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        put(Int(seconds))
        put(Int(attoseconds))
    }

    mutating func put(_ text: String) { put(Array(text.utf8)) }

    mutating func put(_ data: [UInt8]) {
        put(data.count)
        bytes += data
    }

    mutating func put<Value>(_ value: Value?, _ body: (inout WireWriter, Value) -> Void) {
        put(value != nil)
        if let value { body(&self, value) }
    }

    mutating func put<Value>(_ values: [Value], _ body: (inout WireWriter, Value) -> Void) {
        put(values.count)
        for value in values { body(&self, value) }
    }
}

/// Reads a message of another process, which may be hostile: no value is trusted to be in its
/// range, and no length to end inside the message. It throws ``Codecs/CodecError/nonsense``.
struct WireReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { position == bytes.count }

    private mutating func take(_ count: Int) throws(CodecError) -> ArraySlice<UInt8> {
        guard count >= 0, count <= bytes.count - position else { throw .nonsense }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    mutating func number() throws(CodecError) -> Int {
        var number: UInt64 = 0
        for byte in try take(8).reversed() { number = number << 8 | UInt64(byte) }
        return Int(Int64(bitPattern: number))
    }

    mutating func number(in range: ClosedRange<Int>) throws(CodecError) -> Int {
        let number = try number()
        guard range.contains(number) else { throw .nonsense }
        return number
    }

    mutating func flag() throws(CodecError) -> Bool { try number(in: 0...1) == 1 }

    mutating func double() throws(CodecError) -> Double {
        Double(bitPattern: UInt64(bitPattern: Int64(try number())))
    }

    /// About a century.
    static let mostTime = Duration.seconds(3_000_000_000)

    /// A duration of at most ``mostTime``.
    mutating func duration() throws(CodecError) -> Duration {
        let seconds = try number(in: 0...Int(WireReader.mostTime.components.seconds))
        let attoseconds = try number(in: 0...999_999_999_999_999_999)
        return Duration(secondsComponent: Int64(seconds), attosecondsComponent: Int64(attoseconds))
    }

    mutating func data(upTo most: Int = .max) throws(CodecError) -> [UInt8] {
        Array(try take(try number(in: 0...most)))
    }

    /// A text; U+FFFD replaces bytes that are not UTF-8.
    mutating func text(upTo most: Int = .max) throws(CodecError) -> String {
        String(decoding: try take(try number(in: 0...most)), as: UTF8.self)
    }

    mutating func value<Value: RawRepresentable<String>>(
        _: Value.Type = Value.self
    ) throws(CodecError) -> Value {
        guard let value = Value(rawValue: try text(upTo: 64)) else { throw .nonsense }
        return value
    }

    mutating func optional<Value>(
        _ body: (inout WireReader) throws(CodecError) -> Value
    ) throws(CodecError) -> Value? {
        try flag() ? try body(&self) : nil
    }

    mutating func array<Value>(
        upTo most: Int = .max, _ body: (inout WireReader) throws(CodecError) -> Value
    ) throws(CodecError) -> [Value] {
        var values: [Value] = []
        for _ in 0..<(try number(in: 0...most)) { values.append(try body(&self)) }
        return values
    }
}

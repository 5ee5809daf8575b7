import CZlib
import PrefetchModel
import Transfers

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

    /// Puts what another writer has gathered, with its length and a checksum.
    mutating func put(payload: SpillWriter) {
        put(payload.bytes.count, payload.bytes.spillChecksum)
        bytes += payload.bytes
    }
}

extension SpillFile {
    /// What stands before a payload: its length and its checksum.
    static let payloadHeadBytes = 2 * 8

    /// Reads a payload that ``SpillWriter/put(payload:)`` has put, its head at `offset`.
    ///
    /// - Throws: also when it is not what was written: a disk that gives back anything else must not
    ///   make an entry of it.
    func payload(at offset: Int) throws(SpillError) -> [UInt8] {
        var head = SpillReader(try read(SpillFile.payloadHeadBytes, at: offset))
        let (count, checksum) = (head.number(), head.number())
        // No payload is empty, and the checksum of nothing is 0, as a disk that lost it gives back.
        guard count > 0 else { throw damage() }
        let payload = try read(count, at: offset + SpillFile.payloadHeadBytes)
        guard payload.spillChecksum == checksum else { throw damage() }
        return payload
    }
}

extension [UInt8] {
    fileprivate var spillChecksum: Int {
        withUnsafeBufferPointer { Int(crc32_z(0, $0.baseAddress, $0.count)) }
    }
}

/// Takes the values of a record in the order in which they were put. What was put in a payload has a
/// checksum, so it is trusted to be whole.
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
    mutating func put(_ number: Int?) {
        put(number == nil ? 0 : 1)
        if let number { put(number) }
    }

    mutating func put(_ text: String?) {
        put(text == nil ? 0 : 1)
        if let text { put(text) }
    }

    mutating func put(_ duration: Duration?) {
        put(duration == nil ? 0 : 1)
        guard let (seconds, attoseconds) = duration?.components else { return }
        put(Int(seconds), Int(attoseconds))
    }

    /// Of an entry that waits for another transfer: what the next one needs, or the report.
    ///
    /// What is stored of the entry is looked up again when it starts.
    mutating func put(_ progress: PendingEntry.Progress?) {
        guard let progress else { return put(0) }
        put(1)
        put(progress.start)
        put(progress.attempts)
        put(progress.failure.map { $0.reason.index })
        put(progress.failure?.message)
        put(progress.target.text)
        put(progress.permanentURL?.text)
        for flag in PendingEntry.Progress.waitingFlags { put(progress[keyPath: flag] ? 1 : 0) }
        switch progress.addressRule {
        case nil: put(0)
        case .publicOnly: put(1)
        case .redirectedFromPublic: put(2)
        case .listed(allowsLinkLocal: let allows): put(allows ? 4 : 3)
        }
        put(progress.visited.count)
        for hash in progress.visited { put(hash) }
        put(progress.redirects)
        put(progress.stages.queue)
        put(progress.stages.transfer)
        put(progress.stages.decode)
        put(progress.stages.encode)
        put(progress.bytesReceived)
        put(progress.httpStatus)
        put(progress.contentType)
        put(progress.curlCode)
        put(progress.outcome.index)
    }

    mutating func put(_ extras: EntryExtras?) {
        guard let extras else { return put(0) }
        put(1)
        put(extras.timeToLive)
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
        put(extras.encoding?.rawValue)
        put(extras.quality)
        put(extras.variants.map { Int(bitPattern: UInt($0.rawValue)) })
    }
}

extension SpillReader {
    mutating func optionalNumber() -> Int? { number() == 0 ? nil : number() }
    mutating func optionalText() -> String? { number() == 0 ? nil : text() }

    mutating func optionalDuration() -> Duration? {
        guard number() == 1 else { return nil }
        return Duration(
            secondsComponent: Int64(number()), attosecondsComponent: Int64(number()))
    }

    mutating func progress() -> PendingEntry.Progress? {
        guard number() == 1 else { return nil }
        let start = optionalNumber()
        let attempts = number()
        let reason = optionalNumber().map { FailureReason.allCases[$0] }
        let message = optionalText()
        let progress = PendingEntry.Progress(
            start: start, target: RequestURL(normalized: text()), queued: .zero)
        progress.attempts = attempts
        progress.failure = reason.flatMap { reason in message.map { (reason, $0) } }
        progress.permanentURL = optionalText().map { RequestURL(normalized: $0) }
        for flag in PendingEntry.Progress.waitingFlags {
            progress[keyPath: flag] = number() == 1
        }
        switch number() {
        case 1: progress.addressRule = .publicOnly
        case 2: progress.addressRule = .redirectedFromPublic
        case 3: progress.addressRule = .listed(allowsLinkLocal: false)
        case 4: progress.addressRule = .listed(allowsLinkLocal: true)
        default: progress.addressRule = nil
        }
        for _ in 0..<number() { progress.visited.append(number()) }
        progress.redirects = number()
        progress.stages.queue = optionalDuration()
        progress.stages.transfer = optionalDuration()
        progress.stages.decode = optionalDuration()
        progress.stages.encode = optionalDuration()
        progress.bytesReceived = number()
        progress.httpStatus = optionalNumber()
        progress.contentType = optionalText()
        progress.curlCode = optionalNumber()
        progress.outcome = Outcome.allCases[number()]
        return progress
    }

    mutating func extras() -> EntryExtras? {
        guard number() == 1 else { return nil }
        var extras = EntryExtras()
        extras.timeToLive = optionalDuration()
        for _ in 0..<number() {
            extras.attributes.append(EntryAttribute(storedName: text(), value: blob()))
        }
        for _ in 0..<number() {
            extras.headers.append(HeaderField(name: text(), value: text()))
        }
        extras.encoding = optionalText().flatMap(Recipe.Encoding.init)
        extras.quality = optionalNumber()
        extras.variants = optionalNumber().map {
            VariantSelection(rawValue: UInt64(UInt(bitPattern: $0)))
        }
        return extras
    }
}

extension PendingEntry.Progress {
    /// Those that matter to an entry that waits.
    fileprivate static var waitingFlags: [ReferenceWritableKeyPath<PendingEntry.Progress, Bool>] {
        [
            \.beginsAttempt, \.isPermanentSoFar, \.followsMemory, \.ignoresMemory,
            \.ignoresParts,
        ]
    }
}

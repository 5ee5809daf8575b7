import CZlib
import EntryLifecycle
import PrefetchModel

/// Writes or reads a record of ``SpillFile``. The description of a type, one `code` for both ways,
/// leaves a value as it is when it is written, and replaces it when it is read.
///
/// Only the writing process reads a record, so plain values have their layout in memory. Texts and
/// arrays follow their length.
protocol SpillCoding {
    mutating func code<Value: BitwiseCopyable>(_ value: inout Value)
    mutating func code<Element: BitwiseCopyable>(_ elements: inout [Element])
    mutating func code(_ text: inout String)
}

struct SpillWriter: SpillCoding {
    private(set) var bytes: [UInt8] = []

    init(reservingCapacity count: Int) {
        bytes.reserveCapacity(count)
    }

    mutating func put(_ value: some BitwiseCopyable) {
        withUnsafeBytes(of: value) { bytes += $0 }
    }

    mutating func put(_ text: String) {
        put(text.utf8.count)
        bytes += text.utf8
    }

    /// Appends the content of another writer, after its length and a checksum.
    mutating func put(payload: SpillWriter) {
        put((payload.bytes.count, payload.bytes.spillChecksum))
        bytes += payload.bytes
    }

    mutating func code<Value: BitwiseCopyable>(_ value: inout Value) { put(value) }
    mutating func code(_ text: inout String) { put(text) }

    mutating func code<Element: BitwiseCopyable>(_ elements: inout [Element]) {
        put(elements.count)
        elements.withUnsafeBytes { bytes += $0 }
    }
}

/// Decodes the values of a record in the order in which they were written. Payloads have a
/// checksum, so their content is trusted.
struct SpillReader: SpillCoding {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func value<Value: BitwiseCopyable>(_: Value.Type = Value.self) -> Value {
        defer { position += MemoryLayout<Value>.size }
        return bytes.withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: position, as: Value.self)
        }
    }

    mutating func text() -> String {
        let count = value(Int.self)
        defer { position += count }
        return String(decoding: bytes[position..<(position + count)], as: UTF8.self)
    }

    mutating func code<Value: BitwiseCopyable>(_ value: inout Value) { value = self.value() }
    mutating func code(_ text: inout String) { text = self.text() }

    mutating func code<Element: BitwiseCopyable>(_ elements: inout [Element]) {
        let count = value(Int.self)
        let size = count * MemoryLayout<Element>.stride
        elements = [Element](unsafeUninitializedCapacity: count) { buffer, initialized in
            UnsafeMutableRawBufferPointer(buffer).copyBytes(
                from: bytes[position..<(position + size)])
            initialized = count
        }
        position += size
    }
}

extension SpillFile {
    /// The size of a payload's head: its length and its checksum.
    static let payloadHeadBytes = 2 * 8

    /// Reads a payload written by ``SpillWriter/put(payload:)``, its head at `offset`. A disk that
    /// returns other bytes must not create an entry.
    func payload(at offset: Int) throws -> [UInt8] {
        var head = SpillReader(try read(SpillFile.payloadHeadBytes, at: offset))
        let (count, checksum): (Int, Int) = head.value()
        // No payload is empty, and the checksum of nothing is 0, which a disk returns for lost
        // blocks.
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

// MARK: Entries

extension SpillWriter {
    mutating func put(_ entry: Entry, manifest: Int, epoch: ContinuousClock.Instant) {
        put((manifest, entry.line, entry.priority, entry.queuedAt - epoch, entry.state))
        put((entry.resource, entry.variantSet, entry.alternative, entry.failedBefore))
        put(entry.listedURL.text)
        var (key, extras) = (entry.key == entry.listedURL.text ? nil : entry.key, entry.extras)
        code(&key)
        code(&extras)
    }

    /// The stored copy is looked up again when the entry starts.
    mutating func put(_ rest: EntryMachine.Rest) {
        guard case .queued(var history, var journey) = rest else { return put(false) }
        put(true)
        code(&history)
        code(&journey)
    }
}

extension SpillReader {
    mutating func entry(manifests: [String], epoch: ContinuousClock.Instant) -> Entry {
        let (manifest, line, priority, waiting, state): (Int, Int, Priority, Duration, EntryState) =
            value()
        let (resource, variantSet, alternative, failedBefore): (Int64?, UInt32, Int, Bool) = value()
        let url = RequestURL(normalized: text())
        var (key, extras) = (String?.none, EntryExtras?.none)
        code(&key)
        code(&extras)
        var entry = Entry(
            manifest: manifests[manifest], line: line, url: url, key: key ?? url.text,
            priority: priority, state: state, resource: resource, extras: extras,
            variantSet: variantSet, alternative: alternative, queuedAt: epoch + waiting)
        entry.failedBefore = failedBefore
        return entry
    }

    mutating func rest(of entry: Entry) -> EntryMachine.Rest {
        guard value() else { return .waiting }
        var (history, journey) = (History(), Journey(from: entry.url))
        code(&history)
        code(&journey)
        return .queued(history, journey)
    }
}

/// A ``History/LastResult`` without its text.
private enum PlainResult {
    case none
    case response(Int)
    case failure(Int?, curlCode: Int?)
}

extension SpillCoding {
    mutating func code(_ text: inout String?) { code(&text, from: "") { $0.code(&$1) } }
    mutating func code(_ bytes: inout [UInt8]?) { code(&bytes, from: []) { $0.code(&$1) } }

    /// Codes an optional value; `start` is a value to read into.
    private mutating func code<Value>(
        _ value: inout Value?, from start: @autoclosure () -> Value,
        _ code: (inout Self, inout Value) -> Void
    ) {
        var isThere = value != nil
        self.code(&isThere)
        guard isThere else { return value = nil }
        var some = value ?? start()
        code(&self, &some)
        value = some
    }

    /// Codes an array; `start` is an element to read into.
    private mutating func code<Element>(
        _ elements: inout [Element], from start: Element,
        _ code: (inout Self, inout Element) -> Void
    ) {
        var count = elements.count
        self.code(&count)
        if elements.count != count { elements = [Element](repeating: start, count: count) }
        for index in elements.indices { code(&self, &elements[index]) }
    }

    mutating func code(_ history: inout History) {
        code(&history.start)
        code(&history.attempts)
        code(&history.attemptsAtOthers)
        code(&history.temporary, from: .blank) { coder, earlier in
            coder.code(&earlier.failure)
            coder.code(&earlier.alternative)
            coder.code(&earlier.lastResult)
        }
        code(&history.unansweredRanges)
        code(&history.refusals)
        code(&history.stages)
        code(&history.bytesReceived)
        code(&history.lastResult)
        code(&history.connection, from: ResponseConnection()) { coder, connection in
            coder.code(&connection.version)
            coder.code(&connection.isReused)
            coder.code(&connection.timeToFirstByte)
            coder.code(&connection.address)
            coder.code(&connection.setup)
        }
    }

    private mutating func code(_ result: inout History.LastResult) {
        var (kind, contentType) = (PlainResult.none, String?.none)
        switch result {
        case .none: break
        case .response(let status, let type): (kind, contentType) = (.response(status), type)
        case .failure(let status, let code): kind = .failure(status, curlCode: code)
        }
        code(&kind)
        code(&contentType)
        switch kind {
        case .none: result = .none
        case .response(let status): result = .response(status: status, contentType: contentType)
        case .failure(let status, let code): result = .failure(status: status, curlCode: code)
        }
    }

    private mutating func code(_ failure: inout Failure) {
        var (reason, message) = (failure.reason, failure.message)
        code(&reason)
        code(&message)
        failure = Failure(reason, message)
    }

    mutating func code(_ journey: inout Journey) {
        code(&journey.route)
        var (isFirst, retried) = (false, Failure?.none)
        switch journey.turn {
        case .firstAttempt: isFirst = true
        case .sameAttempt: break
        case .retry(let failure): retried = failure
        }
        code(&isFirst)
        code(&retried, from: Failure(.internal, "")) { $0.code(&$1) }
        journey.turn = retried.map { .retry(after: $0) } ?? (isFirst ? .firstAttempt : .sameAttempt)
        code(&journey.usesMemory)
        code(&journey.usesConditions)
    }

    private mutating func code(_ route: inout Route) {
        code(&route.target)
        code(&route.permanent, from: PermanentTarget(url: "", until: .distantPast)) {
            $0.code(&$1.url)
            $0.code(&$1.until)
        }
        code(&route.isPermanentSoFar)
        code(&route.followsMemory)
        code(&route.addressRule)
        code(&route.visited)
        var (names, values) = (Array(route.cookies.keys), Array(route.cookies.values))
        code(&names)
        code(&values)
        route.cookies = Dictionary(uniqueKeysWithValues: zip(names, values))
        code(&route.setsCookies)
        code(&route.redirects)
    }

    private mutating func code(_ url: inout RequestURL) {
        var text = url.text
        code(&text)
        url = RequestURL(normalized: text)
    }

    /// Without the fields about variants, which a waiting entry has as a number.
    mutating func code(_ extras: inout EntryExtras?) {
        code(&extras, from: .empty) { coder, extras in
            coder.code(&extras.timeToLive)
            let attribute = EntryAttribute(storedName: "", value: [])
            coder.code(&extras.attributes, from: attribute) { coder, attribute in
                var (name, value) = (attribute.name, attribute.value)
                coder.code(&name)
                coder.code(&value)
                attribute = EntryAttribute(storedName: name, value: value)
            }
            coder.code(&extras.headers, from: HeaderField(name: "", value: "")) { coder, field in
                var (name, value) = (field.name, field.value)
                coder.code(&name)
                coder.code(&value)
                field = HeaderField(name: name, value: value)
            }
            coder.code(&extras.alternatives, from: RequestURL(normalized: "")) { $0.code(&$1) }
            coder.code(&extras.sourceDigest)
            coder.code(&extras.columns)
        }
    }
}

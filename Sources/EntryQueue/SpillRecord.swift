import CZlib
import EntryLifecycle
import PrefetchModel

/// Encodes values into a record of ``SpillFile``: numbers in 8 bytes, little-endian, texts and
/// blobs after their length. Only the writing process reads it.
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

    /// Appends the content of another writer, after its length and a checksum.
    mutating func put(payload: SpillWriter) {
        put(payload.bytes.count, payload.bytes.spillChecksum)
        bytes += payload.bytes
    }
}

extension SpillFile {
    /// The size of a payload's head: its length and its checksum.
    static let payloadHeadBytes = 2 * 8

    /// Reads a payload written by ``SpillWriter/put(payload:)``, its head at `offset`.
    ///
    /// - Throws: also when the checksum differs: a disk that returns other bytes must not create an
    ///   entry.
    func payload(at offset: Int) throws -> [UInt8] {
        var head = SpillReader(try read(SpillFile.payloadHeadBytes, at: offset))
        let (count, checksum) = (head.number(), head.number())
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

/// Decodes the values of a record in the order in which they were written. Payloads have a
/// checksum, so their content is trusted.
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

    mutating func put(_ blob: [UInt8]?) {
        put(blob == nil ? 0 : 1)
        if let blob { put(blob) }
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

    mutating func put(_ entry: Entry, manifest: Int, epoch: ContinuousClock.Instant) {
        put(manifest)
        put(entry.line)
        put(Int(entry.priority.value))
        let (seconds, attoseconds) = (entry.queuedAt - epoch).components
        put(Int(seconds * 1_000_000_000 + attoseconds / 1_000_000_000))
        put(entry.state)
        put(entry.resource.map { Int($0) })
        put(entry.listedURL.text)
        put(entry.alternative)
        put(entry.key == entry.listedURL.text ? 0 : 1)
        if entry.key != entry.listedURL.text { put(entry.key) }
        put(entry.extras)
        put(Int(entry.variantSet))
        put(entry.failedBefore ? 1 : 0)
    }

    private mutating func put(_ state: EntryState) {
        switch state {
        case .missing: put(0, 0)
        case .stale(.expired(let expiresAt)): put(1, Int(expiresAt.milliseconds))
        case .stale(.otherSource): put(2, 0)
        case .stale(.incomplete(let position)): put(3, Int(position))
        case .stale(.original): put(4, 0)
        case .derivable(let expiresAt): put(5, Int(expiresAt.milliseconds))
        case .seeded(let expiresAt): put(6, Int(expiresAt.milliseconds))
        case .unannotated(let expiresAt): put(7, Int(expiresAt.milliseconds))
        case .extended: put(8, 0)
        case .invalid, .fresh, .blacklisted: preconditionFailure("such an entry does not wait")
        }
    }

    /// The stored copy is looked up again when the entry starts.
    mutating func put(_ rest: EntryMachine.Rest) {
        switch rest {
        case .waiting:
            put(0)
        case .queued(let history, let journey):
            put(1)
            put(history)
            put(journey)
        }
    }

    private mutating func put(_ history: History) {
        switch history.beginning {
        case .noTurn: put(0)
        case .turn(let position): put(position)
        }
        put(history.attempts, history.attemptsAtOthers)
        put(history.temporary == nil ? 0 : 1)
        if let temporary = history.temporary {
            put(temporary.failure.reason.index, temporary.alternative)
            put(temporary.failure.message)
            put(temporary.lastResult)
        }
        put(history.unansweredRanges)
        put(history.refusals)
        put(history.stages.queue)
        put(history.stages.transfer)
        put(history.stages.decode)
        put(history.stages.encode)
        put(history.bytesReceived)
        put(history.lastResult)
        put(history.connection)
    }

    private mutating func put(_ result: History.LastResult) {
        switch result {
        case .none:
            put(0)
        case .response(let status, let contentType):
            put(1, status)
            put(contentType)
        case .failure(let status, let curlCode):
            put(2)
            put(status)
            put(curlCode)
        }
    }

    private mutating func put(_ connection: ResponseConnection?) {
        guard let connection else { return put(0) }
        put(1, HTTPVersion.allCases.firstIndex(of: connection.version) ?? 0)
        put(connection.isReused ? 1 : 0)
        put(connection.timeToFirstByte)
        put(connection.address)
        put(connection.setup == nil ? 0 : 1)
        if let setup = connection.setup {
            put(setup.nameLookup)
            put(setup.connecting)
            put(setup.handshake)
        }
    }

    private mutating func put(_ journey: Journey) {
        put(journey.route)
        switch journey.turn {
        case .firstAttempt: put(0)
        case .sameAttempt: put(1)
        case .retry(let failure):
            put(2, failure.reason.index)
            put(failure.message)
        }
        put(journey.usesMemory ? 1 : 0)
        put(journey.usesConditions ? 1 : 0)
    }

    private mutating func put(_ route: Route) {
        put(route.target.text)
        put(route.permanentTarget?.text)
        put(route.isPermanentSoFar ? 1 : 0)
        put(route.followsMemory ? 1 : 0)
        switch route.addressRule {
        case nil: put(0)
        case .publicOnly: put(1)
        case .redirectedFromPublic: put(2)
        case .listed(allowsLinkLocal: let allows): put(allows ? 4 : 3)
        }
        put(route.visited.count)
        for hash in route.visited { put(hash) }
        put(route.cookies.count)
        for (name, value) in route.cookies { put(name, value) }
        put(route.setsCookies ? 1 : 0)
        put(route.redirects)
    }

    /// Without the fields about variants, which a waiting entry has as a number.
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
        put(extras.alternatives.count)
        for url in extras.alternatives { put(url.text) }
        put(extras.sourceDigest?.bytes)
        put(extras.columns)
    }
}

extension SpillReader {
    mutating func optionalNumber() -> Int? { number() == 0 ? nil : number() }
    mutating func optionalText() -> String? { number() == 0 ? nil : text() }
    mutating func optionalBlob() -> [UInt8]? { number() == 0 ? nil : blob() }

    mutating func optionalDuration() -> Duration? {
        guard number() == 1 else { return nil }
        return Duration(
            secondsComponent: Int64(number()), attosecondsComponent: Int64(number()))
    }

    mutating func entry(manifests: [String], epoch: ContinuousClock.Instant) -> Entry {
        let manifest = manifests[number()]
        let line = number()
        let priority = Priority(number()) ?? .normal
        let queuedAt = epoch + .nanoseconds(number())
        let state = state()
        let resource = optionalNumber().map { Int64($0) }
        let url = RequestURL(normalized: text())
        let alternative = number()
        let key = number() == 0 ? url.text : text()
        var entry = Entry(
            manifest: manifest, line: line, url: url, key: key, priority: priority,
            state: state, resource: resource, extras: extras(), variantSet: UInt32(number()),
            alternative: alternative,
            queuedAt: queuedAt)
        entry.failedBefore = number() == 1
        return entry
    }

    private mutating func state() -> EntryState {
        let (kind, value) = (number(), Int64(number()))
        let time = Timestamp(milliseconds: value)
        return switch kind {
        case 1: .stale(.expired(at: time))
        case 2: .stale(.otherSource)
        case 3: .stale(.incomplete(position: Int32(value)))
        case 4: .stale(.original)
        case 5: .derivable(expiresAt: time)
        case 6: .seeded(expiresAt: time)
        case 7: .unannotated(expiresAt: time)
        case 8: .extended
        default: .missing
        }
    }

    mutating func rest(of entry: Entry) -> EntryMachine.Rest {
        guard number() == 1 else { return .waiting }
        let history = history()
        return .queued(history, journey())
    }

    private mutating func history() -> History {
        let position = number()
        let (attempts, attemptsAtOthers) = (number(), number())
        let temporary = number() == 1 ? earlierFailure() : nil
        let unansweredRanges = number()
        let refusals = number()
        let stages = StageDurations(
            queue: optionalDuration(), transfer: optionalDuration(), decode: optionalDuration(),
            encode: optionalDuration())
        let bytesReceived = number()
        let lastResult = lastResult()
        return History(
            beginning: position == 0 ? .noTurn : .turn(position: position), attempts: attempts,
            attemptsAtOthers: attemptsAtOthers, temporary: temporary,
            unansweredRanges: unansweredRanges,
            refusals: refusals, stages: stages,
            bytesReceived: bytesReceived, lastResult: lastResult, connection: connection())
    }

    private mutating func earlierFailure() -> History.EarlierFailure {
        let (reason, alternative) = (FailureReason.allCases[number()], number())
        return History.EarlierFailure(
            failure: Failure(reason, text()), alternative: alternative, lastResult: lastResult())
    }

    private mutating func lastResult() -> History.LastResult {
        switch number() {
        case 1: .response(status: number(), contentType: optionalText())
        case 2: .failure(status: optionalNumber(), curlCode: optionalNumber())
        default: .none
        }
    }

    private mutating func connection() -> ResponseConnection? {
        guard number() == 1 else { return nil }
        return ResponseConnection(
            version: HTTPVersion.allCases[number()], isReused: number() == 1,
            timeToFirstByte: optionalDuration() ?? .zero, address: text(), setup: setup())
    }

    private mutating func setup() -> ResponseConnection.Setup? {
        guard number() == 1 else { return nil }
        return ResponseConnection.Setup(
            nameLookup: optionalDuration() ?? .zero, connecting: optionalDuration() ?? .zero,
            handshake: optionalDuration())
    }

    private mutating func journey() -> Journey {
        let route = route()
        let turn: Journey.Turn
        switch number() {
        case 0: turn = .firstAttempt
        case 2:
            let reason = FailureReason.allCases[number()]
            turn = .retry(after: Failure(reason, text()))
        default: turn = .sameAttempt
        }
        return Journey(
            route: route, turn: turn, usesMemory: number() == 1, usesConditions: number() == 1)
    }

    private mutating func route() -> Route {
        let target = RequestURL(normalized: text())
        let permanentTarget = optionalText().map { RequestURL(normalized: $0) }
        let (isPermanentSoFar, followsMemory) = (number() == 1, number() == 1)
        let rule: AddressRule? =
            switch number() {
            case 1: .publicOnly
            case 2: .redirectedFromPublic
            case 3: .listed(allowsLinkLocal: false)
            case 4: .listed(allowsLinkLocal: true)
            default: nil
            }
        let visited = (0..<number()).map { _ in number() }
        let cookies = (0..<number()).map { _ in (number(), number()) }
        return Route(
            target: target, permanentTarget: permanentTarget, isPermanentSoFar: isPermanentSoFar,
            followsMemory: followsMemory, addressRule: rule, visited: visited,
            cookies: Dictionary(uniqueKeysWithValues: cookies), setsCookies: number() == 1,
            redirects: number())
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
        for _ in 0..<number() {
            extras.alternatives.append(RequestURL(normalized: text()))
        }
        extras.sourceDigest = optionalBlob().flatMap {
            $0.withUnsafeBytes { ContentDigest(bytes: $0) }
        }
        extras.columns = optionalBlob()
        return extras
    }
}

import Foundation
import Scheduling
import Testing

@testable import EntryLifecycle
@testable import EntryQueue
@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct EntryStoreTests {
    private static let folder = FileManager.default.temporaryDirectory.path

    private static func store(capacity: Int = 10) -> EntryStore {
        EntryStore(capacity: capacity, folder: folder)
    }

    private static func entry(_ number: Int) -> EntryMachine {
        let states: [EntryState] = [
            .missing, .stale(.expired(at: Timestamp(milliseconds: -1))), .stale(.otherSource),
            .stale(.incomplete(position: Int32(number))), .stale(.original),
            .derivable(expiresAt: Timestamp(milliseconds: .max)),
            .seeded(expiresAt: Timestamp(milliseconds: 7)),
            .unannotated(expiresAt: Timestamp(milliseconds: 0)), .extended,
        ]
        let resources: [Int64?] = [nil, Int64(number), .max, -1]
        let extras: [EntryExtras?] = [
            nil,
            EntryExtras(
                timeToLive: .milliseconds(number),
                headers: [
                    HeaderField(name: "X-A", value: "ä b"), HeaderField(name: "Accept", value: ""),
                ],
                alternatives: [
                    RequestURL(normalized: "http://i/a"), RequestURL(normalized: "http://j/b"),
                ],
                sourceDigest: ContentDigest(hexadecimal: String(repeating: "7f", count: 32))),
            EntryExtras(attributes: [
                EntryAttribute(storedName: "näme", value: [0, 10, 255]),
                EntryAttribute(storedName: "", value: []),
            ]),
        ]
        let url = "http://h/\(number)?" + String(repeating: "x", count: number % 300)
        var entry = Entry(
            manifest: "m\(number % 3).txt", line: number, url: RequestURL(normalized: url),
            key: number % 5 == 0 ? "kéy \(number)" : url,
            priority: Priority(number % 201 - 100) ?? .normal, state: states[number % 9],
            resource: resources[number % 4],
            extras: extras[number % 3], variantSet: UInt32(number) << 12,
            alternative: number % 3 == 1 ? number % 2 : 0, queuedAt: .now)
        entry.failedBefore = number % 7 == 0
        return EntryMachine(entry)
    }

    private static func isEqual(_ left: EntryMachine?, _ right: EntryMachine) -> Bool {
        guard let left = left?.entry else { return false }
        let right = right.entry
        return left.state == right.state && left.resource == right.resource
            && left.manifest == right.manifest
            && left.line == right.line && left.url == right.url
            && left.listedURL == right.listedURL && left.key == right.key
            && left.priority == right.priority && left.extras == right.extras
            && left.failedBefore == right.failedBefore && left.variantSet == right.variantSet
            && abs((left.queuedAt - right.queuedAt) / .nanoseconds(1)) < 2
    }

    @Test func entriesRoundTrip() throws {
        let store = Self.store()
        let entries = (0..<20_000).map(Self.entry)
        var places: [SpillPlace] = []
        for (number, entry) in entries.enumerated() {
            store.add(entry, as: number)
            let link = SpillLink(place: places.last, position: -number)
            let spilled = try store.spill(
                number, position: 5, next: number == 0 ? .end : link, behind: nil)
            #expect(spilled.position == 5)
            places.append(try #require(spilled.place))
            #expect(store.isEmpty)
        }
        // In an order that jumps between the blocks of the file.
        for number in entries.indices.map({ $0 * 7919 % entries.count }) {
            let (identifier, next) = try store.load(places[number])
            #expect(identifier == number)
            #expect(next.place == (number == 0 ? nil : places[number - 1]))
            #expect(next.position == (number == 0 ? 0 : -number))
            #expect(Self.isEqual(store[number], entries[number]), "\(number)")
            store.end(number, reason: nil)
        }
        #expect(store.isEmpty)
    }

    @Test func damagedRecordIsAnError() throws {
        let file = SpillFile(folder: Self.folder)
        var payload = SpillWriter(reservingCapacity: 0)
        payload.put("some text")
        payload.put(Int.max)
        var record = SpillWriter(reservingCapacity: 0)
        record.put(payload: payload)
        let offset = try file.append(record.bytes)
        #expect(try file.payload(at: offset) == payload.bytes)
        for position in record.bytes.indices {
            for bit in [0x01, 0x80] as [UInt8] {
                try file.change([record.bytes[position] ^ bit], at: offset + position)
                #expect(throws: UserError.self) { try file.payload(at: offset) }
            }
            try file.change([record.bytes[position]], at: offset + position)
        }
        #expect(try file.payload(at: offset) == payload.bytes)
        try file.change([UInt8](repeating: 0, count: record.bytes.count), at: offset)
        #expect(throws: UserError.self) { try file.payload(at: offset) }
        for place in [-1, Int.min, Int.max, offset + 1, record.bytes.count] {
            #expect(throws: UserError.self) { try file.payload(at: place) }
        }
    }

    @Test func linksChangeInFileAndBuffer() throws {
        let store = Self.store()
        var places: [SpillPlace] = []
        for number in 0..<60_000 {
            store.add(Self.entry(number), as: number)
            let link = try store.spill(number, position: 0, next: .end, behind: nil)
            places.append(try #require(link.place))
        }
        for number in stride(from: 0, to: 60_000, by: 97) {
            // Reads before the change, so that a cached block has to change too.
            if number > 97 { #expect(try store.load(places[number - 1]).entry == number - 1) }
            store.add(Self.entry(number), as: 60_000 + number)
            let link = try store.spill(
                60_000 + number, position: number, next: .end, behind: places[number])
            let (identifier, next) = try store.load(places[number])
            #expect(identifier == number)
            #expect(next == link)
            #expect(next.position == number)
        }
    }

    @Test func spillFileKeepsTheOrderOfManyHosts() throws {
        for order in [StartOrder.fifo, .lifo] {
            let store = Self.store(capacity: 50)
            var scheduler = Scheduler(
                order: order, rules: HostPacing.PaceRules(concurrency: 1), storage: store)
            let now = ContinuousClock.now
            for number in 0..<30_000 {
                store.add(Self.entry(number), as: number)
                try scheduler.push(
                    number, priority: .normal, host: "http://\(number % 700)", at: now)
            }
            var started: [Int] = []
            while let start = try scheduler.popReady(at: now) {
                started.append(start.entry)
                #expect(store[start.entry]?.entry.line == start.entry)
                store.end(start.entry, reason: nil)
                scheduler.finished(start.host, of: "", .answered, at: now)
            }
            #expect(started == (order == .fifo ? Array(0..<30_000) : (0..<30_000).reversed()))
            #expect(store.isEmpty)
        }
    }

    @Test func duplicatesAreReturnedOnce() throws {
        let store = Self.store(capacity: 100)
        for number in 0..<50 {
            store.add(Self.entry(number), as: number)
            store.positions.note(
                number, manifest: "m\(number % 3).txt", line: number, requestMark: 0)
        }
        for line in 0..<5000 {
            try store.add(
                Entry.Duplicate(
                    manifest: "d\(line % 2)", line: line, url: "http://h/\(line)"),
                of: line % 50)
        }
        #expect(store.laterLines.counts == (5000, 0))
        for number in 0..<50 {
            #expect(!store.positions.hasEnded(number))
            store.end(number, reason: number % 2 == 0 ? .connect : nil)
            #expect(store.positions.hasEnded(number))
            var lines: [Int] = []
            try store.takeDuplicates(of: number) { duplicate in
                #expect(duplicate.manifest == "d\(duplicate.line % 2)")
                #expect(duplicate.url == "http://h/\(duplicate.line)")
                lines.append(duplicate.line)
            }
            #expect(lines.sorted() == Array(stride(from: number, to: 5000, by: 50)))
            try store.takeDuplicates(of: number) { _ in Issue.record("given twice") }
            #expect(store.positions.reason(of: number) == (number % 2 == 0 ? .connect : nil))
            let place = store.positions.place(of: number)
            #expect(place == (number == 0 ? "an earlier line" : "m\(number % 3).txt:\(number)"))
        }
        #expect(store.laterLines.counts == (0, 0))
    }

    /// Each of the two places may be spilled; the entry stays in memory.
    @Test func raisedEntrySpillsOnlyItsPlaces() throws {
        let store = Self.store(capacity: 100)
        for number in 0..<3 { store.add(Self.entry(number), as: number) }
        #expect(store.canBeRaised(1))
        store.raise(1, to: .high)
        #expect(!store.canBeRaised(1) && store.raisedCount == 1)
        var links: [SpillLink] = []
        for number in [0, 1, 1, 2] {
            links.append(try store.spill(number, position: number, next: .end, behind: nil))
        }
        #expect(store[0] == nil && store[2] == nil)
        #expect(store[1]?.entry.priority == .high)
        for (link, number) in zip(links, [0, 1, 1, 2]) {
            let place = try #require(link.place)
            #expect(try store.load(place).entry == number)
        }
        #expect(store[0]?.entry.line == 0 && store[1]?.entry.line == 1 && store[2]?.entry.line == 2)
        // Also the place of an ended entry.
        store.end(1, reason: nil)
        let last = try store.spill(1, position: 9, next: .end, behind: nil)
        #expect(try store.load(try #require(last.place)).entry == 1)
        #expect(store[1] == nil && store.dropPlace(of: 1) && !store.dropPlace(of: 1))
        #expect(!store.canBeRaised(1))
    }

    /// Raised entries stay in memory. One that has both places in the file loses both.
    @Test func spilledEntriesAreDroppedUnread() throws {
        let store = Self.store(capacity: 100)
        for number in 0..<9 { store.add(Self.entry(number), as: number) }
        for number in 1...3 { store.raise(number, to: .high) }
        let places = try [0, 1, 1, 2, 4].map {
            try #require(try store.spill($0, position: 0, next: .end, behind: nil).place)
        }
        #expect(try store.load(places[4]).entry == 4)
        #expect(!store.hasSpilledReturning)
        var dropped = store.dropSpilled()
        #expect(dropped.count == 1 && dropped.placeless == [1])
        #expect(store.count == 8 && store[0] == nil)
        #expect((1...4).filter(store.isRaised) == [3])

        let rest = EntryMachine.Rest.queued(Self.history(1), Self.journey(1))
        store.add(EntryMachine(Self.entry(9).entry, rest: rest), as: 9)
        let place = try #require(
            try store.spill(9, position: 0, next: .end, behind: nil).place)
        #expect(store.hasSpilledReturning)
        #expect(try store.load(place).entry == 9)
        #expect(!store.hasSpilledReturning)
        dropped = store.dropSpilled()
        #expect(dropped.count == 0 && dropped.placeless.isEmpty && store.count == 9)
    }

    @Test func fileHasNoNameAndMissingFolderIsAnError() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "prefetch-spill-\(UUID().uuidString)"
        ).path
        let store = EntryStore(capacity: 1, folder: folder)
        let entry = Self.entry(1)
        store.add(entry, as: 1)
        #expect {
            _ = try store.spill(1, position: 0, next: .end, behind: nil)
        } throws: { error in
            (error as? UserError)?.description.hasPrefix("\(folder): creating") == true
        }
        #expect(Self.isEqual(store[1], entry))
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let place = try #require(
            try store.spill(1, position: 0, next: .end, behind: nil).place)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        #expect(try store.load(place).entry == 1)
    }

    /// Entries that were started and wait for the host of a redirect, or for a retry.
    @Test func startedEntriesRoundTrip() throws {
        let store = Self.store()
        for number in 0..<500 {
            let rest = EntryMachine.Rest.queued(Self.history(number), Self.journey(number))
            let machine = EntryMachine(Self.entry(number).entry, rest: rest)
            store.add(machine, as: number)
            let place = try #require(
                try store.spill(number, position: 1, next: .end, behind: nil).place)
            #expect(store[number] == nil)
            #expect(try store.load(place).entry == number)
            let loaded = try #require(store[number])
            #expect("\(String(describing: loaded.rest))" == "\(String(describing: machine.rest))")
            #expect(loaded.waitsForRetry == (number % 3 == 2))
        }
    }

    private static func history(_ number: Int) -> History {
        let answers: [History.LastResult] = [
            .none, .response(status: 302, contentType: nil),
            .response(status: 200, contentType: "image/jpeg"),
            .failure(status: nil, curlCode: 7), .failure(status: 200, curlCode: nil),
        ]
        var history = History()
        history.start = number % 3 == 0 ? nil : number
        history.attempts = number % 4
        history.attemptsAtOthers = number % 2
        if number % 4 != 0 {
            history.temporary = History.EarlierFailure(
                failure: Failure(.timeout, "late"), alternative: 1, lastResult: answers[number % 5])
        }
        history.unansweredRanges = number % 3
        history.refusals = number % 5
        history.stages.queue = .milliseconds(number)
        history.stages.transfer = number % 2 == 0 ? nil : .nanoseconds(number)
        history.stages.decode = .seconds(number)
        history.bytesReceived = number
        history.lastResult = answers[number % 5]
        if number % 3 != 0 {
            var connection = ResponseConnection()
            connection.version = HTTPVersion.allCases[number % 4]
            connection.isReused = number % 2 == 0
            connection.timeToFirstByte = .microseconds(number)
            connection.address = "192.0.2.\(number % 9)"
            if number % 2 != 0 {
                var setup = ResponseConnection.Setup()
                setup.nameLookup = .microseconds(1)
                setup.connecting = .microseconds(number)
                setup.handshake = number % 5 == 0 ? nil : .microseconds(3)
                connection.setup = setup
            }
            history.connection = connection
        }
        return history
    }

    private static func journey(_ number: Int) -> Journey {
        let rules: [AddressRule?] = [
            nil, .publicOnly, .redirectedFromPublic, .listed(allowsLinkLocal: false),
            .listed(allowsLinkLocal: true),
        ]
        let turns: [Journey.TurnPurpose] = [
            .firstAttempt, .sameAttempt,
            .retry(after: Failure(FailureReason.allCases[number % 19], "why")),
        ]
        var route = Route(
            from: RequestURL(normalized: "http://other/\(number)"), addressRule: rules[number % 5])
        if number % 6 != 0 {
            route.permanent = PermanentTarget(
                url: "http://there/\(number)", until: Timestamp(seconds: Int64(number)))
        }
        route.isPermanentSoFar = number % 7 == 0
        route.followsMemory = number % 8 == 0
        route.visited = (0..<(number % 11)).map { $0 * 7919 }
        // One at most: the order of several varies in the description.
        route.cookies = number % 3 == 0 ? [:] : [number: number &* 104_729]
        route.setsCookies = number % 2 == 0
        route.redirects = number % 4
        var journey = Journey(from: route.target)
        journey.route = route
        journey.turn = turns[number % 3]
        journey.usesMemory = number % 9 == 0
        journey.usesConditions = number % 13 == 0
        return journey
    }

    /// Entries without extras. Their URLs may be as long as a line.
    @Test func longURLsSpillBeforeTheCountLimit() throws {
        let store = EntryStore(capacity: 10_000, folder: Self.folder)
        let url = "http://h/" + String(repeating: "x", count: 60_000)
        func entry(_ number: Int) -> EntryMachine {
            EntryMachine(
                Entry(
                    manifest: "m", line: number, url: RequestURL(normalized: url), key: url,
                    priority: .normal, state: .missing, resource: nil, extras: nil, queuedAt: .now))
        }
        func fill(_ hasRoom: () -> Bool, from first: Int) -> Int {
            var number = first
            while hasRoom(), number < first + 10_000 {
                store.add(entry(number), as: number)
                number += 1
            }
            return number - first
        }
        let fresh = fill({ store.hasRoom(beside: 0, isReturning: false) }, from: 0)
        #expect((200...220).contains(fresh))
        // Returning entries still find some room, starting and sleeping ones some more.
        let returning = fill({ store.hasRoom(beside: 0, isReturning: true) }, from: 10_000)
        #expect((30...40).contains(returning))
        #expect((135...145).contains(fill({ store.hasRoomForStart }, from: 20_000)))
        #expect((30...40).contains(fill({ store.hasRoomForUnspilled }, from: 30_000)))
        for number in 30_000..<30_100 { store.end(number, reason: nil) }
        for number in 0..<fresh { store.end(number, reason: nil) }
        #expect(store.hasRoom(beside: 0, isReturning: false))
        // A redirect may lead to a longer URL.
        for number in 10_000..<(10_000 + returning) {
            var journey = Journey(from: RequestURL(normalized: url))
            journey.route.target = RequestURL(normalized: url + url + url + url)
            let rest = EntryMachine.Rest.queued(History(), journey)
            store.update(number) { $0 = EntryMachine($0.entry, rest: rest) }
            store.waits(number)
        }
        #expect(!store.hasRoom(beside: 0, isReturning: true))
        for number in 10_000..<(10_000 + returning) { store.end(number, reason: nil) }
        for number in 20_000..<20_200 { store.end(number, reason: nil) }
        #expect(store.isEmpty)
        #expect(fill({ store.hasRoom(beside: 0, isReturning: false) }, from: 0) == fresh)
    }

    @Test func longDuplicatesSpillBeforeTheCountLimit() throws {
        let store = EntryStore(capacity: 10_000, folder: Self.folder)
        store.add(Self.entry(0), as: 0)
        let url = "http://h/" + String(repeating: "x", count: 60_000)
        for line in 0..<1000 {
            try store.add(.init(manifest: "m", line: line, url: url), of: 0)
        }
        #expect((100...200).contains(store.laterLines.countInMemory))
        var count = 0
        try store.takeDuplicates(of: 0) { duplicate in
            #expect(duplicate.url == url)
            count += 1
        }
        #expect(count == 1000)
        #expect(store.laterLines.countInMemory == 0)
    }

    @Test func largeExtrasSpillBeforeTheCountLimit() {
        let store = EntryStore(capacity: 10_000, folder: Self.folder)
        let extras = EntryExtras(attributes: [
            EntryAttribute(storedName: "a", value: [UInt8](repeating: 1, count: 64 << 10))
        ])
        var count = 0
        while store.hasRoom(beside: count, isReturning: false), count < 10_000 {
            store.add(
                EntryMachine(
                    Entry(
                        manifest: "m", line: count, url: RequestURL(normalized: "u"), key: "u",
                        priority: .normal, state: .missing, resource: nil, extras: extras,
                        queuedAt: .now)),
                as: count)
            count += 1
        }
        #expect((180...200).contains(count))
    }
}

@Suite(.timeLimit(.minutes(15)))
struct SpillFileTests {
    private static let folder = FileManager.default.temporaryDirectory.path

    /// Duplicates of a slow entry are added and removed while the end of the file is still in
    /// memory.
    @Test func recordsFreedInTheBufferAreNotWritten() throws {
        let file = SpillFile(folder: Self.folder)
        let record = [UInt8](repeating: 7, count: 1000)
        var kept: [Int] = []
        for number in 0..<40_000 {
            let offset = try file.append(record)
            if number % 10_000 == 0 { kept.append(offset) } else { file.forget(1000, at: offset) }
        }
        // 40 MB passed through it; blocks of half a mebibyte hold the remaining four.
        #expect(try file.bytesOnDisk <= 5 << 19)
        for offset in kept { #expect(try file.read(1000, at: offset) == record) }
    }

    @Test func freedRecordsReleaseDiskSpace() throws {
        let file = SpillFile(folder: Self.folder)
        let record = [UInt8](repeating: 7, count: 1000)
        let offsets = try (0..<20_000).map { _ in try file.append(record) }
        #expect(try file.bytesOnDisk > 10 << 20)
        for offset in offsets.reversed() {
            #expect(try file.read(1000, at: offset) == record)
            file.forget(1000, at: offset)
        }
        #expect(try file.bytesOnDisk == 0)
    }
}

import CacheStorage
import Foundation
import PrefetchModel
import Scheduling
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(5)))
struct EntryStoreTests {
    private static let folder = FileManager.default.temporaryDirectory.path

    private static func store(capacity: Int = 10) -> EntryStore {
        EntryStore(capacity: capacity, folder: folder, keepsOrigins: true)
    }

    private static func entry(_ number: Int) -> PendingEntry {
        let plans: [PendingEntry.Plan] = [
            .fetch, .refresh(resource: Int64(number)), .derive(resource: .max),
            .annotate(resource: -1),
        ]
        let extras: [EntryExtras?] = [
            nil,
            EntryExtras(
                timeToLive: .milliseconds(number),
                headers: [
                    HeaderField(name: "X-A", value: "ä b"), HeaderField(name: "Accept", value: ""),
                ]),
            EntryExtras(attributes: [
                EntryAttribute(storedName: "näme", value: [0, 10, 255]),
                EntryAttribute(storedName: "", value: []),
            ]),
        ]
        let url = "http://h/\(number)?" + String(repeating: "x", count: number % 300)
        return PendingEntry(
            manifest: "m\(number % 3).txt", line: number, url: RequestURL(normalized: url),
            key: number % 5 == 0 ? "kéy \(number)" : url,
            priority: Priority(number % 201 - 100) ?? .normal, plan: plans[number % 4],
            extras: extras[number % 3], queuedAt: .now)
    }

    private static func isEqual(_ left: PendingEntry?, _ right: PendingEntry) -> Bool {
        guard let left else { return false }
        return "\(left.plan)" == "\(right.plan)" && left.manifest == right.manifest
            && left.line == right.line && left.url == right.url && left.key == right.key
            && left.priority == right.priority && left.extras == right.extras
            && abs((left.queuedAt - right.queuedAt) / .nanoseconds(1)) < 2
    }

    @Test func entriesComeBackAsTheyWere() throws {
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
        // In an order that jumps over the blocks of the file.
        for number in entries.indices.map({ $0 * 7919 % entries.count }) {
            let (identifier, next) = try store.load(places[number])
            #expect(identifier == number)
            #expect(next.place == (number == 0 ? nil : places[number - 1]))
            #expect(next.position == (number == 0 ? 0 : -number))
            #expect(Self.isEqual(store[number], entries[number]), "\(number)")
            _ = store.end(number, reason: nil)
        }
        #expect(store.isEmpty)
    }

    @Test func linksMayChangeWhereverTheirRecordLies() throws {
        let store = Self.store()
        var places: [SpillPlace] = []
        for number in 0..<60_000 {
            store.add(Self.entry(number), as: number)
            let link = try store.spill(number, position: 0, next: .end, behind: nil)
            places.append(try #require(link.place))
        }
        for number in stride(from: 0, to: 60_000, by: 97) {
            // Reads before the change, so that a block that is kept must change, too.
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

    @Test func theQueueAndItsFileKeepTheOrderOfManyHosts() throws {
        for order in StartOrder.allCases {
            let store = Self.store(capacity: 50)
            var scheduler = Scheduler(
                order: order, rules: HostPacing.Rules(concurrency: 1), storage: store)
            let now = ContinuousClock.now
            for number in 0..<30_000 {
                store.add(Self.entry(number), as: number)
                try scheduler.push(
                    number, priority: .normal, host: "http://\(number % 700)", at: now)
            }
            var started: [Int] = []
            while let start = try scheduler.popReady(at: now) {
                started.append(start.entry)
                #expect(store[start.entry]?.line == start.entry)
                _ = store.end(start.entry, reason: nil)
                scheduler.finished(start.host, .answered, at: now)
            }
            #expect(started == (order == .fifo ? Array(0..<30_000) : (0..<30_000).reversed()))
            #expect(store.isEmpty)
        }
    }

    @Test func duplicatesAreGivenOnceEach() throws {
        let store = Self.store(capacity: 100)
        for number in 0..<50 { store.add(Self.entry(number), as: number) }
        for line in 0..<5000 {
            try store.add(
                PendingEntry.Duplicate(
                    manifest: "d\(line % 2)", line: line, url: "http://h/\(line)"),
                of: line % 50)
        }
        for number in 0..<50 {
            #expect(!store.hasEnded(number))
            _ = store.end(number, reason: number % 2 == 0 ? .connect : nil)
            #expect(store.hasEnded(number))
            var lines: [Int] = []
            try store.takeDuplicates(of: number) { duplicate in
                #expect(duplicate.manifest == "d\(duplicate.line % 2)")
                #expect(duplicate.url == "http://h/\(duplicate.line)")
                lines.append(duplicate.line)
            }
            #expect(lines.sorted() == Array(stride(from: number, to: 5000, by: 50)))
            try store.takeDuplicates(of: number) { _ in Issue.record("given twice") }
            let fate = store.fate(of: number)
            #expect(fate.reason == (number % 2 == 0 ? .connect : nil))
            #expect(fate.line == number)
            #expect(fate.manifest == "m\(number % 3).txt")
        }
    }

    @Test func theFileHasNoNameAndAMissingFolderIsSaid() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "prefetch-spill-\(UUID().uuidString)"
        ).path
        let store = EntryStore(capacity: 1, folder: folder, keepsOrigins: false)
        let entry = Self.entry(1)
        store.add(entry, as: 1)
        #expect {
            _ = try store.spill(1, position: 0, next: .end, behind: nil)
        } throws: { error in
            (error as? SpillError)?.description.hasPrefix("\(folder): creating") == true
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

    @Test func largeExtrasLeaveMemoryBeforeTheNumberIsReached() {
        let store = EntryStore(capacity: 10_000, folder: Self.folder, keepsOrigins: false)
        let extras = EntryExtras(attributes: [
            EntryAttribute(storedName: "a", value: [UInt8](repeating: 1, count: 64 << 10))
        ])
        var count = 0
        while store.hasRoom(beside: count), count < 10_000 {
            store.add(
                PendingEntry(
                    manifest: "m", line: count, url: RequestURL(normalized: "u"), key: "u",
                    priority: .normal,
                    plan: .fetch, extras: extras, queuedAt: .now), as: count)
            count += 1
        }
        #expect((900...1100).contains(count))
    }
}

@Suite(.timeLimit(.minutes(5)))
struct SeenKeysTests {
    @Test func findsEveryKeyAndNoOther() {
        var random = SystemRandomNumberGenerator()
        var keys = SeenKeys(using: &random)
        let hasher = SHA256Hasher()
        #expect(keys.isEmpty)
        for number in 0..<200_000 {
            keys.append(KeyFingerprint("http://h/\(number)", hasher: hasher))
        }
        #expect(keys.count == 200_000)
        for number in 0..<200_000 {
            #expect(keys[KeyFingerprint("http://h/\(number)", hasher: hasher)] == number)
        }
        for number in 200_000..<300_000 {
            #expect(keys[KeyFingerprint("http://h/\(number)", hasher: hasher)] == nil)
        }
    }
}

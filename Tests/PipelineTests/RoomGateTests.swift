import CacheStorage
import PrefetchModel
import Testing

@testable import EntryLifecycle
@testable import Pipeline

struct RoomGateTests {
    private static let block = 4096

    private func admitted(_ gate: inout RoomGate, _ images: Range<Int>, isFull: Bool = false)
        -> [Int]
    {
        images.filter { gate.admits($0, isFull: isFull) }
    }

    private func gate(needed: Int, room: Int?, probes: Int = 1, newImages: Int) -> RoomGate {
        RoomGate(
            CacheFullness(FullCache(needed: ByteCount(needed), probes: probes), room: room),
            newImages: newImages)
    }

    private func next(
        _ gate: RoomGate, refused: (count: Int, least: ByteCount)? = nil, isComplete: Bool = true
    ) -> FullCache? {
        gate.next(isFull: refused != nil, refused: refused, isComplete: isComplete)
    }

    @Test func admitsAllUntilOneFindsNoRoom() {
        var gate = RoomGate()
        #expect(admitted(&gate, 0..<9).count == 9 && !gate.isKnown)
        #expect(admitted(&gate, 9..<20, isFull: true).isEmpty)
        #expect(next(gate) == nil)
        #expect(
            next(gate, refused: (5, ByteCount(40))) == FullCache(needed: ByteCount(40), probes: 5))
    }

    /// One probe a run, of each image in turn.
    @Test(arguments: [1, 2, 7, 12])
    func probesOneImagePerRun(images: Int) {
        var memory: FullCache? = FullCache(needed: ByteCount(40), probes: 5)
        var probes: [Int] = []
        for run in 0..<2 * images {
            var gate = RoomGate(
                memory.map { CacheFullness($0, room: run % 2 == 0 ? 39 : -5) }, newImages: images)
            #expect(gate.isKnown)
            let admitted = admitted(&gate, 0..<images)
            #expect(admitted.count == 1)
            probes += admitted
            // The next hop of the probe.
            let isAdmitted = gate.admits(admitted[0], isFull: false)
            #expect(isAdmitted)
            memory = next(gate, refused: (1, ByteCount(50)))
            #expect(memory?.needed == ByteCount(40))
        }
        #expect(Set(probes) == Set(0..<images))
    }

    @Test func eachStoredImageAdmitsTwo() {
        var gate = gate(needed: 40, room: 39, newImages: 12)
        #expect(admitted(&gate, 0..<4) == [1])
        gate.noteStored(7)
        #expect(admitted(&gate, 4..<5).isEmpty)
        gate.noteStored(1)
        #expect(admitted(&gate, 5..<9) == [5, 6])
        gate.noteStored(5)
        gate.noteStored(6)
        #expect(admitted(&gate, 9..<12) == [9, 10, 11])
        // Others were passed over, so the memory stays, with the smallest size that had no room.
        #expect(next(gate)?.needed == ByteCount(40))
        #expect(
            next(gate, refused: (2, ByteCount(9))) == FullCache(needed: ByteCount(9), probes: 2))
    }

    /// The number follows from the smallest refused image; if these find no room either, they need
    /// more.
    @Test func admitsAsManyAsHaveRoom() {
        var some = gate(needed: 40, room: 125, newImages: 12)
        #expect(admitted(&some, 0..<12) == [0, 1, 2])
        #expect(
            next(some, refused: (3, ByteCount(90))) == FullCache(needed: ByteCount(90), probes: 1))
        var evicting = gate(needed: 40, room: nil, newImages: 12)
        #expect(admitted(&evicting, 0..<12).count == 12 && next(evicting) == nil)
    }

    /// A run without new images, one that was stopped, and a probe that fails before it needs room.
    @Test func undecidedRunsKeepTheMemory() {
        let memory = FullCache(needed: ByteCount(40), probes: 1)
        #expect(next(gate(needed: 40, room: 999, newImages: 0)) == memory)
        var stopped = gate(needed: 40, room: 999, newImages: 3)
        #expect(admitted(&stopped, 0..<3).count == 3)
        #expect(next(stopped, isComplete: false) == memory && next(stopped) == nil)
        var failing = gate(needed: 40, room: 0, newImages: 3)
        #expect(admitted(&failing, 0..<3) == [1])
        #expect(next(failing) == FullCache(needed: ByteCount(40), probes: 2))
    }

    // MARK: Many runs

    /// A cache over many runs of one list, with sizes in blocks.
    private struct ModelCache {
        let sizes: [Int]
        let parallel: Int
        let isReversed: Bool
        var limit: Int
        var stored: Set<Int> = []
        /// Blacklisted until the limit is larger.
        private var tooLarge: Set<Int> = []
        private(set) var memory: FullCache?

        init(_ sizes: [Int], parallel: Int, isReversed: Bool) {
            self.sizes = sizes
            self.parallel = parallel
            self.isReversed = isReversed
            limit = sizes.reduce(0, +) / 3
        }

        var room: Int { limit - stored.reduce(0) { $0 + sizes[$1] } }

        struct ModelRun {
            var requests = 0
            var stored = 0
            /// Whether it says that the cache is full, as something new.
            var isNews = false
        }

        mutating func run(isKilled: Bool = false) -> ModelRun {
            var new = sizes.indices.filter { image in
                !stored.contains(image)
                    && (!tooLarge.contains(image) || sizes[image] <= limit)
            }
            if isReversed { new.reverse() }
            var gate = RoomGate(
                memory.map { CacheFullness($0, room: room * RoomGateTests.block) },
                newImages: new.count)
            var run = ModelRun()
            var (refused, transfers, lacks) = ([Int](), [Int](), false)
            func isFull() -> Bool {
                let typical = stored.isEmpty ? 1 : max(1, (limit - room) / stored.count)
                return refused.count > 1 || refused.count == 1 && room < typical
            }
            func end() {
                let image = transfers.removeFirst()
                lacks = lacks || sizes[image] > room
                if sizes[image] > limit {
                    tooLarge.insert(image)
                } else if sizes[image] > room {
                    refused.append(sizes[image])
                } else {
                    stored.insert(image)
                    gate.noteStored(image)
                    run.stored += 1
                }
            }
            for image in new {
                if transfers.count == parallel { end() }
                guard gate.admits(image, isFull: isFull()) else {
                    lacks = true
                    continue
                }
                run.requests += 1
                transfers.append(image)
            }
            while !transfers.isEmpty { end() }
            run.isNews = lacks && memory == nil
            guard !isKilled else { return run }
            memory = gate.next(
                isFull: isFull(),
                refused: refused.min().map { (refused.count, ByteCount($0 * RoomGateTests.block)) },
                isComplete: true)
            return run
        }
    }

    private enum CacheChange: CaseIterable {
        case none, filesDeleted, allDeleted, pruned, lowered, loweredAndDeleted, belowOneImage
        case raised, raisedForAll, killed

        func apply(to cache: inout ModelCache) {
            func remove(_ count: Int) { cache.stored.subtract(cache.stored.sorted().prefix(count)) }
            switch self {
            case .none: break
            case .filesDeleted: remove(3)
            case .allDeleted: cache.stored = []
            case .pruned: remove(cache.stored.count - 1)
            case .lowered: cache.limit /= 2
            case .loweredAndDeleted:
                cache.limit /= 2
                remove(5)
            case .belowOneImage: cache.limit = 0
            case .raised: cache.limit += cache.limit / 3
            case .raisedForAll: cache.limit = 1 << 20
            case .killed: _ = cache.run(isKilled: true)
            }
        }
    }

    private static let lists: [[Int]] = [
        Array(repeating: 8, count: 20), (0..<20).map { 1 + $0 * 7 % 30 },
        (0..<20).map { $0 % 3 == 0 ? 40 : 1 }, (0..<20).map { $0 < 10 ? 2 : 30 },
        (0..<20).map { $0 < 10 ? 30 : 2 }, (0..<60).map { 1 + $0 * 31 % 49 },
    ]

    /// Any change of the cache or its limit is told once, wastes few requests, and ends with one
    /// probe a run, or with all images that have room.
    @Test(arguments: lists, [1, 6])
    func fullCachesSettle(sizes: [Int], parallel: Int) {
        for (change, isReversed) in CacheChange.allCases.flatMap({ [($0, false), ($0, true)] }) {
            var cache = ModelCache(sizes, parallel: parallel, isReversed: isReversed)
            let first = cache.run()
            #expect(first.isNews && cache.memory != nil)
            var runs = (0..<3).map { _ in cache.run() }
            change.apply(to: &cache)
            runs += (0..<3 * sizes.count).map { _ in cache.run() }
            let name = "\(change) \(isReversed)"
            let news = runs.filter(\.isNews)
            #expect(news.isEmpty, "\(name)")
            #expect(runs.allSatisfy { $0.requests - $0.stored <= parallel + 2 }, "\(name)")
            #expect(runs.suffix(sizes.count).allSatisfy { $0.requests <= 1 }, "\(name)")
            let left = sizes.indices.filter { !cache.stored.contains($0) }
            #expect(left.allSatisfy { sizes[$0] > cache.room }, "\(name)")
            #expect(change != .raisedForAll || runs[3].stored > 0 && cache.memory == nil)
        }
    }

    @Test func refreshesNeedNoRoom() {
        func entry(_ state: EntryState, resource: Int64? = nil) -> Entry {
            Entry(
                manifest: "m", line: 1, url: RequestURL(normalized: "http://h/1"), key: "k",
                priority: .normal, state: state, resource: resource, extras: nil, queuedAt: .now)
        }
        let new: [EntryState] = [
            .missing, .seeded(expiresAt: .distantFuture), .stale(.incomplete(position: 0)),
            .extended,
        ]
        #expect(new.allSatisfy { entry($0).addsImages })
        let others: [EntryState] = [
            .stale(.expired(at: .distantPast)), .stale(.otherSource), .stale(.original), .missing,
            .seeded(expiresAt: .distantFuture), .derivable(expiresAt: .distantFuture),
        ]
        #expect(others.allSatisfy { !entry($0, resource: 1).addsImages })
    }
}

import CacheStorage
import PrefetchModel
import Testing

@testable import EntryLifecycle
@testable import Pipeline

struct RoomGateTests {
    private func admitted(_ gate: inout RoomGate, _ images: Range<Int>, isFull: Bool = false)
        -> [Int]
    {
        images.filter { gate.admits($0, isFull: isFull) }
    }

    @Test func admitsAllUntilOneFindsNoRoom() {
        var gate = RoomGate()
        #expect(admitted(&gate, 0..<9).count == 9 && !gate.isKnown)
        #expect(admitted(&gate, 9..<20, isFull: true).isEmpty)
        #expect(gate.next(isFull: false, refused: nil) == nil)
        #expect(
            gate.next(isFull: true, refused: (5, ByteCount(40)))
                == FullCache(needed: ByteCount(40), probes: 5))
    }

    /// One probe a run, of each image in turn.
    @Test(arguments: [1, 2, 7, 12])
    func probesOneImagePerRun(images: Int) {
        var memory: FullCache? = FullCache(needed: ByteCount(40), probes: 5)
        var probes: [Int] = []
        for run in 0..<2 * images {
            var gate = RoomGate(memory, newImages: images)
            #expect(gate.isKnown)
            let admitted = admitted(&gate, 0..<images)
            #expect(admitted.count == 1)
            probes += admitted
            // The next hop of the probe.
            let isAdmitted = gate.admits(admitted[0], isFull: false)
            #expect(isAdmitted)
            let least = ByteCount(run == 3 ? 30 : 50)
            memory = gate.next(isFull: true, refused: (1, least))
            #expect(memory?.needed == ByteCount(run < 3 ? 40 : 30))
        }
        #expect(Set(probes) == Set(0..<images))
    }

    @Test func aStoredProbeAdmitsTheOthers() {
        var gate = RoomGate(FullCache(needed: ByteCount(40), probes: 1), newImages: 8)
        #expect(admitted(&gate, 0..<4) == [1])
        gate.noteStored(7)
        #expect(admitted(&gate, 4..<5).isEmpty)
        gate.noteStored(1)
        #expect(admitted(&gate, 5..<8) == [5, 6, 7])
        #expect(gate.next(isFull: false, refused: nil) == nil)
        #expect(
            gate.next(isFull: true, refused: (2, ByteCount(9)))
                == FullCache(needed: ByteCount(9), probes: 2))
    }

    /// A run without new images, and a probe that fails before it needs room.
    @Test func undecidedProbesKeepTheMemory() {
        let memory = FullCache(needed: ByteCount(40), probes: 1)
        var gate = RoomGate(memory)
        #expect(gate.next(isFull: false, refused: nil) == memory)
        gate = RoomGate(memory, newImages: 3)
        #expect(admitted(&gate, 0..<3) == [1])
        #expect(
            gate.next(isFull: false, refused: nil)
                == FullCache(needed: ByteCount(40), probes: 2))
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

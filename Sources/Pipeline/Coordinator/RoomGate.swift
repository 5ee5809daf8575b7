import CacheStorage
import EntryLifecycle
import PrefetchModel

/// Decides whether new images are requested although the cache may have no room for them.
///
/// Once an image has found no room, and nothing can be evicted, none is requested: in this run, and
/// in the next ones but for one probe each. A probe that is stored ends that. Each run probes the
/// image after the last one's, so that an unusually large one does not keep out all others.
struct RoomGate {
    /// Left by an earlier run; nil if there was room.
    private var memory: FullCache?
    private var toPassOver = 0
    private var probe: Int?
    private var isOpen = false

    init(_ memory: FullCache? = nil, newImages: Int = 0) {
        self.memory = memory
        if let memory, newImages > 0 { toPassOver = memory.probes % newImages }
    }

    /// Whether the last run told the user that the cache is full.
    var isKnown: Bool { memory != nil }

    /// Whether a new image, of an entry that has its turn, is requested. `isFull`: whether an image
    /// found no room in this run.
    mutating func admits(_ identifier: Int, isFull: Bool) -> Bool {
        if isFull { return false }
        guard memory != nil, !isOpen, probe != identifier else { return true }
        if probe == nil, toPassOver == 0 {
            probe = identifier
            return true
        }
        toPassOver -= 1
        return false
    }

    mutating func noteStored(_ identifier: Int) {
        if probe == identifier { isOpen = true }
    }

    /// Returns the memory for the next run. `refused` are the images that found no room in this
    /// run.
    func next(isFull: Bool, refused: (count: Int, least: ByteCount)?) -> FullCache? {
        if var memory, !isOpen {
            memory.needed = min(memory.needed, refused?.least ?? memory.needed)
            if probe != nil { memory.probes += 1 }
            return memory
        }
        guard isFull, let refused else { return nil }
        return FullCache(needed: refused.least, probes: refused.count)
    }
}

extension Entry {
    /// Whether its request is for an image, or a variant, that is not stored.
    var addsImages: Bool {
        switch state {
        case .missing, .seeded: resource == nil
        case .stale(.incomplete), .extended: true
        case .invalid, .fresh, .unannotated, .stale, .derivable, .blacklisted: false
        }
    }
}

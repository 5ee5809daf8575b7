import CacheStorage
import EntryLifecycle
import PrefetchModel

/// Decides whether new images are requested although the cache may have no room for them.
///
/// Once an image has found no room, and nothing can be evicted, none is requested in this run. The
/// next ones remember it until one of them has stored every new image. Each first requests as many
/// as have room by the size of the smallest refused one, else one probe; each that is stored admits
/// two more. A run probes the image after the last one's, so that an unusually large one does not
/// keep out all others.
struct RoomGate {
    /// Left by an earlier run; nil if there was room.
    private var memory: FullCache?
    private let isProbing: Bool
    private var toPassOver = 0
    /// The number of further new images that may be requested; nil for all.
    private var left: Int?
    private var admitted = ResourceSet()
    private var hasNewImages = false
    private var withholds = false

    init(_ fullness: CacheFullness? = nil, newImages: Int = 0) {
        memory = fullness?.memory
        isProbing = fullness?.fitting == 0
        left = fullness.flatMap { $0.fitting.map { max(1, $0) } }
        hasNewImages = newImages > 0
        if let memory, isProbing, newImages > 0 { toPassOver = memory.probes % newImages }
    }

    /// Whether the last run told the user that the cache is full.
    var isKnown: Bool { memory != nil }

    /// Whether a new image, of an entry that has its turn, is requested. `isFull`: whether an image
    /// found no room in this run.
    mutating func admits(_ identifier: Int, isFull: Bool) -> Bool {
        if !isFull {
            guard let left, !admitted.contains(Int64(identifier)) else { return true }
            if left > 0, toPassOver == 0 {
                self.left = left - 1
                admitted.insert(Int64(identifier))
                return true
            }
            toPassOver = max(0, toPassOver - 1)
        }
        withholds = true
        return false
    }

    mutating func noteStored(_ identifier: Int) {
        if let left, admitted.contains(Int64(identifier)) { self.left = left + 2 }
    }

    /// Returns the memory for the next run. `refused` are the images that found no room in this
    /// run. `isComplete`: whether all images had their turns.
    func next(
        isFull: Bool, refused: (count: Int, least: ByteCount)?, isComplete: Bool
    ) -> FullCache? {
        guard var next = memory else {
            return isFull ? refused.map { FullCache(needed: $0.least, probes: $0.count) } : nil
        }
        if isComplete, hasNewImages, !withholds, refused == nil { return nil }
        if let least = refused?.least {
            // With room for the smallest one, all that were refused need more.
            next.needed = isProbing ? min(next.needed, least) : least
        }
        if isProbing, !admitted.isEmpty { next.probes += 1 }
        return next
    }
}

extension Entry {
    /// Whether its request is for an image, or a variant, that is not stored.
    var addsImages: Bool { state.addsImages(to: resource) }
}

extension EntryState {
    /// Whether its request is for an image, or a variant, that is not stored; `resource` is that of
    /// the key.
    func addsImages(to resource: Int64?) -> Bool {
        switch self {
        case .missing, .seeded: resource == nil
        case .stale(.incomplete), .extended: true
        case .invalid, .fresh, .unannotated, .stale, .derivable, .blacklisted: false
        }
    }
}

/// The hosts of a ``Scheduler`` that can act, each in one heap at most.
struct HostHeaps: Sendable {
    /// The heap of a host, and its key there.
    enum Place {
        /// It has no waiting entry, or no room for another transfer.
        case none
        /// It may start its first entry, which has this rank.
        case ready(HostStore.Rank)
        case pausing(until: Scheduler.Instant)
        /// It is given up, and its first entry has this rank.
        case givenUp(HostStore.Rank)
        /// ``Scheduler/removeNext()`` removes its entries; the first one has this rank.
        case emptied(HostStore.Rank)
    }

    private(set) var ready = IndexedHeap<HostStore.Rank>()
    private(set) var pausing = IndexedHeap<Scheduler.Instant>()
    private(set) var givenUp = IndexedHeap<HostStore.Rank>()
    private(set) var emptied = IndexedHeap<HostStore.Rank>()
    /// Whether all entries are being removed, so that no host starts one.
    private(set) var isEmptying = false

    mutating func move(_ host: Int, to place: Place) {
        var (ready, givenUp, emptied): (HostStore.Rank?, HostStore.Rank?, HostStore.Rank?)
        var pausing: Scheduler.Instant?
        switch place {
        case .none: break
        case .ready(let rank): ready = rank
        case .pausing(let until): pausing = until
        case .givenUp(let rank): givenUp = rank
        case .emptied(let rank): emptied = rank
        }
        self.ready.set(host, to: ready)
        self.pausing.set(host, to: pausing)
        self.givenUp.set(host, to: givenUp)
        self.emptied.set(host, to: emptied)
    }
}

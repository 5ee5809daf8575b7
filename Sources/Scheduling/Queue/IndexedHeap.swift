/// A binary heap of hosts, each with one mutable key; the smallest key is first.
///
/// Keys are stored in the heap itself, so that a comparison touches no host. Every change costs
/// O(log count).
struct IndexedHeap<Key: Comparable & Sendable>: Sendable {
    private struct Element {
        var key: Key
        let host: Int32
    }

    private var elements: [Element] = []
    /// The index of each host in `elements`, -1 for hosts that are not in the heap.
    private var places: [Int32] = []

    var isEmpty: Bool { elements.isEmpty }
    var first: (key: Key, host: Int)? {
        elements.first.map { ($0.key, Int($0.host)) }
    }

    func contains(_ host: Int) -> Bool { host < places.count && places[host] >= 0 }

    /// Sets a host's key; nil removes the host.
    mutating func set(_ host: Int, to key: Key?) {
        guard let key else { return remove(host) }
        while places.count <= host { places.append(-1) }
        let place = Int(places[host])
        guard place >= 0 else {
            elements.append(Element(key: key, host: Int32(host)))
            places[host] = Int32(elements.count - 1)
            siftUp(elements.count - 1)
            return
        }
        let old = elements[place].key
        guard key != old else { return }
        elements[place].key = key
        if key < old { siftUp(place) } else { siftDown(place) }
    }

    private mutating func remove(_ host: Int) {
        guard contains(host) else { return }
        let place = Int(places[host])
        places[host] = -1
        let last = elements.removeLast()
        guard place < elements.count else { return }
        let old = elements[place].key
        elements[place] = last
        places[Int(last.host)] = Int32(place)
        if last.key < old { siftUp(place) } else { siftDown(place) }
    }

    private mutating func siftUp(_ start: Int) {
        var place = start
        let element = elements[place]
        while place > 0 {
            let parent = (place - 1) / 2
            guard element.key < elements[parent].key else { break }
            put(elements[parent], at: place)
            place = parent
        }
        put(element, at: place)
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        let element = elements[place]
        while true {
            var child = 2 * place + 1
            guard child < elements.count else { break }
            if child + 1 < elements.count, elements[child + 1].key < elements[child].key {
                child += 1
            }
            guard elements[child].key < element.key else { break }
            put(elements[child], at: place)
            place = child
        }
        put(element, at: place)
    }

    private mutating func put(_ element: Element, at place: Int) {
        elements[place] = element
        places[Int(element.host)] = Int32(place)
    }
}

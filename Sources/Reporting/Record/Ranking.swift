/// The largest elements of a sequence, in bounded memory.
package struct Ranking<Element: Sendable>: Sendable {
    package static var limit: Int { 10 }

    /// Largest first.
    package private(set) var elements: [(value: Int64, element: Element)] = []

    /// Adds an element if it is among the largest. Of equal ones the first is kept.
    mutating func add(_ value: Int64, _ element: @autoclosure () -> Element) {
        if elements.count == Ranking.limit {
            guard let last = elements.last, value > last.value else { return }
            elements.removeLast()
        }
        let place = elements.firstIndex { $0.value < value } ?? elements.count
        elements.insert((value, element()), at: place)
    }
}

/// The order in which entries of one priority start, by their position in the manifests.
package enum StartOrder: String, CaseIterable, Sendable {
    /// First in, first out: the first line starts first.
    case fifo
    /// Last in, first out: the newest line starts first.
    case lifo
}

import Pipeline

/// An event of a list of ``ManifestSequence``.
enum ListEvent: Sendable {
    /// A list was opened by its URL.
    case opened(_ name: String, OpenedList)
    /// The format of a list, told with its first entries.
    case format(_ name: String, String)
    /// An unusual form of lines and its remedy, told at the end of the list.
    case note(_ text: String, _ remedy: String)
    /// The end of a list without an entry.
    case empty(EmptyList)
    /// The number of entries of other shards, told at the end of the list.
    case otherShards(Int)

    /// Tells how old the copies of lists are, for commands that send nothing.
    static let tellOfCopies: @Sendable (ListEvent) -> Void = { event in
        guard case .opened(let name, let list) = event else { return }
        StandardError.write("prefetch: \(name): \(list.text)")
    }
}

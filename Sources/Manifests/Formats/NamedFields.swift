import PrefetchModel

/// A format with columns that may have the names of fields.
protocol ColumnFormat: LineFormat {
    var named: NamedFields { get set }
    /// Whether a column so far is a field's by its name, or one of several that may be the URL's.
    var hasDoubt: Bool { get }
}

/// The fields of a list that its columns have by their names, everyday words like `quality`.
///
/// A value that is not the field's makes the column another one, from its row on. So a format's
/// ``ManifestReader`` tries the beginning of the list first, and rows before are rarely affected.
struct NamedFields {
    /// The columns with a field's name that are other ones.
    private(set) var others: Set<String> = []
    private(set) var notes: [(text: String, remedy: String)] = []
    /// Whether these rows are tried, and no entries.
    var isTrial = false
    /// The rank of the URL's column among several with common names: the first with a URL in the
    /// rows tried, or else in the first row with one. Nil before.
    private(set) var urlRank: Int?
    var seeksURL: Bool { isTrial || urlRank == nil }

    /// Beyond this, a wrong value makes a bad entry: JSON objects may have other names each.
    private static let mostOthers = 64

    /// Takes the ranks of a row's URLs. Call while ``seeksURL``.
    mutating func note(urlRanks ranks: some Sequence<Int>) {
        guard let first = ranks.min() else { return }
        urlRank = min(urlRank ?? first, first)
    }

    /// Reads the fields of a row.
    ///
    /// `add` adds the value of a column; `column` returns its name, and whether the user has
    /// assigned it.
    ///
    /// - Returns: also the columns, by their places, that are other ones from this row on.
    /// - Throws: ``LineProblem`` of an assigned column, or of valid values that contradict each
    ///   other or the run.
    mutating func read(
        _ places: [Int], of line: Int, in variants: VariantSet?,
        column: (Int) -> (name: String, isAssigned: Bool),
        add: (Int, inout EntryFields) throws -> Void
    ) throws -> (fields: EntryFields, others: [Int]) {
        var rest = places
        var others: [Int] = []
        while true {
            let attempt = try NamedFields.attempt(rest, in: variants, add)
            guard let problem = attempt.problem else { return (attempt.fields, others) }
            let wrong =
                try attempt.wrong
                ?? rest.indices.first { index in
                    let one = rest[index]
                    let without = rest.filter { $0 != one }
                    return try !column(one).isAssigned
                        && NamedFields.attempt(without, in: variants, add).problem == nil
                }
            guard let wrong, !column(rest[wrong]).isAssigned,
                self.others.count < NamedFields.mostOthers
            else { throw problem }
            note(column(rest[wrong]).name, problem, line: line)
            others.append(rest.remove(at: wrong))
        }
    }

    /// Reads fields; `wrong` is the index of the column with the problem, nil if that is one of
    /// several together.
    private static func attempt(
        _ places: [Int], in variants: VariantSet?, _ add: (Int, inout EntryFields) throws -> Void
    ) throws -> (fields: EntryFields, problem: LineProblem?, wrong: Int?) {
        var fields = EntryFields()
        for (index, place) in places.enumerated() {
            do {
                try add(place, &fields)
            } catch let problem as LineProblem {
                return (fields, problem, index)
            }
        }
        do {
            var checked = fields
            try checked.check(in: variants)
            return (fields, nil, nil)
        } catch let problem as LineProblem {
            return (fields, problem, nil)
        }
    }

    private mutating func note(_ name: String, _ problem: LineProblem, line: Int) {
        others.insert(name)
        let shown = LineExcerpt.text(of: name)
        let since = isTrial ? "" : " from line \(line) on, and a field before"
        notes.append(
            (
                "the column '\(shown)' is an ordinary one\(since): line \(line): "
                    + problem.failure.message,
                "--column \(shown)= says so, --column \(shown)=NAME takes the field from a column"
            ))
    }
}

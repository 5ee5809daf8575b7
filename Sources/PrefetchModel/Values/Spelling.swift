/// `1 file`, `2 files`
package func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
}

extension [String] {
    /// Joined for a sentence: `same, jpeg or png`.
    package func listed(with conjunction: String) -> String {
        guard let last, count > 1 else { return first ?? "" }
        return dropLast().joined(separator: ", ") + " \(conjunction) " + last
    }
}

extension String {
    /// Whether the string is a likely misspelling of `name`: equal, or one letter added, removed or
    /// replaced, or two adjacent letters swapped.
    package func isNearly(_ name: String) -> Bool {
        let (word, name) = (Array(self), Array(name))
        let same = zip(word, name).prefix { $0 == $1 }.count
        let (rest, wanted) = (word[same...], name[same...])
        return rest.dropFirst() == wanted.dropFirst() || rest.dropFirst() == wanted
            || rest == wanted.dropFirst()
            || rest.count >= 2 && wanted.count >= 2 && rest.dropFirst(2) == wanted.dropFirst(2)
                && rest.prefix(2).elementsEqual(wanted.prefix(2).reversed())
    }
}

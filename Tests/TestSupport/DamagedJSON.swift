/// Copies of a JSON text with one damaged number or array each.
///
/// Texts of the sample must not look like numbers of members: `:1,`.
public struct DamagedJSON: CustomStringConvertible, Sendable {
    /// The member's name, and its value in its place.
    public let description: String
    public let text: String
    /// The text with null in place of the damage.
    public let absent: String

    /// A negative, a huge and a quoted value for each number, and an element of another kind before
    /// those of each array. No reader looks at the `unread` members.
    public static func copies(of text: String, unread: Set<String> = []) -> [DamagedJSON] {
        var copies: [DamagedJSON] = []
        func damage(_ range: Range<String.Index>, _ values: [String], _ absent: String) {
            let name = text[..<range.lowerBound].split(separator: "\"").dropLast().last ?? ""
            guard !unread.contains(String(name)) else { return }
            for value in values {
                copies.append(
                    DamagedJSON(
                        description: "\(name): \(value)",
                        text: text.replacingCharacters(in: range, with: value),
                        absent: text.replacingCharacters(in: range, with: absent)))
            }
        }
        for match in text.matches(of: /[:\[,](\d+(?:\.\d+)?)(?=[,\]}])/) {
            damage(match.1.startIndex..<match.1.endIndex, ["-5", "\(1 << 62)", "\"5\""], "null")
        }
        for match in text.matches(of: /\[(\]?)/) {
            let end = match.0.index(after: match.0.startIndex)
            let comma = match.1.isEmpty ? "," : ""
            damage(end..<end, ["null", "\"x\"", "-1"].map { $0 + comma }, "")
        }
        return copies
    }
}

extension String {
    fileprivate func replacingCharacters(in range: Range<Index>, with text: String) -> String {
        self[..<range.lowerBound] + text + self[range.upperBound...]
    }
}

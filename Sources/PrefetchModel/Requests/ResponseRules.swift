/// The responses with images as bodies, and the statuses that blacklist.
package struct ResponseRules: Sendable {
    /// Statuses with an image in addition to ``Response/wholeStatuses``.
    package var acceptedStatuses: StatusSet = .none
    /// The accepted values of `Content-Type`; nil for any.
    package var acceptedTypes: MediaTypes?
    /// The statuses that blacklist after one failure, while all others count as temporary; nil for
    /// the default rules.
    package var blacklistedStatuses: StatusSet?

    package init() {}

    /// Whether a response of this status may have an image as its body.
    package func accepts(status: Int) -> Bool {
        Response.wholeStatuses.contains(status)
            || acceptedStatuses.contains(status) && !ResponseRules.withoutImage.contains(status)
    }

    /// Statuses that concern the proxy, the pace or a form. Ranges of accepted ones may span them.
    package static let withoutImage: Set = [205, 407, 429, 503]

    /// The failure for a value of `Content-Type` that is not accepted, nil for an absent field.
    package func refusal(ofType type: String?) -> Failure? {
        guard let acceptedTypes, !acceptedTypes.contain(type) else { return nil }
        let found = type.map { "Content-Type '\($0.prefix(100))'" } ?? "no Content-Type"
        return Failure(.notAnImage, "\(found); --accept-type is \(acceptedTypes)")
    }
}

package enum BodyUse: Sendable {
    case stored
    case dropped
    /// Not requested: the method is HEAD.
    case none
}

/// A set of HTTP statuses: `404,500-503`, `4xx`.
package struct StatusSet: Hashable, Sendable, CustomStringConvertible {
    private let ranges: [ClosedRange<Int>]

    package static let none = StatusSet(ranges: [])

    private init(ranges: [ClosedRange<Int>]) {
        self.ranges = ranges
    }

    /// Parses `none`, or statuses, ranges and classes within 100…599, separated by commas. Returns
    /// nil for other text.
    package init?(_ text: some StringProtocol) {
        guard text != "none" else {
            self = .none
            return
        }
        var ranges: [ClosedRange<Int>] = []
        for item in text.split(separator: ",", omittingEmptySubsequences: false) {
            if let hundred = item.utf8.first, item.utf8.dropFirst().elementsEqual("xx".utf8),
                (UInt8(ascii: "1")...UInt8(ascii: "5")).contains(hundred)
            {
                let first = Int(hundred - UInt8(ascii: "0")) * 100
                ranges.append(first...first + 99)
                continue
            }
            let ends = item.split(separator: "-", omittingEmptySubsequences: false).map { end in
                end.utf8.count == 3 && end.utf8.allSatisfy(\.isDecimalDigit)
                    ? Int(end) : nil
            }
            guard ends.count <= 2, let first = ends[0], let last = ends[ends.count - 1],
                (100...599).contains(first), (first...599).contains(last)
            else { return nil }
            ranges.append(first...last)
        }
        self.init(ranges: ranges)
    }

    package func names(_ status: Int) -> Bool { ranges.contains(status...status) }

    package func contains(_ status: Int) -> Bool { ranges.contains { $0.contains(status) } }

    package var description: String {
        guard !ranges.isEmpty else { return "none" }
        return ranges.map { range in
            range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
        }.joined(separator: ",")
    }
}

/// Media types: `image/png,image/*`.
package struct MediaTypes: Hashable, Sendable, CustomStringConvertible {
    private let types: [String]

    /// Nil for a text that is not types, or `TYPE/*`, separated by commas.
    package init?(_ text: some StringProtocol) {
        types = text.lowercased().split(separator: ",", omittingEmptySubsequences: false).map {
            String($0.filter { $0 != " " })
        }
        let areValid = types.allSatisfy { type in
            let parts = type.split(separator: "/", omittingEmptySubsequences: false)
            return parts.count == 2
                && parts.allSatisfy { part in
                    !part.isEmpty
                        && part.utf8.allSatisfy {
                            $0.isLetter || $0.isDecimalDigit
                                || "!#$&-^_.+*".utf8.contains($0)
                        }
                }
        }
        guard areValid else { return nil }
    }

    /// Whether a value of `Content-Type`, with any parameters, is one of the types. An absent one
    /// is only of `*/*`.
    package func contain(_ value: String?) -> Bool {
        guard let value else { return types.contains("*/*") }
        let type = value.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        return types.contains { wanted in
            wanted == "*/*"
                || (wanted.hasSuffix("/*") ? type.hasPrefix(wanted.dropLast()) : wanted == type)
        }
    }

    package var description: String { types.joined(separator: ",") }
}

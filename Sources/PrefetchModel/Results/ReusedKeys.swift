/// Keys that stand for images of several URLs, for one warning.
package struct ReusedKeys: Hashable, Sendable {
    package private(set) var count = 0
    /// The first of them; unescaped.
    package private(set) var first = ""

    package static let hint =
        "one key is for one image; a list by another host needs other keys, or none"

    package init() {}

    package mutating func note(_ description: @autoclosure () -> String) {
        if count == 0 { first = description() }
        count += 1
    }

    /// `its key 'a' has the image of https://example.com/a.jpg`
    package static func text(_ key: String, has url: String) -> String {
        "its key '\(key)' has the image of \(RedactedURL(url))"
    }
}

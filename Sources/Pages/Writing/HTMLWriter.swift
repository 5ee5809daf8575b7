import Hashing
import PrefetchModel
import Reporting

/// Writes an HTML document that is also well-formed XML.
///
/// Texts and the values of attributes are escaped here, and names are literals of the source. So no
/// text of a list, a server or a report becomes markup. ``printable(_:)`` shows control characters
/// and bidirectional overrides.
struct HTMLWriter {
    private(set) var bytes: [UInt8] = []

    /// An attribute. Its name is a literal.
    struct Attribute {
        let name: StaticString
        let value: String

        init(_ name: StaticString, _ value: String) {
            self.name = name
            self.value = value
        }

        init(_ name: StaticString, _ value: Int) { self.init(name, "\(value)") }

        static func cssClass(_ names: String) -> Attribute { Attribute("class", names) }
    }

    /// Writes an element with its content.
    mutating func element(
        _ name: StaticString, _ attributes: [Attribute] = [],
        _ content: (inout HTMLWriter) -> Void
    ) {
        open(name, attributes)
        append(">")
        content(&self)
        append("</")
        append(name)
        append(">")
    }

    /// Writes an element that contains a text.
    mutating func element(_ name: StaticString, _ attributes: [Attribute], _ text: String) {
        element(name, attributes) { $0.text(text) }
    }

    mutating func element(_ name: StaticString, _ text: String) { element(name, [], text) }

    /// Writes an element without content.
    mutating func empty(_ name: StaticString, _ attributes: [Attribute] = []) {
        open(name, attributes)
        append("/>")
    }

    mutating func text(_ text: String) { bytes += xmlText(text).utf8 }

    /// Begins a new line of the source, for people who read it.
    mutating func lineEnd() { append("\n") }

    private mutating func open(_ name: StaticString, _ attributes: [Attribute]) {
        append("<")
        append(name)
        for attribute in attributes {
            append(" ")
            append(attribute.name)
            append("=\"")
            text(attribute.value)
            append("\"")
        }
    }

    private mutating func append(_ text: StaticString) {
        bytes += UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    // MARK: Documents

    /// Makes a whole document.
    ///
    /// Its content security policy allows its own style element and the given sources of images.
    ///
    /// - Parameters:
    ///   - title: The title.
    ///   - generator: The mark by which a later command recognises its own pages.
    ///   - imageSources: The directive `img-src`.
    ///   - body: Writes the content of `body`.
    /// - Returns: The document in UTF-8.
    static func document(
        title: String, generator: String, imageSources: StaticString,
        _ body: (inout HTMLWriter) -> Void
    ) -> [UInt8] {
        var writer = HTMLWriter()
        writer.append("<!DOCTYPE html>\n")
        writer.element(
            "html", [Attribute("xmlns", "http://www.w3.org/1999/xhtml"), Attribute("lang", "en")]
        ) { html in
            html.lineEnd()
            html.element("head") { head in
                head.empty("meta", [Attribute("charset", "utf-8")])
                head.empty(
                    "meta",
                    [
                        Attribute("http-equiv", "Content-Security-Policy"),
                        Attribute("content", policy(imageSources: "\(imageSources)")),
                    ])
                head.empty(
                    "meta",
                    [
                        Attribute("name", "viewport"),
                        Attribute("content", "width=device-width, initial-scale=1"),
                    ])
                head.empty(
                    "meta", [Attribute("name", "color-scheme"), Attribute("content", "light dark")])
                head.empty(
                    "meta", [Attribute("name", "referrer"), Attribute("content", "no-referrer")])
                head.empty(
                    "meta", [Attribute("name", "generator"), Attribute("content", generator)])
                head.element("title", title)
                head.lineEnd()
                head.element("style") { $0.append(StyleSheet.text) }
            }
            html.lineEnd()
            html.element("body", [], body)
        }
        writer.lineEnd()
        return writer.bytes
    }

    /// The policy (CSP Level 3). The digest is of the style element's content.
    private static func policy(imageSources: String) -> String {
        let style = UnsafeRawBufferPointer(
            start: StyleSheet.text.utf8Start, count: StyleSheet.text.utf8CodeUnitCount)
        let digest = SHA256Hasher().digest(of: style)
        let base64 = digest.bytes.base64
        return "default-src 'none'; style-src 'sha256-\(String(decoding: base64, as: UTF8.self))'; "
            + "img-src \(imageSources); base-uri 'none'; form-action 'none'"
    }
}

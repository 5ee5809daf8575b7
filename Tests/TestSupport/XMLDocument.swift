import Foundation
import FoundationXML

/// A well-formed XML document as libxml2 reads it.
package struct XMLDocument {
    /// In the order of their start tags.
    private let elements: [(name: String, attributes: [String: String])]
    /// The text of all elements.
    package let text: String

    /// The document is not well-formed.
    package struct Damaged: Error, CustomStringConvertible {
        package let description: String
    }

    /// - Throws: ``Damaged``, or the error of reading the file.
    package init(_ path: String) throws {
        let parser = XMLParser(data: try Data(contentsOf: URL(filePath: path)))
        let reader = Reader()
        parser.delegate = reader
        guard parser.parse() else {
            throw Damaged(description: "\(path): \(String(describing: parser.parserError))")
        }
        elements = reader.elements
        text = reader.text
    }

    /// The attributes of each element of this name.
    package func all(_ name: String) -> [[String: String]] {
        elements.filter { $0.name == name }.map(\.attributes)
    }

    private final class Reader: NSObject, XMLParserDelegate {
        var elements: [(name: String, attributes: [String: String])] = []
        var text = ""

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
            qualifiedName: String?, attributes: [String: String]
        ) {
            elements.append((name, attributes))
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
    }
}

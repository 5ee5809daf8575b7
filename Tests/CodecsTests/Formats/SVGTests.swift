import CXML
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

@Suite(.timeLimit(.minutes(15)))
struct SVGTests {
    private static let name = "http://www.w3.org/2000/svg"
    private static let drawing =
        #"<svg xmlns="\#(name)" width="5cm"><g><path d="M0 0L1 1"/></g></svg>"#
    private static let publicType =
        #"<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">"#

    private func outcome(_ text: String, memoryBytes: Int = .max) -> Result<ImageHeader, CodecError>
    {
        storedAsItCame(Array(text.utf8), memoryBytes: memoryBytes)
    }

    @Test(arguments: [
        drawing, " \n\t" + drawing, "\u{FEFF}" + drawing, "<?xml version='1.0'?>\n" + drawing,
        "<!-- drawn by hand -->" + drawing,
        "<!--" + String(repeating: "-x", count: 20_000) + "-->" + drawing,
        publicType + drawing,
        "<?xml version='1.0' standalone='no'?>" + publicType + drawing + "\n\n",
        "<svg/>", #"<s:svg xmlns:s="\#(name)"/>"#, "<?xml-stylesheet href='a.css'?>" + drawing,
        // As written by drawing programs.
        #"<!DOCTYPE svg [<!ENTITY ns "\#(name)">]><svg xmlns="&ns;"><text>&ns;</text></svg>"#,
        "<?xml version='1.0' encoding='ISO-8859-1'?>" + drawing,
        "<?xml version='1.0' encoding='windows-1252'?><svg>\u{7F}</svg>",
        // In text, undeclared entities may be declared elsewhere.
        publicType + "<svg>&unknown;</svg>",
        #"<svg xmlns="\#(name)"><foreignObject><body xmlns="http://www.w3.org/1999/xhtml"/></foreignObject></svg>"#,
    ])
    func isTaken(text: String) throws {
        let header = try outcome(text).get()
        #expect(header.format == .svg)
        #expect(header.pixels == 0)
    }

    @Test(arguments: [String.Encoding.utf16BigEndian, .utf16LittleEndian], [true, false])
    func acceptsUTF16(encoding: String.Encoding, hasMark: Bool) throws {
        let text =
            (hasMark ? "\u{FEFF}" : "") + "<?xml version='1.0' encoding='UTF-16'?>"
            + SVGTests.drawing
        let bytes = [UInt8](try #require(text.data(using: encoding)))
        #expect(try storedAsItCame(bytes).get().format == .svg)
        // An odd final byte is half a character.
        guard case .failure(.corrupt) = storedAsItCame(bytes + [0]) else {
            Issue.record("half a letter was taken")
            return
        }
    }

    @Test(arguments: [
        "<!DOCTYPE html><html><body>" + drawing + "</body></html>", "<html>" + drawing + "</html>",
        "<!doctype html>" + drawing,
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"x\">" + drawing,
        "<p>" + drawing + "</p>", "svg", "<", "<!-- svg -->", "<?xml version='1.0'?>",
        "text " + drawing,
        #"<svg xmlns="http://example.com/other"/>"#, "<svgx/>", "<rss/>", "<SVG/>",
        "<html><!--" + drawing + "--></html>", "{\"a\":\"<svg/>\"}", "\u{1F8B}" + drawing,
        "\n<?xml version='1.0'?><html>" + drawing + "</html>", "<!DOCTYPE html><svg a></svg>",
        "<html><svg></p></html>", "<x:rss><svg/></x:rss>", "<svgx a></svgx>",
    ])
    func isNoImage(text: String) {
        guard case .failure(.notAnImage) = outcome(text) else {
            Issue.record("\(outcome(text))")
            return
        }
    }

    /// A file that is not well-formed, with its end.
    private static let malformed = [
        // An XML declaration must be at the start.
        "\n<?xml version='1.0'?>" + drawing, "<svg a='1' a='2'></svg>", "<svg a></svg>",
        "<svg x:a='1'><g/></svg>", "<s:svg><g/></s:svg>\n",
        "<?xml version='1.0'?><!-- a -- b --><svg></svg>",
        "<!DOCTYPE svg [<!ENTITY a>]><svg></svg>", "<svg xlink:href='#a'>\n</svg  >\n",
        drawing + "<html/>", drawing + "text", "<svg><g></svg>", "<svg><g a='1' a='2'/></svg>",
        "<svg>&nowhere;</svg>",
        "<svg><p>a < b</p></svg>", "<svg><x:path/></svg>", "<svg>\u{0}</svg>", "<svg>]]></svg>",
        "<svg><br></svg>", "<svg><script>if (a && b) {}</script></svg>",
        "<!DOCTYPE svg [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><svg><g x='&a;'/></svg>",
    ]

    private func fault(_ text: String) throws -> String? {
        try Array(text.utf8).withUnsafeBytes { bytes in
            let entry = try ImageProcessor.process(
                bytes, header: header(of: bytes, others: .store), recipes: [Recipe()])
            return entry.warning.map { $0.lacksEnd ? "cut" : $0.text }
        }
    }

    @Test(arguments: malformed)
    func isStoredWithAWarning(text: String) throws {
        #expect(try outcome(text).get().format == .svg)
        #expect(try fault(text)?.hasPrefix("not well-formed XML: line ") == true)
        #expect(refusal(Array(text.utf8)) == .unsupported("svg is not decoded"))
        for encoding in [String.Encoding.utf16BigEndian, .utf16LittleEndian] {
            let bytes = [UInt8](try #require(("\u{FEFF}" + text).data(using: encoding)))
            #expect(try storedAsItCame(bytes).get().format == .svg)
        }
    }

    @Test(arguments: malformed)
    func isDamagedWithoutItsEnd(text: String) throws {
        guard let end = text.range(of: "</", options: .backwards) else { return }
        // Text or elements behind the drawing are the fault there.
        guard !text.hasPrefix(SVGTests.drawing) else { return }
        for cut in [String(text[..<end.lowerBound]), text[..<end.lowerBound] + "<g/>"] {
            guard case .failure(.corrupt(_, isTruncated: true)) = outcome(cut) else {
                Issue.record("\(cut): \(outcome(cut))")
                continue
            }
        }
    }

    @Test func rejectsTruncation() {
        let text =
            "<?xml version='1.0'?>" + SVGTests.publicType
            + "<!--a--><svg a='b'><![CDATA[c]]><g>&lt;é</g></svg>"
        let bytes = Array(text.utf8)
        for count in 0..<bytes.count {
            switch storedAsItCame(Array(bytes.prefix(count))) {
            case .failure(.notAnImage), .failure(.corrupt(_, isTruncated: true)): break
            case let other: Issue.record("\(count) bytes: \(other)")
            }
        }
    }

    // MARK: Hostile

    private func expectLimit(_ text: String, memoryBytes: Int = .max) {
        guard case .failure(.limitExceeded) = outcome(text, memoryBytes: memoryBytes) else {
            Issue.record("\(outcome(text, memoryBytes: memoryBytes))")
            return
        }
    }

    @Test func refusesNestedEntitiesAtDeclaration() {
        let laughs = (1...9).map {
            "<!ENTITY l\($0) '\(String(repeating: "&l\($0 - 1);", count: 10))'>"
        }
        let type = "<!DOCTYPE svg [<!ENTITY l0 'lol'>\(laughs.joined())]>"
        expectNothing(type + "<svg>&l9;</svg>")
        expectNothing(type + "<svg a='&l9;'/>")
        // An entity that is escaped twice still expands to a reference.
        expectNothing("<!DOCTYPE svg [<!ENTITY a 'b'><!ENTITY b '&#38;a;&#38;a;'>]><svg x='&b;'/>")
    }

    /// Rejected before its first element, so the format is unknown.
    private func expectNothing(_ text: String) {
        guard case .failure(.notAnImage) = outcome(text) else {
            Issue.record("\(outcome(text))")
            return
        }
    }

    /// One long entity, repeated: 40 GB if expanded.
    @Test func limitsExpansion() {
        let type = "<!DOCTYPE svg [<!ENTITY a '\(String(repeating: "x", count: 40_000))'>]>"
        let references = String(repeating: "&a;", count: 1_000)
        expectLimit(
            type + "<svg>" + String(repeating: "<g b='\(references)'/>", count: 1000) + "</svg>")
        // In text, references are skipped.
        let text = type + "<svg>" + String(repeating: references, count: 1000) + "</svg>"
        #expect(throws: Never.self) { try outcome(text).get() }
    }

    @Test func limitsDepth() {
        func nested(_ depth: Int) -> String {
            "<svg>" + String(repeating: "<g>", count: depth - 1)
                + String(repeating: "</g>", count: depth - 1) + "</svg>"
        }
        #expect(throws: Never.self) { try outcome(nested(Int(CXML_MAXIMUM_DEPTH))).get() }
        expectLimit(nested(Int(CXML_MAXIMUM_DEPTH) + 1))
        expectLimit(nested(1_000_000))
    }

    /// Embedded photographs are attributes of megabytes.
    @Test func respectsMemoryLimit() {
        let photograph =
            "<svg><image href='data:image/png;base64,"
            + String(repeating: "A", count: 4_000_000) + "'/></svg>"
        #expect(throws: Never.self) { try outcome(photograph).get() }
        expectLimit(photograph, memoryBytes: 2 << 20)
        #expect(
            outcome(photograph, memoryBytes: 2 << 20)
                == .failure(.limitExceeded("XML: line 1: takes too much memory for its size")))
        let names = (0..<60_000).map { "<a\($0)/>" }.joined()
        expectLimit("<svg>\(names)</svg>", memoryBytes: 2 << 20)
        let attributes = (0..<60_000).map { " a\($0)=''" }.joined()
        expectLimit("<svg><g\(attributes)/></svg>", memoryBytes: 2 << 20)
    }

    @Test func respectsTimeLimit() {
        var limits = CodecLimits()
        limits.maximumTime = .zero
        let text = "<svg>" + String(repeating: "<g/>", count: 100_000) + "</svg>"
        guard case .failure(.limitExceeded) = storedAsItCame(Array(text.utf8), limits: limits)
        else {
            Issue.record("\(storedAsItCame(Array(text.utf8), limits: limits))")
            return
        }
    }

    @Test(arguments: [
        ("<svg>\n<g></svg>", "line 2: an end tag for another element"),
        ("<svg><g a='1' a='2'/></svg>", "line 1: an attribute is given twice"),
        ("<svg/>\n<svg/>", "line 2: more follows the root element"),
        ("<svg><a:g/></svg>", "line 1: a namespace prefix is not declared"),
        ("<svg>&#0;</svg>", "line 1: a reference to an invalid character"),
        ("<svg>&g;</svg>", "line 1: an entity is not declared"),
        ("<svg>\n\n\u{1}</svg>", "line 3: a character where none is allowed"),
        ("<svg><![CDATA[x", "line 1: ends within a CDATA section"),
        ("<svg><g a='", "line 1: ends within a tag or comment"),
        ("<svg><g>", "line 1: ends before its element does"),
        ("<svg> <?xml version='1.0'?></svg>", "line 1: the XML declaration is not at the start"),
    ])
    func namesTheFault(text: String, message: String) throws {
        if case .failure(.corrupt(let found, _)) = outcome(text) {
            #expect(found.hasSuffix("XML: \(message)"))
        } else {
            #expect(try fault(text) == "not well-formed XML: \(message)")
        }
    }

    /// A body of only comments and declarations is not yet rejected.
    @Test func judgesBodyAtFirstElement() {
        let rules = HeaderRules(others: .store, memory: .mebibytes(64))
        let comment = "<!--" + String(repeating: "x", count: 2000) + "-->"
        func verdict(_ text: String) -> HeaderVerdict {
            Array(text.utf8).withUnsafeBytes { HeaderVerdict(onBeginning: $0, under: rules) }
        }
        #expect(verdict(String(comment.prefix(300))) == .undecided)
        #expect(verdict(comment) == .undecided)
        #expect(verdict(comment + "<svg>") == .passed)
        #expect(verdict(comment + "<html>") == .refused(.notAnImage("unrecognised file signature")))
        let endless = "<!--" + String(repeating: "x", count: SVGContainer.prologBytes)
        #expect(verdict(endless) == .refused(.notAnImage("unrecognised file signature")))
    }
}

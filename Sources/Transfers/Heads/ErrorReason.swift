import CJSON
import CXML
import PrefetchModel

/// The reason that a service, a bucket or a CDN gives for an error, in its fields and its body.
struct ErrorReason {
    /// The beginning of the body.
    private var bytes: [UInt8] = []

    private static let most = 16 << 10
    /// Unicode scalars that are shown.
    private static let shownScalars = 120

    mutating func append(_ piece: UnsafeRawBufferPointer) {
        bytes += piece.prefix(ErrorReason.most - bytes.count)
    }

    /// The reason; nil without one, or for one that only repeats the status. `secrets` of the
    /// request are masked where a server repeats them.
    func text(status: Int, fields: [HeaderField], hiding secrets: [String]) -> String? {
        guard status >= 400 else { return nil }
        let challenges = [fields.first("cf-mitigated"), fields.first("x-amzn-waf-action")]
        if challenges.contains(where: { $0 == "challenge" || $0 == "captcha" }) {
            return "a challenge for browsers"
        }
        let parts = parts(type: fields.first("content-type")?.lowercased() ?? "", status)
            .filter { !ErrorReason.repeats(status, $0) }
            .compactMap { ErrorReason.shown($0, hiding: secrets) }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// The texts of the body that say why; mostly a sentence and a code.
    private func parts(type: String, _ status: Int) -> [String] {
        let start = bytes.drop { $0 <= 0x20 || $0 >= 0x80 }
        let text = String(decoding: bytes, as: UTF8.self)
        let isMarkup = start.first == UInt8(ascii: "<")
        if isMarkup, type.contains("xml") || start.starts(with: "<?xml".utf8) {
            let reasons = xmlReasons
            // The others may be pages: XHTML.
            if !reasons.isEmpty { return reasons }
        }
        // A dead URL needs no explanation.
        guard status != 404, status != 410 else { return [] }
        if type.contains("json") || start.first == UInt8(ascii: "{") {
            return JSONReason.parts(of: Array(start))
        }
        if type.contains("html") || isMarkup {
            return [ErrorReason.title(in: text)].compactMap(\.self)
        }
        guard type.hasPrefix("text/plain") else { return [] }
        return [String(text.prefix { !$0.isNewline })]
    }

    /// The title of a page.
    private static func title(in page: String) -> String? {
        // In ASCII, so that the places are equal.
        let text = Array(page.utf8)
        let lower = text.map(\.lowercased)
        guard let start = lower.firstRange(of: "<title".utf8),
            let open = lower[start.upperBound...].firstIndex(of: UInt8(ascii: ">")),
            let end = lower[open...].firstRange(of: "</title".utf8)
        else { return nil }
        var title = String(decoding: text[(open + 1)..<end.lowerBound], as: UTF8.self)
        for (name, character) in [
            ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "),
            ("&amp;", "&"),
        ] {
            title = title.replacing(name, with: character)
        }
        return title
    }

    /// The elements `Message` and `Code` of S3, Azure and CloudFront.
    private var xmlReasons: [String] {
        let found = FoundElements()
        bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            _ = withExtendedLifetime(found) {
                celements_read(
                    start.assumingMemoryBound(to: CChar.self), bytes.count, noteReason,
                    Unmanaged.passUnretained(found).toOpaque())
            }
        }
        return [found.message, found.code].compactMap { $0 }
    }

    /// The words of statuses' names (RFC 9110 §15), and those around them.
    private static let wordsOfStatuses: Set<Substring> = [
        "a", "an", "bad", "code", "error", "forbidden", "found", "gateway", "gone", "http",
        "internal", "is", "many", "not", "page", "request", "requests", "response", "server",
        "service", "status", "temporarily", "the", "time", "timeout", "too", "unauthorized",
        "unavailable", "was",
    ]

    private static func repeats(_ status: Int, _ text: String) -> Bool {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }
            .allSatisfy { $0 == "\(status)" || wordsOfStatuses.contains($0) }
    }

    /// A text on one line; nil for an empty one, and for one that may hold a secret of the URL.
    private static func shown(_ text: String, hiding secrets: [String]) -> String? {
        var text = text
        for secret in secrets where text.contains(secret) {
            // The mask of a short one would tell it.
            guard secret.count >= 4 else { return nil }
            text = text.replacing(secret, with: "***")
        }
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        let scalars = words.unicodeScalars.filter {
            ![.control, .format, .privateUse].contains($0.properties.generalCategory)
        }
        var shown = String(String.UnicodeScalarView(scalars.prefix(shownScalars)))
        while shown.hasSuffix(".") { shown.removeLast() }
        return shown.isEmpty || shown.contains("://") ? nil : redacted(shown)
    }
}

private final class FoundElements {
    var (code, message): (String?, String?)
}

private func noteReason(
    _ parent: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ text: UnsafePointer<CChar>,
    _ count: Int, _ context: UnsafeMutableRawPointer
) {
    let found = Unmanaged<FoundElements>.fromOpaque(context).takeUnretainedValue()
    let text = String(decoding: UnsafeRawBufferPointer(start: text, count: count), as: UTF8.self)
    switch String(cString: name) {
    case "Code" where found.code == nil: found.code = text
    case "Message" where found.message == nil: found.message = text
    default: break
    }
}

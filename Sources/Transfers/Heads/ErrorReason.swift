import CXML
import PrefetchModel

/// The reason that a service, a bucket or a CDN gives for an error, in its fields and its body.
struct ErrorReason {
    /// The beginning of the body.
    private var bytes: [UInt8] = []

    private static let most = 4 << 10
    /// Unicode scalars that are shown.
    private static let shownScalars = 120

    mutating func append(_ piece: UnsafeRawBufferPointer) {
        bytes += piece.prefix(ErrorReason.most - bytes.count)
    }

    /// The reason; nil without one, or for one that only repeats the status.
    func text(status: Int, fields: [HeaderField]) -> String? {
        guard status >= 400 else { return nil }
        let challenges = [fields.first("cf-mitigated"), fields.first("x-amzn-waf-action")]
        if challenges.contains(where: { $0 == "challenge" || $0 == "captcha" }) {
            return "a challenge for browsers"
        }
        let type = fields.first("content-type")?.lowercased() ?? ""
        if type.contains("xml") || bytes.prefix(64).starts(with: "<?xml".utf8) {
            return xmlReason
        }
        // A dead URL needs no explanation.
        guard status != 404, status != 410 else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        if type.hasPrefix("text/html") {
            guard let start = text.firstRange(of: "<title>"),
                let end = text[start.upperBound...].firstRange(of: "</title>")
            else { return nil }
            let title = text[start.upperBound..<end.lowerBound]
            return title.contains("\(status)") ? nil : ErrorReason.shown(title)
        }
        guard type.hasPrefix("text/plain") else { return nil }
        return ErrorReason.shown(text.prefix { !$0.isNewline })
    }

    /// The elements `Message` and `Code` of S3, Azure and CloudFront.
    private var xmlReason: String? {
        let found = FoundElements()
        bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            _ = withExtendedLifetime(found) {
                celements_read(
                    start.assumingMemoryBound(to: CChar.self), bytes.count, noteReason,
                    Unmanaged.passUnretained(found).toOpaque())
            }
        }
        let parts = [found.message, found.code].compactMap { $0 }
            .compactMap { ErrorReason.shown($0[...]) }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// A text on one line; nil for an empty one, and for one that may hold a secret of the URL.
    private static func shown(_ text: Substring) -> String? {
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        let scalars = words.unicodeScalars.filter {
            ![.control, .format, .privateUse].contains($0.properties.generalCategory)
        }
        var shown = String(String.UnicodeScalarView(scalars.prefix(shownScalars)))
        while shown.hasSuffix(".") { shown.removeLast() }
        return shown.isEmpty || shown.contains("://") ? nil : shown
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

import PrefetchModel
import Testing

@testable import Exporting

extension StoredImage {
    /// A stored image with a digest of one repeated byte.
    static func fixture(_ byte: UInt8 = 1, format: ImageFormat = .jpeg) -> StoredImage {
        let digits = String(byte, radix: 16)
        let text = String(repeating: digits.count < 2 ? "0" + digits : digits, count: 32)
        guard let digest = ContentDigest(hexadecimal: text) else {
            preconditionFailure("64 digits")
        }
        return StoredImage(
            digest: digest, format: format, widthInPixels: 640,
            heightInPixels: 480,
            size: ByteCount(100))
    }
}

extension ExportedImage {
    /// An image of a list; the normalised URL is the given one without its fragment.
    static func fixture(
        _ url: String, number: Int = 1, key: String? = nil, variant: String = "main",
        stored: StoredImage = .fixture(), fetchedAt: Timestamp = Timestamp(seconds: 1_000),
        expiresAt: Timestamp = Timestamp(seconds: 2_000), attributes: [EntryAttribute] = [],
        columns: String? = nil
    ) -> ExportedImage {
        let normalized = String(url.prefix { $0 != "#" })
        return ExportedImage(
            number: number, url: url, normalizedURL: normalized, key: key ?? normalized,
            variant: variant, stored: stored, fetchedAt: fetchedAt, expiresAt: expiresAt,
            attributes: attributes, columns: columns.map { Array($0.utf8) })
    }
}

extension ExportRules {
    static func fixture(
        _ layout: ExportLayout, _ change: (inout ExportRules) throws -> Void = { _ in }
    ) rethrows -> ExportRules {
        var rules = ExportRules(layout: layout)
        try change(&rules)
        return rules
    }
}

extension ExportPlan {
    /// The path of an image alone; nil if it has none.
    static func path(of image: ExportedImage, _ rules: ExportRules) -> String? {
        try? ExportPlan(rules, at: Timestamp(seconds: 0)).path(of: image)
    }

    /// Adds an image that collides with no other.
    mutating func add(_ image: ExportedImage) throws {
        let other = add(image, as: try path(of: image))
        #expect(other == nil)
    }
}

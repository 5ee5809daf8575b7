internal import Hashing
import PrefetchModel

/// A file of an export, before it is written.
struct PlannedFile: Sendable {
    enum Content: Sendable {
        case stored(StoredImage)
        case bytes([UInt8])
        case archive([ArchiveMember])
    }

    enum ModificationTime: Hashable, Sendable {
        case fixed(Timestamp)
        /// The time of the export, renewed after a day: its reader removes old files.
        case present
    }

    let path: String
    let content: Content
    let modified: ModificationTime
    let identity: ContentIdentity
    /// Whether only its owner may read it, unless the user chooses a mode.
    private(set) var isPrivate = false

    init(
        path: String, content: Content, modified: ModificationTime, identity: ContentIdentity? = nil
    ) {
        self.path = path
        self.content = content
        self.modified = modified
        self.identity = identity ?? content.identity
    }

    /// The file, private if it has a URL with a signature or another secret: its reader needs the
    /// URL whole.
    func hiding(_ urls: some Sequence<String>) -> PlannedFile {
        var file = self
        file.isPrivate = urls.contains { RedactedURL.maskingSecrets(in: $0) != $0 }
        return file
    }
}

/// Equal for files of equal content: the first 16 bytes of a SHA-256.
struct ContentIdentity: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// The identity of no file.
    static let unfinished = ContentIdentity(high: 0, low: 0)

    private init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    init(_ digest: ContentDigest) { (high, low) = digest.leadingWords }

    init(of bytes: [UInt8]) {
        let hasher = SHA256Hasher()
        self.init(bytes.withUnsafeBytes { hasher.digest(of: $0) })
    }

    /// Parses ``text``; nil for another text.
    init?(_ text: some StringProtocol) {
        guard text.utf8.count == 32, let high = UInt64(text.prefix(16), radix: 16),
            let low = UInt64(text.suffix(16), radix: 16)
        else { return nil }
        (self.high, self.low) = (high, low)
    }

    /// 32 hexadecimal digits.
    var text: String {
        var bytes: [UInt8] = []
        appendText(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    func appendText(to bytes: inout [UInt8]) {
        for word in [high, low] {
            for shift in stride(from: 60, through: 0, by: -4) {
                let digit = UInt8(truncatingIfNeeded: word >> UInt64(shift)) & 15
                bytes.append(UInt8(hexadecimalDigitOf: digit))
            }
        }
    }
}

struct ArchiveMember: Sendable {
    let name: String
    /// No archive.
    let content: PlannedFile.Content
}

extension PlannedFile.Content {
    var identity: ContentIdentity {
        switch self {
        case .stored(let image): ContentIdentity(image.digest)
        case .bytes(let bytes): ContentIdentity(of: bytes)
        case .archive(let members):
            ContentIdentity(
                of: members.flatMap { Array("\($0.name)\n\($0.content.identity.text)\n".utf8) })
        }
    }
}

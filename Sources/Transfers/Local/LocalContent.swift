import Glibc
import PrefetchModel

/// The bytes behind a URL of the scheme `data` or `file`.
///
/// Both are fresh for a year: a `data:` URL never changes (RFC 2397), and each run compares the
/// file's tag with the stored tag.
struct LocalContent: ~Copyable {
    private enum Source: ~Copyable {
        case bytes([UInt8])
        case file(LocalFile)
    }

    private let source: Source
    let count: Int
    /// The fields of a response with it.
    let fields: [HeaderField]

    /// Opens the content of a URL; files only below `folder`.
    init(of url: RequestURL, below folder: String?) throws(Failure) {
        if url.isFile {
            let file = try LocalFile(at: url, below: folder, reads: true)
            count = file.size
            fields = [
                HeaderField(name: "Content-Length", value: "\(file.size)"),
                HeaderField(name: "ETag", value: "\"\(file.tag)\""),
                HeaderField(name: "Cache-Control", value: "max-age=31536000"),
            ]
            source = .file(file)
            return
        }
        let (bytes, type) = try LocalContent.decoded(url.text)
        count = bytes.count
        fields = [
            HeaderField(name: "Content-Type", value: type),
            HeaderField(name: "Content-Length", value: "\(bytes.count)"),
            HeaderField(name: "Cache-Control", value: "max-age=31536000, immutable"),
        ]
        source = .bytes(bytes)
    }

    /// Gives the bytes in pieces until `take` returns false.
    func read(_ take: (UnsafeRawBufferPointer) -> Bool) throws(Failure) {
        switch source {
        case .bytes(let bytes): _ = bytes.withUnsafeBytes(take)
        case .file(let file):
            var buffer = [UInt8](repeating: 0, count: 256 << 10)
            var done = 0
            while done < count {
                let number = buffer.withUnsafeMutableBytes {
                    pread(file.descriptor, $0.baseAddress, min($0.count, count - done), done)
                }
                if number < 0, errno == EINTR { continue }
                guard number >= 0 else {
                    throw Failure(.interrupted, String(cString: strerror(errno)))
                }
                guard number > 0 else { throw ServiceExchange.shortFile.interrupted }
                let goesOn = buffer.withUnsafeBytes {
                    take(UnsafeRawBufferPointer(rebasing: $0[..<number]))
                }
                guard goesOn else { return }
                done += number
            }
        }
    }

    // MARK: Data

    private static func decoded(
        _ url: String
    ) throws(Failure) -> (bytes: [UInt8], type: String) {
        let parts = url.dropFirst(5).split(
            separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw Failure(.invalidEntry, "a data: URL needs a comma") }
        let attributes = parts[0].split(separator: ";", omittingEmptySubsequences: false)
        let type = attributes.first.flatMap { $0.isEmpty ? nil : String($0) } ?? "text/plain"
        let text = parts[1].percentDecoded
        guard attributes.dropFirst().contains(where: { $0.lowercased() == "base64" }) else {
            return (text, type)
        }
        guard let bytes = text.withUnsafeBytes({ [UInt8](base64: $0) }) else {
            throw Failure(.invalidEntry, "the data: URL is not base64")
        }
        return (bytes, type)
    }
}

extension Failure {
    /// The failure of a source that ends early, which may be whole at another attempt.
    fileprivate var interrupted: Failure { Failure(.interrupted, message) }
}

internal import CLinux
import Glibc
import PrefetchModel

/// The bytes behind a URL of the scheme `data` or `file`.
///
/// A file has the tag of its time and size, by which a run finds it unchanged. A `data:` URL never
/// changes (RFC 2397).
struct LocalContent: ~Copyable {
    private enum Source {
        case bytes([UInt8])
        case file(Int32)
    }

    private let source: Source
    let count: Int
    /// The fields of a response with it.
    let fields: [HeaderField]

    deinit {
        if case .file(let file) = source { close(file) }
    }

    /// Opens the content of a URL; files only below `folder`.
    init(of url: RequestURL, below folder: String?) throws(Failure) {
        if url.text.hasPrefix("data:") {
            let (bytes, type) = try LocalContent.decoded(url.text)
            source = .bytes(bytes)
            count = bytes.count
            fields = [
                HeaderField(name: "Content-Type", value: type),
                HeaderField(name: "Content-Length", value: "\(bytes.count)"),
                HeaderField(name: "Cache-Control", value: "max-age=31536000, immutable"),
            ]
            return
        }
        let file = try LocalContent.open(url, below: folder)
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(file)
            throw Failure(.invalidEntry, "not a regular file")
        }
        source = .file(file)
        count = Int(status.st_size)
        let modified = status.st_mtim
        fields = [
            HeaderField(name: "Content-Length", value: "\(status.st_size)"),
            HeaderField(
                name: "ETag",
                value: "\"\(modified.tv_sec).\(modified.tv_nsec)-\(status.st_size)\""),
            HeaderField(name: "Cache-Control", value: "max-age=0"),
        ]
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
                    pread(file, $0.baseAddress, min($0.count, count - done), done)
                }
                if number < 0, errno == EINTR { continue }
                guard number >= 0 else {
                    throw Failure(.interrupted, LocalContent.text(of: errno))
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
        let text = parts[1].percentDecodedBytes
        guard attributes.dropFirst().contains(where: { $0.lowercased() == "base64" }) else {
            return (text, type)
        }
        guard let bytes = text.withUnsafeBytes({ [UInt8](base64: $0) }) else {
            throw Failure(.invalidEntry, "the data: URL is not base64")
        }
        return (bytes, type)
    }

    // MARK: Files

    /// Opens a file below a folder. Links are followed inside it.
    private static func open(
        _ url: RequestURL, below folder: String?
    ) throws(Failure) -> Int32 {
        guard let folder else {
            throw Failure(.refusedAddress, "files are read only below --files-below DIR")
        }
        let path = String(
            decoding: url.text.dropFirst("file://".utf8.count).percentDecodedBytes, as: UTF8.self)
        guard !path.utf8.contains(0) else { throw Failure(.invalidEntry, "no path") }
        guard let real = realpath(path, nil), let root = realpath(folder, nil) else {
            throw Failure(.invalidEntry, text(of: errno))
        }
        defer {
            free(real)
            free(root)
        }
        let (place, top) = (String(cString: real), String(cString: root))
        let prefix = top == "/" ? top : top + "/"
        guard place.utf8.starts(with: prefix.utf8) else {
            throw Failure(.refusedAddress, "not below --files-below (\(folder))")
        }
        // Nothing below the folder can be exchanged for a link that leaves it.
        let directory = Glibc.open(top, clinux_o_path | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw Failure(.invalidEntry, text(of: errno)) }
        defer { close(directory) }
        let rest = String(decoding: place.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        var file = clinux_open_beneath(directory, rest, flags)
        if file < 0, errno == ENOSYS || errno == EPERM {
            // An old kernel, or a container without the call.
            file = openat(directory, rest, flags | O_NOFOLLOW)
        }
        guard file >= 0 else { throw Failure(.invalidEntry, text(of: errno)) }
        return file
    }

    private static func text(of code: Int32) -> String {
        code == ENOENT ? "no such file" : String(cString: strerror(code))
    }
}

extension Failure {
    /// The failure of a source that ends early, which may be whole at another attempt.
    fileprivate var interrupted: Failure { Failure(.interrupted, message) }
}

extension StringProtocol {
    /// The bytes with `%XX` decoded; other signs of per cent stay.
    fileprivate var percentDecodedBytes: [UInt8] {
        let bytes = Array(utf8)
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let digits = String(decoding: bytes[(index + 1)...].prefix(2), as: UTF8.self)
            if bytes[index] == UInt8(ascii: "%"), digits.utf8.count == 2,
                digits.allSatisfy(\.isHexDigit), let byte = UInt8(digits, radix: 16)
            {
                decoded.append(byte)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded
    }
}

internal import CInterruption
internal import CLoader
internal import Glibc
package import PrefetchModel

/// A library that decodes a format in a worker only, or with `--sandbox off`.
struct SandboxedLibrary: Sendable {
    let name: String
    let format: ImageFormat
    /// Debian's package.
    let package: String
    /// The calls of the boundary.
    let calls: ccodec_library

    /// Loads it. The reason that it cannot be loaded; nil on success.
    var missing: String? {
        calls.load().map { "\(String(cString: $0)); Debian's package is \(package)" }
    }

    /// As stored failures apply to it, see ``ImageCodec/decoder``.
    var decoder: String { "\(format.rawValue)/\(installedVersion ?? "missing")" }

    /// As loaded; empty if it cannot be loaded.
    var version: String {
        missing == nil ? withMessage(32) { calls.version($0) }.text : ""
    }

    /// The version of the file that would be loaded, without loading it: `6.0.0`. Nil without one.
    ///
    /// A run over fresh images should not wait for libraries, and the program without walls should
    /// not run their code.
    var installedVersion: String? {
        guard let path = installedPath else { return nil }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return name.components(after: ".so.") ?? name
    }

    private var installedPath: String? {
        var files = calls.files
        while let file = files.pointee {
            if let path = withMessage(4096, { cloader_find(file, $0) }).text.nonEmpty {
                return path
            }
            files += 1
        }
        return nil
    }

    /// The last change of that file's place and attributes: its installation.
    var installedAt: Timestamp? { installedPath.flatMap(Timestamp.init(ofChangeOf:)) }

    /// Returns the message for a file that the library does not decode.
    func refusal(_ reason: String) -> String {
        "\(name) \(version) does not decode a file with \(reason)"
    }

    func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ccodec_header {
        var header = ccodec_header()
        try check(source, nil) { start, count, message in
            calls.read_header(start, count, &header, message)
        }
        return header
    }

    /// Calls a function on the bytes, and throws the error of its status.
    func check(
        _ source: UnsafeRawBufferPointer, _ interruption: Interruption?,
        _ body: (UnsafePointer<UInt8>, Int, UnsafeMutablePointer<CChar>) -> ccodec_status
    ) throws(CodecError) {
        guard let start = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            throw .notAnImage("no bytes")
        }
        if let missing {
            throw .unsupported(
                "\(format.rawValue) needs \(name), which cannot be loaded: \(missing)")
        }
        let (status, text) = withMessage(CCODEC_MESSAGE_BYTES) { body(start, source.count, $0) }
        switch status {
        case CCODEC_OK: return
        case CCODEC_TRUNCATED: throw .cut(text)
        case CCODEC_UNSUPPORTED: throw .unsupported(refusal(text))
        case CCODEC_LIMIT: throw .limitExceeded("\(name) \(version) refuses it: \(text)")
        case CCODEC_OUT_OF_MEMORY: throw .outOfMemory("no memory for \(name)")
        case CCODEC_INTERRUPTED: throw interruption?.error ?? .cancelled
        default: throw .broken(text.isEmpty ? "damaged data" : text)
        }
    }
}

extension Timestamp {
    /// The last change of a file's status (`ctime`); nil without the file.
    fileprivate init?(ofChangeOf path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(
            milliseconds: Int64(status.st_ctim.tv_sec) * 1000
                + Int64(status.st_ctim.tv_nsec) / 1_000_000)
    }
}

extension CodecLibraries {
    /// The formats that workers decode here, or this process with `--sandbox off`, and the time
    /// from which that is so: the last installation of a library or of the program. Nil for none.
    package static var arrivals: (formats: [ImageFormat], since: Timestamp)? {
        let formats = ImageFormat.allCases.filter { isSandboxed($0) && decodes($0) }
        let times = formats.compactMap { $0.sandboxedLibrary?.installedAt }
        guard let last = times.max() else { return nil }
        let program = Timestamp(ofChangeOf: "/proc/self/exe") ?? last
        return (formats, max(last, program))
    }
}

extension String {
    fileprivate var nonEmpty: String? { isEmpty ? nil : self }

    /// The text after the last occurrence of another one; nil without one.
    fileprivate func components(after mark: String) -> String? {
        let parts = split(separator: mark, omittingEmptySubsequences: false)
        return parts.count > 1 ? parts.last.map(String.init) : nil
    }
}

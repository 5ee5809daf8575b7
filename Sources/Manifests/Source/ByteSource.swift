import Glibc

/// The bytes of a manifest, from a file descriptor or from memory. Gzip is recognised by its
/// signature and decompressed.
///
/// Not thread-safe.
final class ByteSource {
    private enum Coding {
        case undetermined
        case plain
        case gzip(GzipInflater)
    }

    /// The name in errors, as the user gave it.
    let name: String
    let isRegularFile: Bool
    /// The size of a regular file at opening, compressed or not; nil for other sources.
    let sizeInBytes: Int?
    private let descriptor: Int32
    private let closesDescriptor: Bool
    private let readBytes: Int
    private var coding = Coding.undetermined
    /// Raw bytes: all bytes of a compressed source, and the first bytes of a plain one.
    private let raw: UnsafeMutableRawBufferPointer
    private var rawRange = 0..<0
    private var hasEnded = false

    /// RFC 1952 §2.3.1.
    private static let gzipSignature: [UInt8] = [0x1F, 0x8B]

    /// Opens `path`; `-` is standard input.
    convenience init(path: String, readBytes: Int) throws(ManifestError) {
        if path == "-" {
            try self.init(
                descriptor: STDIN_FILENO, name: path, closesDescriptor: false, readBytes: readBytes)
            return
        }
        guard !path.utf8.contains(0) else {
            throw ManifestError(path: path, operation: .open, errorNumber: ENOENT)
        }
        var descriptor: Int32
        repeat {
            descriptor = open(path, O_RDONLY | O_CLOEXEC)
        } while descriptor < 0 && errno == EINTR
        guard descriptor >= 0 else {
            throw ManifestError(path: path, operation: .open, errorNumber: errno)
        }
        try self.init(
            descriptor: descriptor, name: path, closesDescriptor: true, readBytes: readBytes)
    }

    /// Takes an open descriptor. If `closesDescriptor`, it is closed with the source, and also if
    /// this initialiser throws.
    ///
    /// - Throws: ``ManifestError`` if the descriptor is a directory or not open.
    init(
        descriptor: Int32, name: String, closesDescriptor: Bool, readBytes: Int
    ) throws(ManifestError) {
        self.name = name
        self.descriptor = descriptor
        self.closesDescriptor = closesDescriptor
        self.readBytes = readBytes
        raw = .allocate(byteCount: max(readBytes, 2), alignment: 16)
        var status = stat()
        let result = fstat(descriptor, &status)
        isRegularFile = result == 0 && status.st_mode & S_IFMT == S_IFREG
        sizeInBytes = isRegularFile ? Int(status.st_size) : nil
        // From here on `deinit` runs and closes the descriptor, also on a throw.
        guard result == 0 else {
            throw ManifestError(path: name, operation: .open, errorNumber: errno)
        }
        guard status.st_mode & S_IFMT != S_IFDIR else {
            throw ManifestError(path: name, operation: .open, errorNumber: EISDIR)
        }
    }

    /// Takes bytes in memory, unchanged.
    init(_ bytes: [UInt8], name: String, readBytes: Int) {
        self.name = name
        self.readBytes = readBytes
        descriptor = -1
        closesDescriptor = false
        isRegularFile = true
        sizeInBytes = bytes.count
        raw = .allocate(byteCount: max(bytes.count, 1), alignment: 16)
        raw.copyBytes(from: bytes)
        rawRange = 0..<bytes.count
        coding = .plain
        hasEnded = true
    }

    deinit {
        raw.deallocate()
        // Nothing was written, so a failing close loses nothing.
        if closesDescriptor { close(descriptor) }
    }

    /// Whether the bytes are decompressed; false before the first read.
    var isCompressed: Bool { if case .gzip = coding { true } else { false } }

    /// Whether ``read(into:)`` would return without waiting.
    var isReady: Bool {
        if isRegularFile || hasEnded || !rawRange.isEmpty { return true }
        if case .gzip(let inflater) = coding, inflater.hasMore { return true }
        var query = pollfd(descriptor: descriptor)
        let count = poll(&query, 1, 0)
        // Also true at the end or after an error, which the read reports.
        return count != 0
    }

    /// Reads the next bytes, waiting if there are none yet.
    ///
    /// - Returns: the number of bytes written, possibly zero before the end; nil at the end.
    func read(into destination: UnsafeMutableRawBufferPointer) throws(ManifestError) -> Int? {
        switch coding {
        case .undetermined:
            try determineCoding()
            return 0
        case .plain:
            guard rawRange.isEmpty else {
                let count = min(rawRange.count, destination.count)
                let next = rawRange.lowerBound..<(rawRange.lowerBound + count)
                destination.copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[next]))
                rawRange = next.upperBound..<rawRange.upperBound
                return count
            }
            guard !hasEnded else { return nil }
            let window = UnsafeMutableRawBufferPointer(rebasing: destination.prefix(readBytes))
            let count = try receive(into: window)
            return count == 0 ? nil : count
        case .gzip(let inflater):
            return try inflate(with: inflater, into: destination)
        }
    }

    /// Reads up to two bytes to recognise gzip.
    private func determineCoding() throws(ManifestError) {
        let count = try receive(
            into: UnsafeMutableRawBufferPointer(rebasing: raw[rawRange.upperBound...]))
        rawRange = 0..<(rawRange.upperBound + count)
        let start = raw[rawRange].prefix(2)
        if start.elementsEqual(ByteSource.gzipSignature) {
            coding = .gzip(try GzipInflater(name: name))
        } else if hasEnded || !ByteSource.gzipSignature.starts(with: start) {
            coding = .plain
        }
    }

    private func inflate(
        with inflater: GzipInflater, into destination: UnsafeMutableRawBufferPointer
    ) throws(ManifestError) -> Int? {
        if rawRange.isEmpty, !inflater.hasMore {
            if !hasEnded {
                let window = UnsafeMutableRawBufferPointer(rebasing: raw.prefix(readBytes))
                rawRange = 0..<(try receive(into: window))
            }
            if rawRange.isEmpty {
                guard let failure = inflater.failureAtEnd else { return nil }
                throw failure
            }
        }
        let window = UnsafeMutableRawBufferPointer(rebasing: destination.prefix(readBytes))
        let (consumed, produced) = try inflater.inflate(
            UnsafeMutableRawBufferPointer(rebasing: raw[rawRange]), into: window)
        rawRange = (rawRange.lowerBound + consumed)..<rawRange.upperBound
        return produced
    }

    /// Performs one successful `read`; returns zero at the end.
    private func receive(
        into destination: UnsafeMutableRawBufferPointer
    ) throws(ManifestError) -> Int {
        while true {
            let count = Glibc.read(
                descriptor, destination.baseAddress, min(destination.count, readBytes))
            if count > 0 { return count }
            if count == 0 {
                hasEnded = true
                return 0
            }
            let code = errno
            if code == EAGAIN || code == EWOULDBLOCK {
                // Another process made the shared pipe non-blocking.
                var query = pollfd(descriptor: descriptor)
                _ = poll(&query, 1, -1)
            } else if code != EINTR {
                throw ManifestError(path: name, operation: .read, errorNumber: code)
            }
        }
    }
}

extension pollfd {
    fileprivate init(descriptor: Int32) {
        self.init(fd: descriptor, events: Int16(POLLIN), revents: 0)
    }
}

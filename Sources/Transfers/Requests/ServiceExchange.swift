import Glibc
package import PrefetchModel

/// The part of a request to a service, such as a bucket's, that images and lists do not have: a
/// method, a body to send, a place for the response's body and a signature.
///
/// A response of any status is a result with a stored body. Only the given fields are sent.
package struct ServiceExchange: Sendable {
    package enum Method: Sendable {
        case get, put, post, delete
    }

    /// The bytes to send, which must not change before the end.
    package enum SentContent: Sendable {
        case bytes([UInt8])
        case file(Int32, offset: Int, count: Int)

        package var count: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .file(_, _, let count): count
            }
        }
    }

    /// The place for the body of a successful response.
    package enum BodyOutput: Sendable {
        case memory(limit: Int)
        /// An open file, written from `offset` on for the statuses 200 and 206.
        case file(Int32, offset: Int, limit: Int)
    }

    package var method = Method.get
    package var content = SentContent.bytes([])
    package var output = BodyOutput.memory(limit: 8 << 20)
    /// The keys of a signature (AWS Signature Version 4), which libcurl calculates.
    package var signature: (credentials: Credentials, region: String)?
    /// Whether the response arrives whole: its head and its body must each keep ``leastRate`` after
    /// their first bytes. False for objects, and if the service sends blanks until it is done.
    package var isBrief = true

    /// Bytes a second: services send small responses whole.
    static let leastRate = 1024.0
    /// The time before ``leastRate`` counts.
    static let rateGrace = Duration.seconds(2)
    private static let largestError = 1 << 20

    package init() {}

    /// The largest body of a response with a status.
    func limit(ofStatus status: Int) -> ByteCount {
        guard (200...299).contains(status) else { return ByteCount(ServiceExchange.largestError) }
        return switch output {
        case .memory(let limit), .file(_, _, let limit): ByteCount(limit)
        }
    }

    // MARK: Callbacks

    /// Fills a buffer with the bytes to send from an offset on.
    ///
    /// - Returns: their count, zero at the end.
    /// - Throws: a failure of the file, or its early end.
    func fill(
        _ buffer: UnsafeMutableRawBufferPointer, from sent: Int
    ) throws(Failure) -> Int {
        let count = min(buffer.count, content.count - sent)
        guard count > 0, let start = buffer.baseAddress else { return 0 }
        switch content {
        case .bytes(let bytes):
            bytes.withUnsafeBytes { bytes in
                buffer.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: bytes[sent..<sent + count]))
            }
            return count
        case .file(let file, let offset, _):
            let number = pread(file, start, count, offset + sent)
            guard number != 0 else { throw ServiceExchange.shortFile }
            guard number > 0 else { throw ServiceExchange.diskFailure(errno) }
            return number
        }
    }

    /// The failure of a file that is shorter than its request says.
    package static let shortFile = Failure(.disk, "the file has become shorter")

    static func diskFailure(_ code: Int32) -> Failure {
        Failure(
            .disk, "the file cannot be read or written: \(String(cString: strerror(code)))")
    }

    static func write(
        _ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: Int
    ) throws(Failure) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = pwrite(file, rest.baseAddress, rest.count, offset + done)
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                throw diskFailure(count < 0 ? errno : ENOSPC)
            }
            done += count
        }
    }
}

extension TransferConfiguration {
    /// The settings for a service: the limits, routes and authorities of a run. Its endpoint is
    /// the user's choice and may have any address; no field, cookie or credential of the
    /// origins is sent, and its certificate is always verified.
    ///
    /// `authorityFile` has the certificates to trust in place of the run's.
    package func forServices(authorityFile: String? = nil) -> TransferConfiguration {
        var settings = TransferConfiguration(userAgent: userAgent)
        settings.limits = limits
        settings.rateLimit = rateLimit
        var requests = RequestSettings()
        requests.proxies = self.requests.proxies
        requests.hostAddresses = self.requests.hostAddresses
        requests.addressFamily = self.requests.addressFamily
        requests.authorityFile = authorityFile ?? self.requests.authorityFile
        requests.authorityFolder = authorityFile == nil ? self.requests.authorityFolder : nil
        requests.usesHTTP1Only = true
        requests.allowsLinkLocal = true
        settings.requests = requests
        return settings
    }
}

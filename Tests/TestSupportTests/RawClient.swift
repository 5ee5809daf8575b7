import Foundation
import Glibc
import TestSupport

/// A response as received, byte for byte.
struct RawAnswer {
    /// The bytes up to the end of the connection, or as many as were requested.
    var bytes: [UInt8]
    /// Whether the connection was reset rather than closed.
    var isReset: Bool

    var text: String { String(decoding: bytes, as: UTF8.self) }
    var body: [UInt8] {
        guard let end = text.utf8.count == bytes.count ? text.range(of: "\r\n\r\n") : nil else {
            return []
        }
        return Array(text[end.upperBound...].utf8)
    }
}

/// Sends `request` unchanged and reads to the end of the connection, on its own thread.
func exchange(_ origin: Origin, _ request: String) async throws -> RawAnswer {
    let port = origin.port
    return try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            continuation.resume(with: Result { try blockingExchange(port: port, request) })
        }
    }
}

private func blockingExchange(port: Int, _ request: String) throws -> RawAnswer {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port).bigEndian)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let status = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    guard status == 0 else { throw POSIXError(.ECONNREFUSED) }
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(
        descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let bytes = Array(request.utf8)
    var answer = RawAnswer(bytes: [], isReset: false)
    // A pending reset is reported once, by this call.
    if Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) < 0, errno == ECONNRESET {
        answer.isReset = true
    }
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0, errno == ECONNRESET { answer.isReset = true }
        guard count > 0 else { return answer }
        answer.bytes += buffer[..<count]
    }
}

import Foundation
import PrefetchModel
import TestSupport
import Testing

@testable import Transfers

/// Peers that send without end, and what becomes of the other connections.
@Suite(.timeLimit(.minutes(15)))
struct WatchdogTests {
    /// A server on loopback that runs `serve` on a thread for each connection.
    private final class Server: Sendable {
        private let listener: Int32
        let port: Int

        init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            self.listener = listener
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isListening = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, size) == 0 && listen(listener, 8) == 0
                        && getsockname(listener, $0, &size) == 0
                }
            }
            try #require(isListening)
            port = Int(UInt16(bigEndian: address.sin_port))
            Thread.detachNewThread {
                while true {
                    let connection = accept(listener, nil, nil)
                    guard connection >= 0 else { return }
                    Thread.detachNewThread {
                        serve(connection)
                        close(connection)
                    }
                }
            }
        }

        func stop() {
            shutdown(listener, Int32(SHUT_RDWR))
            close(listener)
        }

        func connect() -> Int32 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            address.sin_port = UInt16(port).bigEndian
            let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(connection, $0, size)
                }
            }
            return connection
        }
    }

    /// Sends the same bytes until the connection ends.
    @Sendable private static func flood(_ connection: Int32, _ text: String) {
        let bytes = Array(String(repeating: text, count: 1000).utf8)
        while send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) > 0 {}
    }

    private static func receive(_ connection: Int32, flags: Int32 = 0) -> Int {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        return recv(connection, &buffer, buffer.count, flags)
    }

    @Test func endsOnlyTheConnectionThatSends() throws {
        let sender = try Server { Self.flood($0, "X: y\r\n") }
        let silent = try Server { connection in _ = Self.receive(connection) }
        defer {
            sender.stop()
            silent.stop()
        }
        let watchdog = Watchdog(interval: .milliseconds(100))
        watchdog.run {
            let (busy, idle) = (sender.connect(), silent.connect())
            watchdog.opened(busy)
            watchdog.opened(idle)
            watchdog.watch { while Self.receive(busy) > 0 {} }
            #expect(Self.receive(idle, flags: Int32(MSG_DONTWAIT)) == -1)
            #expect(errno == EAGAIN)
            close(busy)
            close(idle)
        }
    }

    @Test func endsAllConnectionsOfACallThatContinues() {
        var pair: [Int32] = [0, 0]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
        let watchdog = Watchdog(interval: .milliseconds(10))
        watchdog.run {
            watchdog.opened(pair[0])
            #expect(watchdog.watch { Self.receive(pair[0]) } == 0)
        }
        for socket in pair { close(socket) }
    }

    /// Without the watchdog, libcurl reads the fields for as long as they arrive.
    @Test func endsAProxysEndlessFields() async throws {
        let proxy = try Server { connection in
            _ = Self.receive(connection)
            let head =
                "HTTP/1.1 407 A\r\nProxy-Authenticate: Basic realm=x\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n0\r\n"
            send(connection, head, head.utf8.count, Int32(MSG_NOSIGNAL))
            Self.flood(connection, "X: y\r\n")
        }
        defer { proxy.stop() }
        var configuration = TransferConfiguration(userAgent: "prefetch-tests")
        configuration.requests.proxies = ProxySettings(explicit: "http://127.0.0.1:\(proxy.port)")
        try await withLoop(configuration) { loop in
            let completion = await loop.get("https://h.example/x.png")
            #expect(completion.failure != nil)
            #expect(completion.elapsed > .seconds(3), "\(completion)")
        }
    }
}

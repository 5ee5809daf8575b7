import Glibc
import PrefetchModel

/// Chooses the proxy of each request.
///
/// libcurl could choose alone, but would not tell whether the address that it connects to is the
/// origin's. So each request names its proxy.
struct ProxyRules {
    private let settings: ProxySettings
    private let exceptions: [Exception]
    private let exceptsAll: Bool

    init(_ settings: ProxySettings) {
        self.settings = settings
        exceptsAll = settings.exceptions == "*"
        exceptions = settings.exceptions.split { $0 == "," || $0 == " " || $0 == "\t" }
            .compactMap(Exception.init)
    }

    /// The proxy as configured; nil to connect to the origin directly.
    func proxy(for url: RequestURL) -> String? {
        guard let proxy = url.isEncrypted ? settings.https : settings.http, !exceptsAll else {
            return nil
        }
        guard !exceptions.isEmpty else { return proxy }
        let host = String(url.host)
        // Exceptions have no zones.
        let address = Address(
            host.hasPrefix("[")
                ? String(host.dropFirst().dropLast().prefix { $0 != "%" }) : host)
        return exceptions.contains { $0.matches(host, address) } ? nil : proxy
    }

    /// One word of the list, by the rules of libcurl
    /// (https://curl.se/libcurl/c/CURLOPT_NOPROXY.html, networks since 7.86).
    private enum Exception {
        /// In lower case, without full stops at its ends.
        case name(String)
        case network(Address, bits: Int)

        init?(_ word: Substring) {
            let parts = word.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let isBracketed = parts[0].hasPrefix("[") && parts[0].hasSuffix("]")
            let text = isBracketed ? parts[0].dropFirst().dropLast() : parts[0]
            if let address = Address(String(text)) {
                let whole = address.bytes.count * 8
                let bits = parts.count == 2 ? Int(parts[1]) : whole
                // libcurl takes 0 bits for all bits.
                guard let bits, (0...whole).contains(bits) else { return nil }
                self = .network(address, bits: bits == 0 ? whole : bits)
                return
            }
            var name = word
            if name.hasSuffix(".") { name.removeLast() }
            if name.hasPrefix(".") { name.removeFirst() }
            guard !name.isEmpty else { return nil }
            self = .name(name.lowercased())
        }

        func matches(_ host: String, _ address: Address?) -> Bool {
            switch self {
            case .name(let name):
                guard address == nil else { return false }
                var host = host.lowercased()
                if host.hasSuffix(".") { host.removeLast() }
                return host == name || host.hasSuffix("." + name)
            case .network(let network, let bits):
                guard let address else { return false }
                return address.begins(like: network, bits: bits)
            }
        }
    }

    private struct Address {
        /// 4 or 16 bytes, in network order.
        let bytes: [UInt8]

        init?(_ text: String) {
            var ipv4 = in_addr()
            var ipv6 = in6_addr()
            if inet_pton(AF_INET, text, &ipv4) == 1 {
                bytes = withUnsafeBytes(of: &ipv4) { Array($0) }
            } else if inet_pton(AF_INET6, text, &ipv6) == 1 {
                bytes = withUnsafeBytes(of: &ipv6) { Array($0) }
            } else {
                return nil
            }
        }

        func begins(like other: Address, bits: Int) -> Bool {
            guard bytes.count == other.bytes.count else { return false }
            return zip(bytes, other.bytes).enumerated().allSatisfy { index, pair in
                (pair.0 ^ pair.1) >> (8 - min(8, max(0, bits - 8 * index))) == 0
            }
        }
    }
}

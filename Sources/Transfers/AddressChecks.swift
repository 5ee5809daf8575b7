internal import CCurl
import Glibc
import PrefetchModel

/// The addresses that one transfer met, and what its rule says of them.
///
/// They are looked at twice. When libcurl opens a socket, with the very address that it connects to,
/// so that it is no use to give another DNS answer to whoever asked before: a refused address counts
/// as one that does not answer, and libcurl goes on to the next one of the name. And before a
/// request is sent, since a connection that another request was allowed to open may be reused.
struct AddressChecks {
    let rule: AddressRule
    /// The class of the connection's address, once there is a connection.
    private(set) var connected: AddressClass?
    /// The last one that was refused, with the reason.
    private var refused: String?
    /// Whether an address was allowed.
    private var hasOpened = false
    /// Whether connections lead to a proxy, whose address the user chose.
    private let isProxied: Bool
    /// Why the system gave no socket, when the fault is ours and no address's.
    private var missing: String?

    init(rule: AddressRule) {
        self.rule = rule
        isProxied = false
    }

    /// For a request through a proxy: the proxy looks the origin up, so that only an address written
    /// in the URL can be looked at.
    init(rule: AddressRule, proxiedURL: RequestURL) {
        self.rule = rule
        isProxied = true
        if let kind = AddressClass(hostOf: proxiedURL), let reason = rule.refusal(of: kind) {
            refused = "the URL's host is \(kind.description), \(reason)"
        }
    }

    /// Whether a connection may be opened.
    mutating func mayOpen(_ address: UnsafePointer<sockaddr>) -> Bool {
        guard !isProxied else { return refused == nil }
        guard let text = AddressChecks.text(address), check(text) != nil else { return false }
        hasOpened = true
        return true
    }

    /// Whether a request may be sent on a connection to `address`, new or reused.
    mutating func maySend(to address: String) -> Bool {
        guard !isProxied else { return refused == nil }
        guard let kind = check(address) else { return false }
        connected = kind
        return true
    }

    /// The failure of a transfer that the rule ended; nil for any other.
    ///
    /// A name with several addresses may have had allowed ones that did not answer, and then that is
    /// what failed.
    func failure(_ code: CURLcode) -> TransferFailure? {
        if let missing, code == CURLE_COULDNT_CONNECT {
            return TransferFailure(
                reason: .internal, curlCode: nil, httpStatus: nil, message: missing)
        }
        let isOurs =
            code == CURLE_ABORTED_BY_CALLBACK || code == CURLE_COULDNT_CONNECT && !hasOpened
        guard let refused, isOurs else { return nil }
        return TransferFailure(
            reason: .refusedAddress, curlCode: nil, httpStatus: nil, message: refused)
    }

    /// Notes why `socket` failed.
    mutating func opened(_ socket: Int32, _ cause: Int32) {
        guard socket < 0, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(cause) else { return }
        missing = "no socket: \(String(cString: strerror(cause)))"
    }

    /// The class of an allowed address; nil for one that is refused, or that is none.
    private mutating func check(_ text: String) -> AddressClass? {
        guard let kind = AddressClass(text: text) else {
            refused = "libcurl chose something that is no IP address"
            return nil
        }
        guard let reason = rule.refusal(of: kind) else { return kind }
        refused = "\(text) is \(kind.description), \(reason)"
        return nil
    }

    /// An IP address in its usual text form; nil for an address of another family.
    private static func text(_ address: UnsafePointer<sockaddr>) -> String? {
        let family = Int32(address.pointee.sa_family)
        let raw = UnsafeRawPointer(address)
        let offset: Int?
        switch family {
        case AF_INET: offset = MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)
        case AF_INET6: offset = MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)
        default: offset = nil
        }
        guard let offset else { return nil }
        return withUnsafeTemporaryAllocation(
            of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)
        ) { buffer -> String? in
            guard
                let text = inet_ntop(
                    family, raw + offset, buffer.baseAddress, socklen_t(buffer.count))
            else { return nil }
            return String(cString: text)
        }
    }
}

/// libcurl's function for opening sockets; `context` is the ``ActiveTransfer``, which its loop keeps
/// alive (https://curl.se/libcurl/c/CURLOPT_OPENSOCKETFUNCTION.html).
func openCheckedSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
    _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let context, let address else { return CURL_SOCKET_BAD }
    let transfer = Unmanaged<ActiveTransfer>.fromOpaque(context).takeUnretainedValue()
    guard transfer.addresses.mayOpen(ccurl_socket_address(address)) else { return CURL_SOCKET_BAD }
    let opened = socket(
        address.pointee.family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue),
        address.pointee.protocol)
    // libcurl takes it for an address that could not be connected to.
    transfer.addresses.opened(opened, errno)
    return opened
}

/// libcurl's function before each request on a connection, reused ones included
/// (https://curl.se/libcurl/c/CURLOPT_PREREQFUNCTION.html, added in 7.80).
func checkConnection(
    _ context: UnsafeMutableRawPointer?, _ address: UnsafeMutablePointer<CChar>?,
    _ localAddress: UnsafeMutablePointer<CChar>?, _ port: Int32, _ localPort: Int32
) -> Int32 {
    guard let context, let address else { return CURL_PREREQFUNC_ABORT }
    let transfer = Unmanaged<ActiveTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.addresses.maySend(to: String(cString: address))
        ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}

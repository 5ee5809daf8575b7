internal import CCurl
import Glibc
package import PrefetchModel

/// Checks the addresses of one transfer against its rule.
///
/// Each address is checked twice. First when libcurl opens a socket, with the very address that it
/// connects to: DNS rebinding has no effect. A refused address counts as unreachable, and
/// libcurl tries the next one of the name. Then before a request is sent, since a connection
/// opened for another request may be reused.
struct AddressChecks {
    let rule: AddressRule
    /// The class of the connection's address; nil before there is a connection.
    private(set) var connected: AddressClass?
    /// The last refused address, with the reason.
    private var refused: String?
    private var hasOpened = false
    /// Whether connections lead to a proxy of the user.
    private let isProxied: Bool
    /// The reason why the system gave no socket, where this machine is at fault.
    private var missing: String?

    /// `proxiedURL` is the URL of a request through a proxy; nil for a direct one. The proxy
    /// resolves the origin's name, so only a numeric address in the URL can be checked.
    init(rule: AddressRule, proxiedURL: RequestURL? = nil) {
        self.rule = rule
        isProxied = proxiedURL != nil
        if let proxiedURL, let kind = AddressClass(hostOf: proxiedURL),
            let reason = rule.refusal(of: kind)
        {
            refused = "the URL's host is \(kind.description), \(reason)"
        }
    }

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
    /// A name may also have allowed addresses without a listener; then they are the failure.
    func failure(_ code: CURLcode) -> TransferFailure? {
        if let missing, code == CURLE_COULDNT_CONNECT {
            return TransferFailure(Failure(.internal, missing), httpStatus: nil)
        }
        let isOurs =
            code == CURLE_ABORTED_BY_CALLBACK || code == CURLE_COULDNT_CONNECT && !hasOpened
        guard let refused, isOurs else { return nil }
        return TransferFailure(Failure(.refusedAddress, refused), httpStatus: nil)
    }

    mutating func opened(_ socket: Int32, _ cause: Int32) {
        guard socket < 0, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(cause) else { return }
        missing = "no socket: \(String(cString: strerror(cause)))"
    }

    /// The class of an allowed address; nil for a refused address or other text.
    private mutating func check(_ text: String) -> AddressClass? {
        guard let kind = AddressClass(text: text) else {
            refused = "libcurl chose something other than an IP address"
            return nil
        }
        guard let reason = rule.refusal(of: kind) else { return kind }
        refused = "\(text) is \(kind.description), \(reason)"
        return nil
    }

    /// An IP address as text; nil for other address families.
    private static func text(_ address: UnsafePointer<sockaddr>) -> String? {
        let family = Int32(address.pointee.sa_family)
        let raw = UnsafeRawPointer(address)
        let offset =
            switch family {
            case AF_INET: MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)
            case AF_INET6: MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)
            default: Int?.none
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

extension AddressRule {
    /// Why to refuse an address, as in `10.0.0.1 is a private address, REASON`; nil to allow it.
    package func refusal(of address: AddressClass) -> String? {
        switch (self, address) {
        // TCP must not open a connection to either (RFC 9293 §3.9.2.3).
        case (_, .multicast), (_, .broadcast): "which nothing can be fetched from"
        case (_, .global): nil
        case (.listed(allowsLinkLocal: false), .linkLocal):
            "which is refused without --allow-link-local"
        // `0.0.0.0` and `::` are this machine, like any loopback address.
        case (.listed, _): nil
        case (.publicOnly, _): "which --deny-private refuses"
        case (.redirectedFromPublic, _): "and a redirect from a public one never leads there"
        }
    }
}

extension TransferConfiguration {
    package var listedAddressRule: AddressRule {
        requests.deniesPrivate
            ? .publicOnly : .listed(allowsLinkLocal: requests.allowsLinkLocal)
    }

    /// The rule for a redirect's target; a nil address (behind a proxy) counts as public.
    package func addressRule(afterRedirectFrom address: AddressClass?) -> AddressRule {
        switch address {
        case nil, .global?: .redirectedFromPublic
        default: listedAddressRule
        }
    }
}

/// The addresses that a request may be sent to.
package enum AddressRule: Hashable, BitwiseCopyable, Sendable {
    /// URLs from the user: all addresses but link-local and metadata addresses, which hold secrets
    /// of the machine and no pictures. Loopback and private networks are allowed, since the user
    /// may run a server there.
    case listed(allowsLinkLocal: Bool)
    /// URLs from a third party: public addresses only.
    case publicOnly
    /// Redirects from a public address: public addresses only, even if others are allowed. This
    /// prevents SSRF into the user's network.
    case redirectedFromPublic
}

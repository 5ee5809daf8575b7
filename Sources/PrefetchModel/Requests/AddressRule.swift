/// Which addresses a request may be sent to.
package enum AddressRule: Hashable, Sendable {
    /// What the user listed: anything but link-local and metadata addresses, which hold secrets of
    /// the machine and no pictures. This machine and private networks are fine, since the user may
    /// well run a server there.
    case listed(allowsLinkLocal: Bool)
    /// What somebody else listed: public addresses only.
    case publicOnly
    /// Where a redirect from a public address leads: to public ones only, whatever else is allowed.
    /// A stranger must not choose what we fetch from the inside of the user's network.
    case redirectedFromPublic
}

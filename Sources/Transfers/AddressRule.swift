import PrefetchModel

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

    /// Why an address of this class is refused, as in `10.0.0.1 is a private address, REASON`; nil
    /// when it is not.
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
    /// The rule for what the user listed.
    package var listedAddressRule: AddressRule {
        requests.deniesPrivate
            ? .publicOnly : .listed(allowsLinkLocal: requests.allowsLinkLocal)
    }

    /// The rule for the target of a redirect.
    ///
    /// - Parameter address: where the redirect came from, as ``TransferCompletion/address`` says;
    ///   nil, which a proxy leaves it at, counts as public.
    /// - Returns: what goes into ``TransferRequest/addressRule``.
    package func addressRule(afterRedirectFrom address: AddressClass?) -> AddressRule {
        switch address {
        case nil, .global?: .redirectedFromPublic
        default: listedAddressRule
        }
    }
}

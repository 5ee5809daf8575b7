package import PrefetchModel

extension AddressRule {
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

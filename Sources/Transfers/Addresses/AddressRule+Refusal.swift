package import PrefetchModel

extension AddressRule {
    /// The reason to refuse an address of this class, as in `10.0.0.1 is a private address,
    /// REASON`; nil to allow it.
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
    /// The rule for listed URLs.
    package var listedAddressRule: AddressRule {
        requests.deniesPrivate
            ? .publicOnly : .listed(allowsLinkLocal: requests.allowsLinkLocal)
    }

    /// The rule for the target of a redirect.
    ///
    /// - Parameter address: the redirecting host, as in ``TransferCompletion/address``; nil
    ///   (behind a proxy) counts as public.
    /// - Returns: a value for ``TransferRequest/addressRule``.
    package func addressRule(afterRedirectFrom address: AddressClass?) -> AddressRule {
        switch address {
        case nil, .global?: .redirectedFromPublic
        default: listedAddressRule
        }
    }
}

package import PrefetchModel

/// A change of the metadata; each entry of a run makes one.
package enum MetadataChange: Sendable {
    /// A body was stored, or a resource with an unchanged body got new metadata.
    case image(ImageChange)
    /// An entry failed, and the failure may be blacklisted by the rules at the end of the run.
    case failure(FailureRecord)
    /// An entry failed in a way that is stored for the next run but never blacklisted.
    case harmlessFailure(FailureRecord)
    /// A content file is missing or damaged: removes its remains and all variants that name it.
    case lost(StoredImage)
    /// The variants of resources in use changed to others that are stored.
    case used(resources: [Int64], [RequestedVariant])
    /// The expiry of resources changed without a request, by a run's rules.
    case expiries([Int64: Timestamp])
    /// Lists named resources by other URLs than before, without user information.
    case listedURLs([Int64: String])

    var isNewBody: Bool {
        if case .image(let change) = self, case .new = change.body { true } else { false }
    }

    /// The key of the one resource or failure that changes, if the change contains it.
    var key: String? {
        switch self {
        case .image(let change): change.key
        case .failure(let record), .harmlessFailure(let record): record.key
        case .lost, .used, .expiries, .listedURLs: nil
        }
    }
}

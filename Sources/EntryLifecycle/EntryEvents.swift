package import PrefetchModel

package struct EntryRequest: Sendable {
    package let url: RequestURL
    /// The fields that make the request conditional; empty for an unconditional one.
    package let conditions: [HeaderField]
    /// The stored part of the body; the request is for its rest. Nil to request all of it.
    package let part: PartialBody?
    /// Whether a redirect led to another origin than the listed one.
    package let isForeign: Bool
    /// Nil for the rule of listed URLs.
    package let addressRule: AddressRule?
    /// Whether the body may equal the stored one, which its header cannot tell.
    package let mayBeKnown: Bool
}

/// The connection is nil without the first byte of a response.
package typealias TransferCost = (
    bytesReceived: Int, elapsed: Duration, connection: ResponseConnection?
)

package typealias InterruptedResponse = (head: Response, body: BodyExtent)

package enum VariantEnd: Hashable, Sendable {
    /// It is stored, and its file is whole.
    case kept(StoredImage)
    /// Its new file is in place and pinned.
    case made(StoredImage)
    case failed(Failure)

    package var image: StoredImage? {
        switch self {
        case .kept(let image), .made(let image): image
        case .failed: nil
        }
    }
}

/// The result of decoding a body or a stored original.
package enum ProcessingResult: Sendable {
    case made([VariantEnd], source: SourceImage)
    /// The body equals the stored one, and all its variants are stored.
    case unchanged
    /// The stored original, or a file of the seed cache, is missing, or its bytes have changed.
    case originalDamaged
    /// The stored part that the body continues is missing or damaged.
    case partDamaged
    /// Nothing is stored, because the run was cancelled.
    case cancelled
    case failed(Failure)
    /// The stored original is whole, but no variant could be made: it exceeds a limit, or the
    /// recipes do not fit.
    case underivable(Failure)
}

package import PrefetchModel

/// The facts about an entry from earlier runs, looked up once when it starts.
package struct Findings: Sendable {
    package var copy: StoredCopy?
    /// The copy of the seed cache; nil without its row.
    package var seeded: SeededCopy?
    package var part: PartialBody?
    package var formerFailure: FormerFailure?
    /// Whether an earlier run gave up the host for the same reason. Looked up only for entries of
    /// a host that is given up; false for all others.
    package var wasGivenUpBefore = false

    package static let nothing = Findings()
}

package struct StoredCopy: Sendable {
    /// An image that the entry's recipe would make again, and whether it is stored as this variant;
    /// if not, another variant has the same bytes.
    package typealias Kept = (image: StoredImage, isNamed: Bool)
    package typealias Original = (image: StoredImage, isWhole: Bool)

    package let resource: Int64
    /// The last validation, with the arrival time of the body. Its URLs come from the transfer that
    /// stored the copy, without user information.
    package let validation: ResourceValidation
    /// The URL of ``ResourceLocation/permanent``, if it can be requested.
    let permanentTarget: RequestURL?
    package let sourceDigest: ContentDigest
    /// As ``Placeholder/thumbHash``, if there is a placeholder.
    package let thumbHash: [UInt8]?
    /// The stored images by position of the variant; nil for a missing or damaged file.
    package internal(set) var kept: [Kept?]
    package internal(set) var original: Original?
    /// The variants in use that the entry does not request; a new source makes them again.
    package let others: [RequestedVariant]

    package init(
        resource: Int64, validation: ResourceValidation, permanentTarget: RequestURL?,
        sourceDigest: ContentDigest, thumbHash: [UInt8]? = nil, kept: [Kept?],
        original: Original?, others: [RequestedVariant] = []
    ) {
        self.resource = resource
        self.validation = validation
        self.permanentTarget = permanentTarget
        self.sourceDigest = sourceDigest
        self.thumbHash = thumbHash
        self.kept = kept
        self.original = original
        self.others = others
    }

    var fetchedAt: Timestamp { validation.fetchedAt ?? validation.validatedAt }
    package var isComplete: Bool { kept.allSatisfy { $0 != nil } }
    var isEmpty: Bool { kept.allSatisfy { $0 == nil } }
}

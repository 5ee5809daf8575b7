package import PrefetchModel

/// What is known of an entry from earlier runs, looked up once when it starts.
package struct Findings: Sendable {
    /// Nil when nothing is stored.
    package var copy: StoredCopy?
    /// The part of a body that an earlier transfer left; nil without one.
    package var part: PartialBody?
    /// How it failed in an earlier run; nil when it did not.
    package var formerFailure: FormerFailure?
    /// Whether an earlier run had the same trouble with the host that this one gives up. Looked up
    /// for such entries only; false for all others.
    package var isKnownTrouble: Bool

    package static let nothing = Findings()

    package init(
        copy: StoredCopy? = nil, part: PartialBody? = nil, formerFailure: FormerFailure? = nil,
        isKnownTrouble: Bool = false
    ) {
        self.copy = copy
        self.part = part
        self.formerFailure = formerFailure
        self.isKnownTrouble = isKnownTrouble
    }
}

/// What is stored of an entry, seen by the variants that it asks for.
package struct StoredCopy: Sendable {
    /// An image that the entry's recipe would make again.
    package struct Kept: Hashable, Sendable {
        package let image: StoredImage
        /// Whether it is stored as this variant; else another one has the same bytes.
        package let isNamed: Bool

        package init(image: StoredImage, isNamed: Bool) {
            self.image = image
            self.isNamed = isNamed
        }
    }

    package let resource: Int64
    /// That was asked for, without user information.
    package let url: String
    /// That gave the response, at the end of all redirects, without user information.
    package let responseURL: String
    /// Where the permanent redirects led that came first from ``url`` on; nil without such.
    package let permanentTarget: RequestURL?
    package let response: StoredResponse
    package let fetchedAt: Timestamp
    package let expiresAt: Timestamp
    package let sourceDigest: ContentDigest
    /// By position of the variant that the entry asks for: nil where its file is not there whole.
    package internal(set) var kept: [Kept?]
    /// The source's bytes, if they are stored; nil else.
    package private(set) var original: StoredImage?
    /// Whether the file of ``original`` was there when it was looked up.
    package private(set) var isOriginalWhole: Bool

    package init(
        resource: Int64, url: String, responseURL: String, permanentTarget: RequestURL?,
        response: StoredResponse, fetchedAt: Timestamp, expiresAt: Timestamp,
        sourceDigest: ContentDigest, kept: [Kept?], original: StoredImage?, isOriginalWhole: Bool
    ) {
        self.resource = resource
        self.url = url
        self.responseURL = responseURL
        self.permanentTarget = permanentTarget
        self.response = response
        self.fetchedAt = fetchedAt
        self.expiresAt = expiresAt
        self.sourceDigest = sourceDigest
        self.kept = kept
        self.original = original
        self.isOriginalWhole = isOriginalWhole
    }

    /// Whether nothing has to be made.
    package var isComplete: Bool { kept.allSatisfy { $0 != nil } }
    var isEmpty: Bool { kept.allSatisfy { $0 == nil } }

    mutating func forgetOriginal() {
        original = nil
        isOriginalWhole = false
    }
}

/// A part of a body that is there.
package struct PartialBody: Hashable, Sendable {
    /// That it came from, without user information.
    package let url: String
    /// Bytes that are there.
    package let count: Int
    /// What to send in `If-Range` for the rest.
    package let validator: PartialValidator
    /// Bytes of the whole body; nil when the response did not say.
    package let total: Int?

    package init(url: String, count: Int, validator: PartialValidator, total: Int?) {
        self.url = url
        self.count = count
        self.validator = validator
        self.total = total
    }
}

/// The failure that an earlier run left of a key.
package struct FormerFailure: Hashable, Sendable {
    package let url: String
    package let reason: FailureReason
    /// Nil when no response arrived.
    package let httpStatus: Int?

    package init(url: String, reason: FailureReason, httpStatus: Int?) {
        self.url = url
        self.reason = reason
        self.httpStatus = httpStatus
    }
}

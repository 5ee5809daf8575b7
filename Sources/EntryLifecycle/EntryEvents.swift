package import PrefetchModel

/// A request for an entry's next transfer.
package struct Inquiry: Sendable {
    package let url: RequestURL
    /// The fields that make the request conditional; none for a plain one.
    package let conditions: [HeaderField]
    /// What is there of the body, of which the rest is asked for; nil to ask for all of it.
    package let part: PartialBody?
    /// Whether a redirect has led to another origin than the listed one.
    package let isForeign: Bool
    /// Nil for the rule of what is listed.
    package let addressRule: AddressRule?
    /// Whether the body may turn out to be what is stored already, which its header does not tell.
    package let mayBeKnown: Bool
}

/// The head of a response, and what matters of its body.
package struct Answer: Sendable {
    package enum Body: Hashable, Sendable {
        /// None, or one that was read past.
        case none
        /// `gap`: bytes of it that were there before, to be put in front.
        case received(gap: Int)
    }

    package enum Redirect: Hashable, Sendable {
        /// No redirect, or one without `Location`.
        case none
        case to(RequestURL)
        /// To what cannot be asked for; `location` is its beginning, for people.
        case nowhere(location: String, message: String)
    }

    package let status: Int
    package let fields: [HeaderField]
    package let receivedAt: Timestamp
    package let body: Body
    package let redirect: Redirect
    /// For where a redirect leads.
    package let ruleForRedirect: AddressRule

    package init(
        status: Int, fields: [HeaderField], receivedAt: Timestamp, body: Body = .none,
        redirect: Redirect = .none, ruleForRedirect: AddressRule = .redirectedFromPublic
    ) {
        self.status = status
        self.fields = fields
        self.receivedAt = receivedAt
        self.body = body
        self.redirect = redirect
        self.ruleForRedirect = ruleForRedirect
    }
}

/// What a transfer has cost.
package struct TransferCost: Hashable, Sendable {
    /// Body bytes that arrived.
    package let bytesReceived: Int
    package let elapsed: Duration

    package init(bytesReceived: Int, elapsed: Duration) {
        self.bytesReceived = bytesReceived
        self.elapsed = elapsed
    }
}

/// What came of a body that broke off.
package struct BrokenAnswer: Sendable {
    package let fields: [HeaderField]
    package let receivedAt: Timestamp
    /// Bytes of the body, the gap included.
    package let count: Int
    /// Bytes that were there before.
    package let gap: Int

    package init(fields: [HeaderField], receivedAt: Timestamp, count: Int, gap: Int) {
        self.fields = fields
        self.receivedAt = receivedAt
        self.count = count
        self.gap = gap
    }
}

/// A transfer without a whole response.
package struct BrokenTransfer: Sendable {
    package let failure: AttemptFailure
    /// Of the response whose head had arrived.
    package let httpStatus: Int?
    /// libcurl's code, nil where it had no part.
    package let curlCode: Int?
    /// Nil when nothing of a body came.
    package let broken: BrokenAnswer?

    package init(
        failure: AttemptFailure, httpStatus: Int?, curlCode: Int?, broken: BrokenAnswer?
    ) {
        self.failure = failure
        self.httpStatus = httpStatus
        self.curlCode = curlCode
        self.broken = broken
    }
}

/// What a codec worker has to say of one variant.
package enum VariantEnd: Hashable, Sendable {
    /// It was there, and its file is whole.
    case kept(StoredImage)
    /// Its file is in place and pinned.
    case made(StoredImage)
    case failed(AttemptFailure)

    /// What is stored.
    package var image: StoredImage? {
        switch self {
        case .kept(let image), .made(let image): image
        case .failed: nil
        }
    }
}

/// What the codec workers have made of a body or of a stored original.
package enum ProcessingResult: Sendable {
    /// By position of the variant; `source` is what was decoded.
    case made([VariantEnd], source: SourceImage)
    /// The body is the one whose variants are stored, all of them.
    case unchanged
    /// The stored original is gone, or its bytes are not what they were.
    case originalDamaged
    /// The part that the body continues is gone or damaged.
    case partDamaged
    /// Nothing of it is stored, as the run has asked.
    case cancelled
    case failed(AttemptFailure)
    /// The stored original is whole, and nothing could be made of it: by our limits, or since the
    /// recipes do not fit.
    case underivable(AttemptFailure)
}

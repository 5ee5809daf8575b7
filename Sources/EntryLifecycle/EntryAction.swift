package import PrefetchModel
internal import Scheduling

/// What is to be done for an entry now. The next event says how it went.
package indirect enum EntryAction: Sendable {
    /// Look up what is known of it: ``EntryMachine/lookedUp(_:in:)``.
    case lookUp
    case ask(Inquiry)
    /// Let it wait for a turn at the host that its target is at.
    case queue(QueueStanding)
    /// The same, and its present host is not asked after all.
    case moveOn
    case process(Work)
    /// Keep what came of the body: ``EntryMachine/partSaved(_:in:)``.
    case keepPart(PartialBody, receivedAt: Timestamp)
    case write(EntryChange)
    /// Let no variant name this image any more.
    case forget(StoredImage, then: EntryAction)
    case finish(EntryEnd)
}

/// Where an entry waits among those of its host.
package enum QueueStanding: Hashable, Sendable {
    /// It has had its turn already.
    case next
    case retry(after: Duration)
}

/// What the codec workers have to do.
package enum Work: Sendable {
    /// Decode the body of the answer, and make what is asked for of it; `stored` are the positions of
    /// which a copy is there, of this body or another.
    case body(Known?, stored: Set<Int>, ResourceValidation)
    /// Make what is missing of the stored original; `kept` has by position what is there.
    case original(StoredImage, kept: [StoredImage?])
    /// Forget the part that there may be of another body.
    case refusal

    /// A body that need not be decoded when it comes again, and by position the variants of it that
    /// are stored.
    package struct Known: Hashable, Sendable {
        package let source: ContentDigest
        package let images: [StoredImage?]
    }
}

/// What is new of an entry's resource.
package enum EntryChange: Sendable {
    /// A body was stored: its variants, by position.
    case body(ResourceValidation, source: SourceImage, [VariantChange])
    /// The body stays. Without a validation nobody was asked.
    case resource(Int64, ResourceValidation?, [VariantChange])
}

/// A variant whose row is written.
package struct VariantChange: Hashable, Sendable {
    /// Among those that the entry asks for.
    package let position: Int
    package let image: StoredImage
    /// Whether it is in place already and has to be pinned until the commit; the workers pin what
    /// they make.
    package let isKept: Bool
}

/// How an entry ends.
package enum EntryEnd: Sendable {
    /// It is warm.
    case stored(Outcome, Stored)
    case failed(Failed)
    /// A rule of the user left it out; the reason is of what the image is, nil for what was not asked for.
    case excluded(message: String, reason: FailureReason? = nil)
    case cancelled

    package struct Stored: Sendable {
        /// By position of the variant.
        package var variants: [VariantEnd]
        /// Nil for what has to be validated at every use.
        package var expiresAt: Timestamp?
        /// Empty for nothing to say.
        package var remark = ""
        /// Made with them.
        package var placeholder: Placeholder?

        package static let nothing = Stored(variants: [], expiresAt: nil)
    }

    package struct Failed: Sendable {
        package enum Blame: Hashable, Sendable {
            /// The origin's answer, or its absence.
            case origin
            /// It was asked, and what failed then is ours.
            case ours
            /// It was not asked: its host is given up.
            case hostGivenUp
        }

        package let failure: AttemptFailure
        package let blame: Blame
        /// Of the variants some may have been made.
        package var stored = Stored.nothing
    }
}

extension EntryEnd.Failed {
    /// What the next runs are told of it.
    package enum Memory: Hashable, Sendable {
        case none
        /// It is known, and blocks nothing.
        case known
        /// It is known, and may block.
        case counted
    }

    /// What the next runs are told, given the status of the entry's last response.
    package func memory(httpStatus: Int?) -> Memory {
        switch blame {
        case .origin:
            FailurePolicy.isKnown(of: failure.reason, httpStatus: httpStatus) ? .known : .counted
        // A format that cannot hold the image will not hold it tomorrow; limits may be wider by then.
        case .ours: failure.reason == .unsupportedImage ? .known : .none
        case .hostGivenUp: .none
        }
    }
}

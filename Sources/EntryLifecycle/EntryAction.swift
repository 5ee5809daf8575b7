package import PrefetchModel
internal import Scheduling

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

/// The next step for an entry. The following event reports how it ended.
package indirect enum EntryAction: Sendable {
    /// Look the entry up in the cache: ``EntryMachine/lookedUp(_:in:)``.
    case lookUp
    case ask(EntryRequest)
    /// Let it wait for a turn at its target's host.
    case queue(QueuePlacement)
    /// The same, but its present host gets no request after all.
    case moveOn
    case process(CodecWork)
    /// Store the received part of the body: ``EntryMachine/partSaved(_:in:)``.
    case keepPart(PartialBody, receivedAt: Timestamp)
    case write(ImageChange)
    case forget(StoredImage, then: EntryAction)
    case forgetPart(then: EntryAction)
    case finish(EntryEnd)

    var end: EntryEnd? { if case .finish(let end) = self { end } else { nil } }
}

package enum QueuePlacement: Hashable, Sendable {
    /// In front: it has had its turn already.
    case next
    /// Its place before its turn.
    case place
    case retry(after: Duration)
}

package enum CodecWork: Sendable {
    /// Decode the body of the response and make the requested variants. `stored`: the copies by
    /// position, of this body or another.
    case body(Known?, stored: [StoredImage?], ResourceValidation)
    /// Make the missing variants from the stored original. `kept` has the stored ones, by position.
    case original(StoredImage, kept: [StoredImage?])
    /// Take the files of the seed cache's copy over.
    case seeded(SeededCopy)
    /// Remove the stored part of another body, if any.
    case refusal

    /// A body that is not decoded again when it arrives unchanged, and its stored variants by
    /// position.
    package struct Known: Hashable, Sendable {
        package let source: ContentDigest
        package private(set) var images: [StoredImage?]

        /// Adds variants that were requested after the look-up.
        package mutating func extend(to count: Int) {
            while images.count < count { images.append(nil) }
        }
    }
}

package enum EntryEnd: Sendable {
    case stored(Outcome, Stored)
    case failed(Failed)
    /// A rule of the user excluded it. `reason`: a property of the image; nil when nothing was
    /// requested.
    case excluded(message: String, reason: FailureReason? = nil)
    /// The origin has responded, in a run that stores nothing.
    case requested
    case cancelled

    package struct Stored: Sendable {
        package var variants: [VariantEnd]
        /// Nil for a response that must be validated at every use.
        package var expiresAt: Timestamp?
        package var remark = ""
        package var placeholder: Placeholder?
        /// The fault of the source that loses no pixel.
        package var warning: String?

        package static let nothing = Stored(variants: [], expiresAt: nil)
    }

    package struct Failed: Sendable {
        package enum Blame: Hashable, Sendable {
            /// The origin's response, or its absence.
            case origin
            /// The program or this machine failed after the response.
            case ours
            /// A stage of this run failed, or the disk is full. There may have been no request.
            case local
            /// No request was sent: its host is given up.
            case hostGivenUp

            static func ofRequest(_ failure: Failure) -> Blame {
                failure.reason.isLocal ? .local : .origin
            }
        }

        package let failure: Failure
        package let blame: Blame
        /// Some of the variants may have been made.
        package var stored = Stored.nothing
    }
}

extension EntryEnd.Failed {
    package enum Recording: Hashable, Sendable {
        case none
        /// Recorded, without blacklisting the entry.
        case known
        /// Recorded, and counted towards blacklisting.
        case counted
    }

    /// Returns the record to keep, given the status of the entry's last response; `statuses` are
    /// the user's blacklisting ones, nil for the usual ones.
    package func memory(httpStatus: Int?, blacklisting statuses: StatusSet? = nil) -> Recording {
        switch blame {
        case .origin:
            FailurePolicy.isKnown(
                of: failure.reason, httpStatus: httpStatus, blacklisting: statuses)
                ? .known : .counted
        // A format that cannot hold the image never will; limits may be wider in the next run.
        case .ours: failure.reason == .unsupportedImage ? .known : .none
        case .local, .hostGivenUp: .none
        }
    }
}

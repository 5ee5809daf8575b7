import PrefetchModel

/// Has a body judged while it arrives: as soon as that may save bytes, and again each time it has
/// doubled. All judgements together cost no more than two of the whole body.
///
/// A body is not judged while less than ``TransferProgress/drainedBytes`` remain; with unknown
/// length, not before it has as many: reading them is cheaper than a new connection.
struct BodyInspection {
    /// Nil when no further judgement is needed.
    private(set) var judge: BodyJudge?
    /// The length of the whole body, after content decoding; nil if unknown.
    let totalBytes: Int?
    private(set) var nextLook = 1

    /// Judges the received bytes, if it is time.
    ///
    /// - Precondition: the body has no gap.
    /// - Returns: the reason to end the transfer; nil to continue.
    mutating func refusal(of body: Body) -> Failure? {
        guard let judge, body.count >= nextLook,
            (totalBytes.map { $0 - body.count } ?? body.count) > TransferProgress.drainedBytes
        else { return nil }
        nextLook = 2 * body.count
        switch body.withUnsafeBytes({ judge($0, totalBytes) }) {
        case .undecided:
            return nil
        case .accepted:
            self.judge = nil
            return nil
        case .refused(let refusal):
            return refusal
        }
    }
}

import PrefetchModel

/// Has a body judged while it arrives: as soon as that may save something, and again each time that
/// it has doubled, so that all the looks together cost no more than two at the whole.
///
/// Nobody looks at a body of which little is left or, where its length is not known, little has come:
/// reading that costs less than a new connection.
struct BodyInspection {
    /// Nil when there is nothing to ask any more.
    private var judge: BodyJudge?
    /// Of the whole body, after content decoding; nil where it is not known.
    private let totalBytes: Int?
    private var nextLook = 1

    init(by judge: BodyJudge?, totalBytes: Int?) {
        self.judge = judge
        self.totalBytes = totalBytes
    }

    /// Looks at what has come.
    ///
    /// - Precondition: the body has no gap.
    /// - Returns: why nothing more of it is wanted; nil to go on.
    mutating func refusal(of body: Body) -> BodyRefusal? {
        guard let judge, body.count >= nextLook,
            (totalBytes.map { $0 - body.count } ?? body.count) > ActiveTransfer.drainedBytes
        else { return nil }
        nextLook = 2 * body.count
        switch body.withUnsafeBytes({ judge.judge($0, totalBytes) }) {
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

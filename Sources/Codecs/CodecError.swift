package import PrefetchModel

/// Why an image is not stored. The text says what was found, on one line, without the subject.
package enum CodecError: Error, Hashable, Sendable {
    /// No known signature: a web page, text, nothing at all.
    case notAnImage(String)
    /// An image of a kind that is not decoded.
    case unsupported(String)
    /// A good image, for all that is known, that a rule of the user leaves out; the reason is of an exclusion.
    case leftOut(FailureReason, String)
    /// Over ``CodecLimits/maximumPixels``.
    case tooManyPixels(String)
    /// Over another of ``CodecLimits``.
    case limitExceeded(String)
    /// Damaged. With `isTruncated` the data is good as far as it goes and then ends.
    case corrupt(String, isTruncated: Bool)
    case outOfMemory(String)
    /// Good pixels could not be written: a fault of ours.
    case encodingFailed(String)
    /// By ``Cancellation``; it says nothing of the image.
    case cancelled
}

extension CodecError {
    /// The error of an image whose decoding and encoding take more memory than there will ever be, and the `--memory`
    /// that has room for it. Not `isExact` where more may turn out to be needed.
    package static func tooMuchMemory(
        _ need: Int, of budget: ByteCount, isExact: Bool = true
    ) -> CodecError {
        let enough = isExact ? MemoryShares.text(ofMemoryForPixels: need) : nil
        return .tooManyPixels(
            "its pixels need \(isExact ? "" : "at least ")\(ByteCount(need)), but --memory leaves "
                + "\(budget) for them" + (enough.map { "; --memory \($0) would do" } ?? ""))
    }
}

extension CodecError {
    /// The same of one part of a file, counted from 0. Where its data ends is not where that of the file does.
    func inPart(_ name: String, _ index: Int, of count: Int) -> CodecError {
        guard case .corrupt(let text, _) = self else { return self }
        return .corrupt("\(name) \(index + 1) of \(count): \(text)", isTruncated: false)
    }
}

extension CodecError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notAnImage(let text), .unsupported(let text), .tooManyPixels(let text),
            .limitExceeded(let text), .corrupt(let text, _), .outOfMemory(let text),
            .encodingFailed(let text), .leftOut(_, let text):
            text
        case .cancelled: "cancelled"
        }
    }
}

package import PrefetchModel

/// The reason why an image is not stored. The text is one line without the subject.
package enum CodecError: Error, Hashable, Sendable {
    /// No known signature: a web page, text, or an empty body.
    case notAnImage(String)
    /// An image format or variant that is not decoded.
    case unsupported(String)
    /// An image that a filter of the user excludes; the reason is an exclusion.
    case leftOut(FailureReason, String)
    /// Exceeds ``CodecLimits/maximumPixels``.
    case tooManyPixels(String)
    /// Exceeds another of the ``CodecLimits``.
    case limitExceeded(String)
    /// Damaged. With `isTruncated`, the data is valid up to its early end.
    case corrupt(String, isTruncated: Bool)
    case outOfMemory(String)
    /// Valid pixels could not be encoded: a bug in this program.
    case encodingFailed(String)
    /// The process that decoded it has ended. The text names the signal; its number is 0 for an
    /// exit.
    case crashed(String, signal: Int32)
    /// Stopped by ``Cancellation``; says nothing about the image.
    case cancelled
}

extension CodecError {
    /// Returns the error for an image that needs more memory than `--memory` allows, with the value
    /// that would suffice. Not `isExact` if the actual need may turn out higher.
    static func tooMuchMemory(
        _ need: Int, of budget: ByteCount, beside bodyBytes: Int, isExact: Bool = true
    ) -> CodecError {
        let enough =
            isExact ? MemoryShares.text(ofMemoryForPixels: need, beside: bodyBytes) : nil
        return .tooManyPixels(
            "its pixels need \(isExact ? "" : "at least ")\(ByteCount(need)), but --memory leaves "
                + "\(budget) for them" + (enough.map { "; --memory \($0) would do" } ?? ""))
    }
}

extension CodecError {
    static func broken(_ text: String) -> CodecError { .corrupt(text, isTruncated: false) }

    /// Returns the error for a file that ends before its structure does.
    static func cut(_ text: String) -> CodecError { .corrupt(text, isTruncated: true) }

    static let cutHeader = CodecError.cut("the data ends inside the header")
    /// The error for data that is valid, and ends before the image does.
    static let cutImage = CodecError.cut("the data ends before the image does")

    static func tooLargeAnimation(_ animation: TransformedAnimation) -> CodecError {
        .limitExceeded("the animation would have more than \(ByteCount(animation.mostBytes))")
    }

    /// Adds the part to an error, see ``inPart(_:_:of:)``.
    static func naming(
        _ name: String, _ index: Int, of count: Int, _ body: () throws(CodecError) -> Void
    ) throws(CodecError) {
        do throws(CodecError) {
            try body()
        } catch {
            throw error.inPart(name, index, of: count)
        }
    }

    /// Returns the same error for one part of a file, with `index` from 0. Never truncated: the end
    /// of a part is not the end of the file.
    func inPart(_ name: String, _ index: Int, of count: Int) -> CodecError {
        guard case .corrupt(let text, _) = self else { return self }
        return .broken("\(name) \(index + 1) of \(count): \(text)")
    }
}

extension CodecError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notAnImage(let text), .unsupported(let text), .tooManyPixels(let text),
            .limitExceeded(let text), .corrupt(let text, _), .outOfMemory(let text),
            .encodingFailed(let text), .leftOut(_, let text), .crashed(let text, _):
            text
        case .cancelled: "cancelled"
        }
    }
}

/// A fault of a file, or a part of it that is left out, although the image is stored.
package struct ImageWarning: Hashable, Sendable {
    /// A sentence without a full stop.
    package let text: String
    /// Whether the last bytes of the file are missing. A body of unknown length may then be cut.
    package private(set) var lacksEnd = false

    /// Warnings about PNGs without their end, see ``PNGFile/lacksEnd``.
    package static let missingEndChunk = ImageWarning(
        text: "the end chunk is missing", lacksEnd: true)
    static let damagedEndChunk = ImageWarning(text: "the end chunk has a wrong checksum")
    package static let unendedImageData = ImageWarning(
        text: "the image data has all rows, but not its own end")

    package init(text: String, lacksEnd: Bool = false) {
        self.text = text
        self.lacksEnd = lacksEnd
    }

    /// Joins different warnings of one file; nil for none.
    init?(joining warnings: [ImageWarning]) {
        guard !warnings.isEmpty else { return nil }
        var texts: [String] = []
        for warning in warnings where !texts.contains(warning.text) { texts.append(warning.text) }
        text = texts.joined(separator: "; ")
        lacksEnd = warnings.contains(where: \.lacksEnd)
    }
}

/// The warnings of one source. Like its source, for use by one thread.
final class WarningNote {
    private var warnings: [ImageWarning] = []

    var warning: ImageWarning? { ImageWarning(joining: warnings) }

    func note(_ warning: ImageWarning?) {
        if let warning, !warnings.contains(warning) { warnings.append(warning) }
    }

    /// Notes the parts that `--strip none` leaves out of a file because they break its format:
    /// their names, without control characters, in the order of the file, and the word for one.
    func noteMalformed(_ names: [String], _ part: String) {
        guard let first = names.first else { return }
        let others = names.count > 1 ? " and \(names.count - 1) more" : ""
        note(ImageWarning(text: "left out a malformed \(part): \(first)\(others)"))
    }
}

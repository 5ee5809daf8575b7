/// Which images a run wants; the others are ``Outcome/excluded``. What is not known of an image excludes nothing.
package struct ImageFilter: Hashable, Sendable {
    /// In pixels, upright; 0 for any.
    package var minimumWidth = 0
    package var minimumHeight = 0
    /// The longer side over the shorter one, 1 or more; nil for any.
    package var maximumAspect: Double?
    /// Of the file as it comes.
    package var minimumBytes = ByteCount(0)

    package init() {}

    /// Why one is not among them: a reason of an exclusion, and the details.
    package struct Objection: Hashable, Sendable {
        package let reason: FailureReason
        package let message: String
    }

    /// What there is to object to the size, upright; 0 by 0 where that is not known.
    package func objection(width: Int, height: Int) -> Objection? {
        guard width > 0, height > 0 else { return nil }
        if width < minimumWidth || height < minimumHeight {
            return Objection(
                reason: .belowMinimumSize,
                message:
                    "\(width)×\(height) pixels, --min-size asks for \(minimumWidth)x\(minimumHeight)"
            )
        }
        let (longer, shorter) = (max(width, height), min(width, height))
        if let maximumAspect, Double(longer) > maximumAspect * Double(shorter) {
            return Objection(
                reason: .overMaximumAspect,
                message:
                    "\(width)×\(height) pixels are longer than --max-aspect \(maximumAspect) allows"
            )
        }
        return nil
    }

    /// What there is to object to the length of the file; nil where that is not known.
    package func objection(bytes: Int?) -> Objection? {
        guard let bytes, bytes < minimumBytes.bytes else { return nil }
        return Objection(
            reason: .belowMinimumBytes,
            message: "\(bytes) bytes, --min-bytes asks for \(minimumBytes.bytes)")
    }
}

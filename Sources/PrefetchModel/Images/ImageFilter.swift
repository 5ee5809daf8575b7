/// The user's rules for wanted images; the others are ``Outcome/excluded``. Unknown properties
/// exclude nothing.
package struct ImageFilter: Hashable, Sendable {
    /// In pixels, with the EXIF orientation applied; 0 for any.
    package var minimumWidth = 0
    package var minimumHeight = 0
    /// The longer side over the shorter one, 1 or more; nil for any.
    package var maximumAspect: Double?
    package var minimumBytes = ByteCount(0)

    package init() {}

    /// The reason and details of an exclusion.
    package struct Objection: Hashable, Sendable {
        package let reason: FailureReason
        package let message: String
    }

    /// The objection to an image's size, EXIF orientation applied; 0 by 0 if unknown.
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

    /// The objection to the file's length; nil if unknown.
    package func objection(bytes: Int?) -> Objection? {
        guard let bytes, bytes < minimumBytes.bytes else { return nil }
        return Objection(
            reason: .belowMinimumBytes,
            message: "\(bytes) bytes, --min-bytes asks for \(minimumBytes.bytes)")
    }
}

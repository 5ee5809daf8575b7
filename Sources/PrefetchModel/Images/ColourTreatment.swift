/// The effect of a recipe on the colours of its source.
package enum ColourTreatment: String, Sendable {
    /// Stored as the source declares them.
    case kept
    case converted
    /// The source declares none, or what it declares was stripped without a conversion.
    case assumedSRGB = "assumed-srgb"
}

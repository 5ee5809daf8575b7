internal import Codecs
package import PrefetchModel

/// The formats that this build encodes, which the package's traits decide.
package enum EncodedFormats {
    /// Returns the formats that a recipe asks for and this build does not encode, whatever the
    /// source.
    package static func missing(for recipe: Recipe) -> [EncodedImageFormat] {
        var asked: Set<EncodedImageFormat> = recipe.encoding.format.map { [$0] } ?? []
        // The default list means all formats that are available.
        if recipe.encoding == .auto, recipe.allowedFormats != Recipe.defaultFormats {
            asked = recipe.allowedFormats
        }
        return EncodedImageFormat.allCases.filter { asked.contains($0) && !$0.isMade }
    }
}

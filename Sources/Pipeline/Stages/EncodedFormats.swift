internal import Codecs
package import PrefetchModel

/// What this build encodes, which the traits of its package decide.
package enum EncodedFormats {
    /// The formats that a recipe asks for and that are not made, whatever its source.
    package static func missing(for recipe: Recipe) -> [EncodedImageFormat] {
        var asked = Set([recipe.encoding.format].compactMap(\.self))
        // The default list means as many of it as there are.
        if recipe.encoding == .auto, recipe.allowedFormats != Recipe.defaultFormats {
            asked = recipe.allowedFormats
        }
        return EncodedImageFormat.allCases.filter { asked.contains($0) && !$0.isMade }
    }
}

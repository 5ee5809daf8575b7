internal import Codecs
package import PrefetchModel

/// What this build encodes, which the traits of its package decide.
package enum EncodedFormats {
    /// The formats that a recipe asks for and that are not made, whatever its source.
    package static func missing(for recipe: Recipe) -> [EncodedImageFormat] {
        let asked: Set<EncodedImageFormat>
        switch recipe.encoding {
        case .webp: asked = [.webp]
        case .avif: asked = [.avif]
        // What is picked from by default is as much of it as there is.
        case .auto:
            asked = recipe.allowedFormats == Recipe.defaultFormats ? [] : recipe.allowedFormats
        case .same, .jpeg, .png, .original: asked = []
        }
        return EncodedImageFormat.allCases.filter { asked.contains($0) && !$0.isMade }
    }
}

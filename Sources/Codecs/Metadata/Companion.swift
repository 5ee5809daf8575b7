internal import PrefetchModel

/// A part of a file that is neither picture nor metadata, and that no encoder writes.
enum Companion: CaseIterable {
    /// A signed provenance manifest of C2PA, or another JUMBF. It states digests of the file.
    case manifest
    /// A picture that brightens the other one on displays of high dynamic range.
    case gainMap
    /// The video of a motion photo.
    case video

    /// The warning if a result is without it.
    var loss: ImageWarning {
        switch self {
        case .manifest:
            ImageWarning(
                text: "dropped the signed provenance manifest, which fits only its own file")
        case .gainMap: ImageWarning(text: "dropped the gain map for high dynamic range")
        case .video: ImageWarning(text: "dropped the video of a motion photo")
        }
    }
}

extension EntryPlan {
    /// Whether the result is the file as it is: a signed one, where the recipe keeps metadata and
    /// could keep the pixels.
    func keepsBytes(as format: EncodedFormat, by recipe: Recipe) -> Bool {
        guard isSealed(by: recipe) else { return false }
        switch format {
        case .container: return true
        case .smallest: return header.ownRecipe(for: recipe) != nil
        case .encoded(let encoded):
            let mayBeLarge =
                encoded.encoder?.isLossless == true
                || header.sourceBytes <= recipe.maximumStoredBytes ?? .max
            return mayBeLarge && encoded.rawValue == header.format.rawValue
                && !(header.isAnimated && recipe.animation == .first)
        }
    }

    /// Whether the source's own data is kept only as a whole.
    func isSealed(by recipe: Recipe) -> Bool {
        recipe.stripping == .none && companions.contains(.manifest)
    }

    /// Warns of the parts that the recipe does not strip by name, and that the result lacks.
    func noteLosses(of image: ProcessedImage, by recipe: Recipe) {
        guard case .encoded = image.output else { return }
        for kind in image.leftOut {
            let format = image.format.rawValue
            source.note.note(
                ImageWarning(text: "left out \(kind.rawValue), for which \(format) has no room"))
        }
        // Data that is kept with all metadata is kept with these too.
        guard !(image.isKeptData && recipe.stripping == .none) else { return }
        for companion in Companion.allCases where companions.contains(companion) {
            // A gain map in a container is part of the picture's data.
            if companion == .gainMap, image.isKeptData { continue }
            source.note.note(companion.loss)
        }
    }
}

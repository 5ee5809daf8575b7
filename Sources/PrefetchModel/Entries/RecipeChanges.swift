/// The fields of an entry that change the recipe of its variant `main`, each in place of the run's.
package struct RecipeChanges: Hashable, Sendable {
    package var encoding: Recipe.Encoding?
    /// The JPEG quality, 1…100. As with the flag, it is ignored by formats without one.
    package var quality: Int?
    package var resize: ResizeGeometry?
    /// The treatment of animations; ignored by `original`.
    package var animation: Recipe.Animation?
    /// In place of all steps of the run.
    package var steps: [Transformation]?
    /// In place of the last crop, or as the first step.
    package var crop: CropGeometry?

    package static let none = RecipeChanges()

    package func apply(to recipe: inout Recipe) {
        if let encoding { recipe.encoding = encoding }
        if let quality { recipe.quality = quality }
        if let steps { recipe.replaceSteps(with: steps) }
        if let crop { recipe.replaceCrop(with: crop) }
        if let resize { recipe.replaceSize(with: resize) }
        if let animation { recipe.animation = animation }
    }
}

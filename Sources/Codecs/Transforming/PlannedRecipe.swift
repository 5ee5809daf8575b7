internal import PrefetchModel

/// A recipe, with what its steps come to for one picture.
struct PlannedRecipe {
    let recipe: Recipe
    /// Without steps for ``Recipe/Encoding/original``; the error says why they cannot be carried out.
    let plan: Result<TransformationPlan, CodecError>

    init(_ recipe: Recipe, of header: ImageHeader) {
        self.recipe = recipe
        let planned = recipe.encoding == .original ? recipe.untransformed : recipe
        plan = Result { () throws(CodecError) in try TransformationPlan(planned, of: header) }
    }

    /// Nil where they cannot be carried out, which is said when they were to be.
    var steps: TransformationPlan? {
        if case .success(let plan) = plan { plan } else { nil }
    }

    /// At which the source is decoded.
    var scale: DecodingScale { steps?.scale ?? .full }
}

internal import PrefetchModel

/// A recipe and its transformation plan for one picture.
struct PlannedRecipe {
    let recipe: Recipe
    /// Has no steps for ``Recipe/Encoding/original``; the error explains why the steps are
    /// impossible.
    let plan: Result<TransformationPlan, CodecError>
    /// Nil for a result that is not made frame by frame.
    let animationEncoder: AnimationEncoder?

    init(_ recipe: Recipe, of header: ImageHeader) {
        self.recipe = recipe
        let planned = recipe.encoding == .original ? recipe.untransformed : recipe
        let plan = Result { () throws(CodecError) in try TransformationPlan(planned, of: header) }
        self.plan = plan
        animationEncoder = (try? plan.get()).flatMap {
            AnimationEncoder.chosen(by: recipe, of: header, isTransformed: !$0.isEmpty)
        }
    }

    /// The plan; nil if it is impossible. The error is reported when the steps would be carried
    /// out.
    var steps: TransformationPlan? {
        if case .success(let plan) = plan { plan } else { nil }
    }

    /// The scale at which to decode the source.
    var scale: DecodingScale { steps?.scale ?? .full }
}

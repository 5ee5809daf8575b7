import Codecs
import PrefetchModel

package enum SameRecipes {
    /// Whether two recipes make the same bytes of a source format; see
    /// ``PrefetchModel/Recipe/effectiveText(of:under:)``.
    package static func areEqual(_ one: String, _ other: String, ofSource format: String) -> Bool {
        let rule = CodecLibraries.sameRules[format]
        return Recipe.effectiveText(of: one, under: rule)
            == Recipe.effectiveText(of: other, under: rule)
    }
}

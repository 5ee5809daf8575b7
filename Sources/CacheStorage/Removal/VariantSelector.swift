package import PrefetchModel
internal import SQLite

package enum VariantSelector: Hashable, Sendable {
    /// Variants of this name, in use or superseded.
    case name(String)
    case recipe(String)
    /// Superseded variants of images that still have a current one.
    case superseded
    /// Variants not used since a time, by a run or by `get`: either superseded before it, or no run
    /// has used their name since, nor another name with that recipe.
    case unused(since: Timestamp)

    /// An SQL condition over `variant`; `parameter` is the placeholder of ``parameters``.
    func condition(parameter: String) -> String {
        switch self {
        case .name: "name = (SELECT id FROM variant_name WHERE variant_name.name = \(parameter))"
        case .recipe: "recipe = \(parameter)"
        case .superseded:
            """
            superseded <> 0 AND EXISTS (SELECT 1 FROM variant AS other
                WHERE other.resource_id = variant.resource_id AND other.superseded = 0)
            """
        case .unused:
            """
            last_access_at < \(parameter) AND (superseded <> 0
                OR name IN (SELECT id FROM variant_name WHERE used_at < \(parameter))
                    AND recipe NOT IN (
                        SELECT recipe FROM variant_name WHERE used_at >= \(parameter)))
            """
        }
    }

    /// The value of the condition's parameter, if it has one.
    var parameters: [Statement.Value] {
        switch self {
        case .name(let text), .recipe(let text): [.text(text)]
        case .superseded: []
        case .unused(let time): [.init(time)]
        }
    }

    /// The selected variants of a resource, or all; without an image where a row is damaged.
    static func variants(
        _ selector: VariantSelector?, of resource: Int64, in database: Connection
    ) throws -> [(image: StoredImage?, recipe: String)] {
        try database.prepare(
            """
            SELECT sha256, format, width, height, bytes, recipe FROM variant
            WHERE resource_id = ?1\(selector.map { " AND \($0.condition(parameter: "?2"))" } ?? "")
            """
        ).all([.integer(resource)] + (selector?.parameters ?? [])) {
            (image: try $0.storedImage(from: 0), recipe: try $0.text(5))
        }
    }
}

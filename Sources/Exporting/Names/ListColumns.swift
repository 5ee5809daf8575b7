import PrefetchModel
import Reporting

/// The other columns of a list's entry, read from their JSON object.
struct ListColumns {
    let columns: [JSONMember]

    /// Takes the object that the list's reader has made; nil for no columns.
    init(_ object: [UInt8]?) {
        guard let columns = object.map(JSONMember.members) ?? [] else {
            preconditionFailure("the columns are no JSON object")
        }
        self.columns = columns
    }

    init?(checking object: [UInt8]) {
        guard let columns = JSONMember.members(of: object) else { return nil }
        self.columns = columns
    }

    /// The text of a column; nil without it, and for null.
    subscript(name: String) -> String? {
        columns.first { $0.name == name && !$0.isNull }?.text
    }
}

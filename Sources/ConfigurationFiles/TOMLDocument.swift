internal import CTOML

/// The nodes of a TOML file.
struct TOMLDocument {
    /// A table, an array or a value, with its key.
    struct Node {
        let kind: ctoml_kind
        let line: Int
        /// Empty for an element of an array.
        let key: String
        /// The string, the number in decimal notation, or `true` or `false`.
        let text: String
        /// The indices of the members or elements.
        fileprivate(set) var children: [Int] = []
    }

    /// The first error of syntax; such a file has no nodes.
    private(set) var mistake: (line: Int, message: String)?
    private var nodes: [Node] = []
    private var roots: [Int] = []

    /// Parses a whole file.
    init(_ bytes: [UInt8]) {
        let document = bytes.withUnsafeBytes {
            ctoml_parse($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count)
        }
        defer { ctoml_free(document) }
        func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
            String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
        }
        let parsed = document.pointee
        guard parsed.error_line == 0 else {
            let message = text(parsed.error, parsed.error_count)
            mistake = (Int(parsed.error_line), "column \(parsed.error_column): \(message)")
            return
        }
        let found = UnsafeBufferPointer(start: parsed.nodes, count: parsed.count)
        nodes.reserveCapacity(parsed.count)
        for (index, node) in found.enumerated() {
            nodes.append(
                Node(
                    kind: node.kind, line: Int(node.line),
                    key: text(node.key, node.key_count), text: text(node.text, node.text_count)))
            if node.parent < 0 {
                roots.append(index)
            } else {
                nodes[Int(node.parent)].children.append(index)
            }
        }
    }

    /// The members of the outermost table, in the order of their lines.
    var members: [Node] { inOrder(roots) }

    /// The members of a table, in the order of their lines, or the elements of an array.
    func members(of node: Node) -> [Node] { inOrder(node.children) }

    private func inOrder(_ indices: [Int]) -> [Node] {
        indices.map { nodes[$0] }.sorted { $0.line < $1.line }
    }
}

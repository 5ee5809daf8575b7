internal import CXML

/// The elements of a service's XML document that hold text.
struct ObjectElements {
    let all: [(parent: String, name: String, text: String)]
    let isWellFormed: Bool

    init(_ bytes: [UInt8]) {
        let box = ElementList()
        isWellFormed = bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return withExtendedLifetime(box) {
                celements_read(
                    start.assumingMemoryBound(to: CChar.self), bytes.count, noteElement,
                    Unmanaged.passUnretained(box).toOpaque())
            }
        }
        all = box.elements
    }

    /// The text of the first element with this name.
    subscript(name: String) -> String? { all.first { $0.name == name }?.text }

    /// The objects of a listing: their keys and sizes.
    var objects: [(key: String, size: Int)] {
        var objects: [(key: String, size: Int)] = []
        var key: String?
        for (parent, name, text) in all where parent == "Contents" {
            switch name {
            case "Key": key = text
            case "Size":
                if let found = key, let size = Int(text) { objects.append((found, size)) }
                key = nil
            default: break
            }
        }
        return objects
    }
}

private final class ElementList {
    var elements: [(parent: String, name: String, text: String)] = []
}

private func noteElement(
    _ parent: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ text: UnsafePointer<CChar>,
    _ count: Int, _ context: UnsafeMutableRawPointer
) {
    let text = String(decoding: UnsafeRawBufferPointer(start: text, count: count), as: UTF8.self)
    Unmanaged<ElementList>.fromOpaque(context).takeUnretainedValue().elements.append(
        (String(cString: parent), String(cString: name), text))
}

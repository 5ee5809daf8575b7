import ArgumentParser

/// Width and height in pixels, `640x480`; each is 0 or more.
struct DimensionsArgument: ExpressibleByArgument {
    let width: Int
    let height: Int

    init?(argument: String) {
        let parts = argument.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count == 2, let width = DimensionsArgument.number(parts[0]),
            let height = DimensionsArgument.number(parts[1])
        else { return nil }
        self.width = width
        self.height = height
    }

    private static func number(_ text: Substring) -> Int? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }
}

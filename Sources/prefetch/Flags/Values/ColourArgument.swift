import ArgumentParser
import PrefetchModel

/// A colour; see `RGBColor.init(text:)`.
struct ColourArgument: ExpressibleByArgument {
    let colour: RGBColor

    init(_ colour: RGBColor) {
        self.colour = colour
    }

    init?(argument: String) {
        guard let colour = RGBColor(text: argument) else { return nil }
        self.colour = colour
    }

    var defaultValueDescription: String { colour == .white ? "white" : "#\(colour)" }
}

import ArgumentParser

/// The value of a flag that is `auto` or something else.
struct OrAuto<Wrapped: ExpressibleByArgument & Sendable>: ExpressibleByArgument {
    /// Nil for `auto`.
    let value: Wrapped?

    init(_ value: Wrapped?) {
        self.value = value
    }

    init?(argument: String) {
        guard argument != "auto" else {
            value = nil
            return
        }
        guard let argument = Wrapped(argument: argument) else { return nil }
        value = argument
    }

    var defaultValueDescription: String { value?.defaultValueDescription ?? "auto" }
}

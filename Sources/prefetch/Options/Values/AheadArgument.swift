import ArgumentParser

/// The value of `--ahead`: `auto` or a duration.
struct AheadArgument: ExpressibleByArgument {
    /// Nil for `auto`.
    let duration: Duration?

    init(_ duration: Duration?) {
        self.duration = duration
    }

    init?(argument: String) {
        guard argument != "auto" else {
            duration = nil
            return
        }
        guard let argument = DurationArgument(argument: argument) else { return nil }
        duration = argument.duration
    }

    var defaultValueDescription: String {
        duration.map { DurationArgument($0).defaultValueDescription } ?? "auto"
    }
}

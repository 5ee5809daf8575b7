import ArgumentParser
import PrefetchModel

/// A duration; see `Duration.init(quantity:)`.
struct DurationArgument: ExpressibleByArgument {
    let duration: Duration

    init(_ duration: Duration) {
        self.duration = duration
    }

    init?(argument: String) {
        guard let duration = Duration(quantity: argument) else { return nil }
        self.duration = duration
    }

    var defaultValueDescription: String { duration.quantityDescription }
}

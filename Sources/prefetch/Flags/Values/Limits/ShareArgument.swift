import ArgumentParser
import PrefetchModel

/// A percentage above 0 and up to 100.
struct ShareArgument: ExpressibleByArgument {
    let share: Share

    init(_ share: Share) {
        self.share = share
    }

    init?(argument: String) {
        guard let share = Share(percentage: argument) else { return nil }
        self.share = share
    }

    var defaultValueDescription: String { share.description }
}

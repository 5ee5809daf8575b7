import ArgumentParser
import PrefetchModel

/// A size; see `ByteCount.init(quantity:)`.
struct SizeArgument: ExpressibleByArgument {
    let size: ByteCount

    init(_ size: ByteCount) {
        self.size = size
    }

    init?(argument: String) {
        guard let size = ByteCount(quantity: argument) else { return nil }
        self.size = size
    }

    var defaultValueDescription: String { size.quantityDescription }
}

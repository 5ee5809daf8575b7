import ArgumentParser
import PrefetchModel

extension StartOrder: ExpressibleByArgument {
    /// Takes `fifo`, `lifo`, `random`, or `random=SEED` with an integer.
    package init?(argument: String) {
        switch argument {
        case "fifo": self = .fifo
        case "lifo": self = .lifo
        // Short enough to be typed again.
        case "random": self = .random(seed: UInt64.random(in: 1..<1_000_000_000))
        default:
            guard argument.hasPrefix("random="), let seed = UInt64(argument.dropFirst(7)) else {
                return nil
            }
            self = .random(seed: seed)
        }
    }

    package static var allValueStrings: [String] { ["fifo", "lifo", "random", "random=SEED"] }
    static var defaultCompletionKind: CompletionKind { .list(["fifo", "lifo", "random"]) }

    package var defaultValueDescription: String {
        switch self {
        case .fifo: "fifo"
        case .lifo: "lifo"
        case .random(let seed): "random=\(seed)"
        }
    }
}

extension IgnoredQuery: ExpressibleByArgument {
    package init?(argument: String) {
        self.init(argument)
    }
}

import ArgumentParser
import CacheStorage
import PrefetchModel

/// The reaction to a cache that another run holds: `fail`, `skip`, `wait` or `wait=DURATION`.
enum LockArgument: ExpressibleByArgument, Equatable {
    case fail
    case skip
    case wait(Duration?)

    init?(argument: String) {
        switch argument {
        case "fail": self = .fail
        case "skip": self = .skip
        case "wait": self = .wait(nil)
        default:
            guard argument.hasPrefix("wait="),
                let limit = Duration(quantity: String(argument.dropFirst(5)))
            else { return nil }
            self = .wait(limit)
        }
    }

    var defaultValueDescription: String {
        switch self {
        case .fail: "fail"
        case .skip: "skip"
        case .wait(nil): "wait"
        case .wait(let limit?): "wait=\(limit.quantityDescription)"
        }
    }
}

extension LockArgument {
    /// Returns the same, waiting at most for `time`; nil for any time.
    func limited(to time: Duration?) -> LockArgument {
        guard case .wait(let limit) = self, let time else { return self }
        return .wait(min(limit ?? time, max(.zero, time)))
    }

    /// The time to wait for the lock.
    var waiting: OpenCache.Waiting {
        if case .wait(let limit) = self { .upTo(limit) } else { .none }
    }
}

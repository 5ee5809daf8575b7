import ArgumentParser
import Pipeline

/// A number of failures, `10`, or a percentage of the entries, `5%`.
struct ToleranceArgument: ExpressibleByArgument {
    let tolerance: FailureTolerance

    init?(argument: String) {
        if argument.hasSuffix("%") {
            guard let percent = Double(argument.dropLast()), (0...100).contains(percent) else {
                return nil
            }
            tolerance = .percent(percent)
        } else {
            guard let count = Int(argument), count >= 0 else { return nil }
            tolerance = .count(count)
        }
    }

    var defaultValueDescription: String {
        switch tolerance {
        case .count(let count): "\(count)"
        case .percent(let percent): "\(percent)%"
        }
    }

    init(_ tolerance: FailureTolerance) {
        self.tolerance = tolerance
    }
}

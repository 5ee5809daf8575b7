import ArgumentParser

/// When to show something: `auto` means on a terminal.
enum Showing: String, ExpressibleByArgument, CaseIterable {
    case auto, always, never

    func isOn(automatically: Bool) -> Bool {
        switch self {
        case .auto: automatically
        case .always: true
        case .never: false
        }
    }
}

/// Whether a run writes for the CI system that runs it.
enum CIChoice: String, ExpressibleByArgument, CaseIterable {
    case auto, none
}

internal import CSandbox
import Glibc

/// A restriction of a process that decodes images.
package enum Wall: Int, CaseIterable, Sendable {
    case noNewPrivileges
    case notDumpable
    case landlock
    case limits
    case seccomp

    /// As messages name it.
    package var name: String {
        switch self {
        case .noNewPrivileges: "no-new-privileges"
        case .notDumpable: "not-dumpable"
        case .landlock: "landlock"
        case .limits: "rlimits"
        case .seccomp: "seccomp"
        }
    }
}

/// The value of `--sandbox`.
package enum SandboxMode: String, CaseIterable, Sendable {
    /// Workers behind all walls that hold here; the summary names the others.
    case auto
    /// The same, but the command fails where a wall does not hold.
    case require
    /// No workers: images are decoded in this process.
    case off
}

/// The walls around the decoders of a command.
package enum SandboxState: Hashable, Sendable {
    case off
    /// Nothing was decoded.
    case unused
    /// Workers, with the `errno` of each wall that does not hold.
    case workers(missing: [Wall: Int32])
    /// Images are decoded in this process, for this reason.
    case none(String)

    /// Nil for nothing that was decoded.
    package var text: String? {
        switch self {
        case .off: "off"
        case .unused: nil
        case .workers(let missing) where missing.isEmpty: "on"
        case .workers(let missing): "on, without \(SandboxState.text(of: missing))"
        case .none(let reason): "none: \(reason)"
        }
    }

    /// Whether a wall is missing that the mode includes.
    package var isLess: Bool {
        switch self {
        case .off, .unused: false
        case .workers(let missing): !missing.isEmpty
        case .none: true
        }
    }

    package static func text(of missing: [Wall: Int32]) -> String {
        missing.sorted { $0.key.rawValue < $1.key.rawValue }.map { wall, code in
            "\(wall.name) (\(String(cString: strerror(code))))"
        }.joined(separator: ", ")
    }
}

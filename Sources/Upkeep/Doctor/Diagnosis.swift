package import CacheStorage

/// The result of one check of the cache, the program or the network, for `doctor`.
package struct Diagnosis: Hashable, Sendable {
    /// The checks, in this order; the JSON has the same names.
    package enum Check: String, CaseIterable, Sendable {
        case directory, owner, modes
        case fileSystem = "file-system"
        case space, database, log, lock, runs, leftovers, hosts, failures
        case openFiles = "open-files"
        case libraries, requests, origin, clock
    }

    package enum DiagnosisState: String, Sendable {
        case ok, wrong
        /// The check could not be made.
        case unknown
    }

    package let check: Check
    package let state: DiagnosisState
    package let message: String
    /// A way to fix it; nil without a problem, or when none is known.
    package let remedy: String?

    package static func ok(_ check: Check, _ message: String) -> Diagnosis {
        Diagnosis(check: check, state: .ok, message: message, remedy: nil)
    }

    package static func wrong(_ check: Check, _ message: String, remedy: String?) -> Diagnosis {
        Diagnosis(check: check, state: .wrong, message: message, remedy: remedy)
    }

    package static func unknown(
        _ check: Check, _ message: String, remedy: String? = nil
    ) -> Diagnosis {
        Diagnosis(check: check, state: .unknown, message: message, remedy: remedy)
    }
}

extension Diagnosis {
    /// Takes an error as a problem where it says so, otherwise as unknown.
    package init(_ check: Check, _ error: StorageError) {
        self =
            switch error.code {
            case .missing:
                .wrong(check, error.message, remedy: error.hint ?? "`prefetch run` fills it")
            case .refused:
                .wrong(
                    check, error.message,
                    remedy: error.hint ?? "name another directory with --cache-dir")
            case .database where error.isDamage:
                .wrong(check, "is damaged: \(error.message)", remedy: error.hint)
            case .system, .database:
                .unknown(check, "\(error.operation): \(error.message)", remedy: error.hint)
            }
    }
}

extension [Diagnosis] {
    /// 0 without problems, 1 with a problem, 2 if only some check could not be made.
    package var exitStatus: Int32 {
        if contains(where: { $0.state == .wrong }) { return 1 }
        return contains { $0.state == .unknown } ? 2 : 0
    }
}

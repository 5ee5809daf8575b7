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

    private init(_ check: Check, _ state: DiagnosisState, _ message: String, _ remedy: String?) {
        self.check = check
        self.state = state
        self.message = message
        self.remedy = remedy
    }

    package static func ok(_ check: Check, _ message: String) -> Diagnosis {
        Diagnosis(check, .ok, message, nil)
    }

    package static func wrong(_ check: Check, _ message: String, remedy: String?) -> Diagnosis {
        Diagnosis(check, .wrong, message, remedy)
    }

    package static func unknown(
        _ check: Check, _ message: String, remedy: String? = nil
    ) -> Diagnosis {
        Diagnosis(check, .unknown, message, remedy)
    }

    /// Takes an error as a problem where it says so, otherwise as unknown.
    package init(_ check: Check, _ error: StorageError) {
        switch error.code {
        case .missing:
            self.init(check, .wrong, error.message, error.hint ?? "`prefetch run` fills it")
        case .refused:
            self.init(
                check, .wrong, error.message,
                error.hint ?? "name another directory with --cache-dir")
        case .database where error.isDamage:
            self.init(check, .wrong, "is damaged: \(error.message)", error.hint)
        case .system, .database:
            self.init(check, .unknown, "\(error.operation): \(error.message)", error.hint)
        }
    }
}

extension [Diagnosis] {
    /// 0 without problems, 1 with a problem, 2 without problems but with a check that could not be
    /// made.
    package var exitStatus: Int32 {
        if contains(where: { $0.state == .wrong }) { return 1 }
        return contains { $0.state == .unknown } ? 2 : 0
    }
}

import ArgumentParser
import CacheStorage
import PrefetchModel

/// Flags of `failed list` and `failed clear`.
struct FailureFilter: ParsableArguments {
    @Option(help: "Only failures with this reason.")
    var reason: FailureReason?

    @OptionGroup var hosts: HostFilter

    var includesAll: Bool { reason == nil && !hosts.isGiven }

    func includes(_ record: FailureRecord) -> Bool {
        (reason == nil || record.reason == reason) && hosts.includes(origin: record.host)
    }
}

import CacheStorage
import PrefetchModel
import Scheduling

/// What has been looked up of the failures of earlier runs. Their rows hold what they held before this
/// run until it notes the same entry, or ends.
struct KnownFailures {
    /// Whether there was any failure when the first one of this run came.
    fileprivate var areAny: Bool?
    /// Hosts that were looked up, and what was known of them.
    fileprivate var hosts: [String: HostState?] = [:]

    /// Given-up hosts come by turns, and a list may have a million of them.
    fileprivate static let mostHosts = 1024
}

extension RunCoordinator {
    /// Whether an earlier run left the same failure: of this URL, with this reason and status.
    ///
    /// To be asked before the new failure is handed to the writer. Takes one search by primary key.
    func isKnown(_ failure: FailureRecord) -> Bool {
        do throws(StorageError) {
            let reader = try coordinatorReader()
            if knownFailures.areAny == nil { knownFailures.areAny = try reader.hasFailures() }
            guard knownFailures.areAny == true,
                let former = try reader.failures(ofKeys: [failure.key])[0]
            else { return false }
            return former.url == failure.url && former.reason == failure.reason
                && former.httpStatus == failure.httpStatus
        } catch {
            fail(FatalError(error))
            return false
        }
    }

    /// Whether an earlier run had the same trouble with a host that this one gives up: its entries
    /// that were not asked for have no rows of their own.
    func wasGivenUpBefore(_ host: String, _ cause: HostPacing.Surrender) -> Bool {
        guard let state = hostState(of: host) else { return false }
        return switch cause {
        case .unreachable: state.failuresInARow > 0
        case .overloaded: state.concurrency != nil
        case .coolingDown: state.coolingUntil != nil
        }
    }

    private func hostState(of host: String) -> HostState? {
        if let known = knownFailures.hosts[host] { return known }
        guard fatal == nil else { return nil }
        do throws(StorageError) {
            let state = try coordinatorReader().hostState(of: host)
            if knownFailures.hosts.count >= KnownFailures.mostHosts {
                knownFailures.hosts.removeAll(keepingCapacity: true)
            }
            knownFailures.hosts[host] = .some(state)
            return state
        } catch {
            fail(FatalError(error))
            return nil
        }
    }
}

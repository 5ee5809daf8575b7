package import CacheStorage
import HTTPSemantics
package import PrefetchModel

extension RunConfiguration {
    /// Sets an automatic ``LifetimeRules/ahead`` from the history of these manifests in the cache;
    /// it stays nil without a regular one.
    ///
    /// Offline runs can refresh nothing, and a run that chooses its images by another rule needs
    /// none. A damaged history is none here: the run itself finds the damage, and has it repaired.
    package mutating func setAhead(by cache: CacheCatalog, at now: Timestamp) {
        guard lifetimes.ahead == nil, !lifetimes.isOffline, lifetimes.refresh == .stale,
            !manifests.isEmpty,
            let starts = try? cache.starts(
                manifests: manifests, limit: RunInterval.consideredStarts - 1)
        else { return }
        lifetimes.ahead = RunInterval.expected(from: [now] + starts)
    }
}

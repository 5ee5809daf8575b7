package import Hashing
package import PrefetchModel

/// What a cache need not keep: whatever any of these rules picks.
package struct PruneRules: Sendable {
    /// What the content files may take on the disk.
    package var maximumSize: ByteCount?
    /// Content files that there may be.
    package var maximumFiles: Int?
    /// Down to which share of a bound that is exceeded images go: 0…1.
    package var lowWater = 0.9
    /// Images that no run has listed for so long, counted back from the last run that listed any.
    package var unlistedFor: Duration?
    /// Images whose keys are not among these; nil picks none.
    package var wanted: Set<KeyFingerprint>?
    /// Images that have been stale for so long.
    package var expiredFor: Duration?
    /// Images whose URLs are blacklisted since they answer 404 or 410.
    package var isGone = false
    /// Variants that no run has used for so long, counted back from the last run that used any.
    package var variantsUnusedFor: Duration?
    package var variant: VariantSelector?
    /// Images of hosts, as the cache stores them: scheme, host and port.
    package var isOfHost: (@Sendable (String) -> Bool)?
    /// Failures, hosts, runs and parts of bodies that are so old.
    package var history: Duration?

    package init() {}

    /// Whether nothing is picked.
    package var isEmpty: Bool {
        !picksImages && maximumSize == nil && maximumFiles == nil && variantsUnusedFor == nil
            && variant == nil && history == nil
    }

    /// Whether any rule but the bounds picks whole images.
    var picksImages: Bool {
        unlistedFor != nil || wanted != nil || expiredFor != nil || isGone || isOfHost != nil
    }

    /// Whether an image goes by a rule that is not a bound.
    func pick(
        _ image: PruneScan.Image, _ listed: LastListed?, gone: Set<Int64>, at now: Timestamp
    ) -> Bool {
        if let isOfHost, isOfHost(image.host) { return true }
        if let wanted, let key = image.key, !wanted.contains(key) { return true }
        if let expiredFor {
            // What has to be validated at every use is stale from then on.
            let since = max(image.expiresAt, image.validatedAt)
            if now.timeSince(since) > expiredFor { return true }
        }
        if let unlistedFor, let listed {
            // Runs validate what they list. Of what no set names nothing is known before the first one.
            let known = listed.time(of: image.id) ?? listed.begin ?? now
            let last = min(now, listed.latest ?? now)
            if last.timeSince(max(known, image.validatedAt)) > unlistedFor { return true }
        }
        return gone.contains(image.id)
    }
}

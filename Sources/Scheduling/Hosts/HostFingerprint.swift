/// A 64-bit hash that stands for the name of a host, since a list may have a million hosts.
///
/// The hash has a secret of the process, so no list can make two hosts collide on purpose. Among a
/// million hosts the chance of any collision is 1 in 30 million; the two would share their limits.
struct HostFingerprint: Hashable, Sendable {
    let bits: UInt64

    init(_ name: String) {
        var hasher = Hasher()
        hasher.combine(name)
        bits = UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

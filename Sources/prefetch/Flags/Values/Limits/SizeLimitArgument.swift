import ArgumentParser
import CacheStorage
import PrefetchModel

/// The size limit of a whole cache, as the rule ``PruneRule/maxSize`` reads it. Below 1 MiB a unit
/// is required.
struct SizeLimitArgument: ExpressibleByArgument {
    let size: ByteCount

    init?(argument: String) {
        guard let setting = PruneRule.maxSize.setting(argument) else { return nil }
        size = ByteCount(Int(setting.value))
    }
}

import Glibc
import PrefetchModel
// Compiler 6.3 attributes the fields of `timeval` to this module or to Glibc, depending on the
// order of the files.
import SwiftOverlayShims

/// The value of an environment variable; nil if it is unset or empty.
func environment(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
}

enum WallClock {
    @Sendable static func now() -> Timestamp {
        var time = timeval()
        gettimeofday(&time, nil)
        return Timestamp(
            milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_usec) / 1000)
    }
}

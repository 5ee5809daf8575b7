import Glibc
import PrefetchModel
// Compiler 6.3 attributes the fields of `timeval` to this module or to Glibc, depending on the
// order of the files.
import SwiftOverlayShims

enum WallClock {
    @Sendable static func now() -> Timestamp {
        var time = timeval()
        gettimeofday(&time, nil)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_usec) / 1000)
    }
}

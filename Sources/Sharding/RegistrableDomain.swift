internal import CPSL
import Glibc
package import PrefetchModel

/// Registrable domains by the public suffix list that is built into libpsl: `example.co.uk` for
/// `img.example.co.uk`.
package enum RegistrableDomain {
    /// Loads the library for a flag, which is the subject of the error.
    package static func load(for flag: String = "") throws(UserError) {
        guard let reason = cpsl_load() else { return }
        throw UserError(
            .failed, flag, "cannot load libpsl: \(String(cString: reason))",
            hint: "install libpsl (Debian's package is libpsl5)")
    }

    /// Returns the start of the registrable domain in a host in normal form: in lower case, as
    /// A-labels. 0 without one, which means the whole host: IP addresses, `localhost`,
    /// and public suffixes.
    ///
    /// - Precondition: ``load(for:)`` has succeeded.
    package static func start(in host: UnsafeRawBufferPointer) -> Int {
        // The parser of URLs writes every numeric host as a dotted quad or in brackets.
        guard let first = host.first, let last = host.last, first != UInt8(ascii: "["),
            !(48...57).contains(last) || host.contains(where: { $0 > 57 })
        else { return 0 }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: host.count + 1) { text in
            guard let start = text.baseAddress, let bytes = host.baseAddress else { return 0 }
            memcpy(start, bytes, host.count)
            start[host.count] = 0
            guard let domain = cpsl_registrable_domain(start) else { return 0 }
            return UnsafePointer(domain) - UnsafePointer(start)
        }
    }
}

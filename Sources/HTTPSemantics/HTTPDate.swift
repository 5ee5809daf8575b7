internal import CLinux
import Glibc
package import PrefetchModel

/// Reads an HTTP date in its three forms: IMF-fixdate, RFC 850 and asctime (RFC 9110 §5.6.7).
package enum HTTPDate {
    /// The instant of the text, or nil when it is in none of the forms.
    ///
    /// Uses the C library's `strptime`; the process never leaves the C locale, in which the names
    /// of days and months are the English ones that the standard asks for.
    package static func parse(_ text: some StringProtocol) -> Timestamp? {
        let formats = [
            "%a, %d %b %Y %H:%M:%S GMT", "%a, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y",
        ]
        // What strptime returns points into the text.
        return String(text).withCString { text in
            for format in formats {
                var fields = tm()
                guard let rest = strptime(text, format, &fields), rest.pointee == 0 else {
                    continue
                }
                return Timestamp(seconds: Int64(timegm(&fields)))
            }
            return nil
        }
    }
}

import Glibc

/// A locale with UTF-8, for the calling thread only.
///
/// libidn2 reads international host names in the locale's encoding, and the process may run in the
/// C locale, as under cron.
package final class InternationalLocale {
    private let locale: locale_t?

    package init() {
        // Part of every glibc from Debian 12 on; without it international names are refused.
        locale = newlocale(1 << LC_CTYPE, "C.UTF-8", nil)
    }

    deinit {
        if let locale { freelocale(locale) }
    }

    package func run<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let locale else { return try body() }
        let previous = uselocale(locale)
        defer { uselocale(previous) }
        return try body()
    }
}

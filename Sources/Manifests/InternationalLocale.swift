import Glibc
import PrefetchModel

/// A locale whose character set is UTF-8, put in force for the calling thread only.
final class InternationalLocale {
    private let locale: locale_t?

    init() {
        // Part of every glibc from Debian 12 on; without it international names are refused.
        locale = newlocale(1 << LC_CTYPE, "C.UTF-8", nil)
    }

    deinit {
        if let locale { freelocale(locale) }
    }

    func run<Result>(
        _ body: () throws(EntryBatch.Problem) -> Result
    ) throws(EntryBatch.Problem) -> Result {
        guard let locale else { return try body() }
        let previous = uselocale(locale)
        defer { uselocale(previous) }
        return try body()
    }
}

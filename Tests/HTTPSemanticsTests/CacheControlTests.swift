import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct CacheControlTests {
    @Test(
        arguments: [
            ("max-age=60", 60), ("MAX-AGE=60", 60), ("max-age=0", 0), ("max-age=0060", 60),
            ("max-age=\"60\"", 60), ("max-age=\"\\6\\0\"", 60), ("public,max-age=60", 60),
            (" \t,, max-age=60 \t,", 60),
            // Both sides of 2³¹, and far beyond (RFC 9111 §1.2.2)
            ("max-age=2147483647", 2_147_483_647), ("max-age=2147483648", 2_147_483_648),
            ("max-age=2147483649", 2_147_483_648),
            ("max-age=9223372036854775807", 2_147_483_648),
            ("max-age=9223372036854775808", 2_147_483_648),
            ("max-age=99999999999999999999999999", 2_147_483_648),
            // Duplicates: the least, in any order (§4.2.1)
            ("max-age=1800, max-age=1", 1), ("max-age=1, max-age=1800", 1),
            // Commas and directives within quoted strings
            ("private=\"a, max-age=5\", max-age=60", 60),
            ("extension=\"max-age=3600\", max-age=1", 1), ("max-age=1, extension=\"max-age=0\"", 1),
            ("x=\"\\\", max-age=5\", max-age=60", 60),
            // Stray quotation marks hide nothing
            ("x=\"a, max-age=60", 60), ("x\"a, max-age=60, b\"", 60), ("\", max-age=60", 60),
            ("x=\"a\\\", max-age=60", 60), ("x= \"a, max-age=60, b\"", 60),
        ] as [(String, Int)])
    func readsMaxAge(text: String, seconds: Int) {
        let control = CacheControl(text: text)
        #expect(control.maxAge == .seconds(seconds))
        #expect(!control.hasInvalidMaxAge)
    }

    @Test(arguments: [
        "max-age", "max-age=", "max-age=x", "max-age=-1", "max-age=+1", "max-age=3600.5",
        "max-age=3600a", "max-age=a3600", "max-age='3600'", "max-age= 3600", "max-age =3600",
        "max-age=36 00", "max-age=\"3600", "max-age=\"\"", "max-age=\" 60\"", "max-age=60;public",
        "max-age=\"60\"x", "max-age=٦٠", "max-age=0x10", "max-age 60", "max-age:60",
    ])
    func recognisesAnInvalidMaxAge(text: String) {
        #expect(CacheControl(text: text).hasInvalidMaxAge)
        // Also beside a valid one (RFC 9111 §4.2.1).
        #expect(CacheControl(text: "max-age=5, \(text)").hasInvalidMaxAge)
        #expect(CacheControl(text: "\(text), max-age=5").hasInvalidMaxAge)
    }

    @Test(arguments: [
        "s-maxage=60", "proxy-revalidate", "private", "public", "max-agee=60", "xmax-age=60", "",
        "=60", ",", "max_age=60", "no-transform", "x-no-store", "no-stored",
    ])
    func ignoresDirectivesForSharedCaches(text: String) {
        #expect(CacheControl(text: text) == CacheControl(text: nil))
    }

    @Test(arguments: [
        "no-store", "No-Store", "max-age=60, no-store", "no-store=x", "no-store=\"a\"",
        "no-store;x",
        "x=\"a, no-store", "a b, no-store",
    ])
    func recognisesNoStore(text: String) {
        #expect(CacheControl(text: text).forbidsStoring)
    }

    /// RFC 9111 §5.2.2.3.
    @Test(arguments: [
        "no-store, must-understand", "Must-Understand, max-age=60, no-store",
        "must-understand=1, no-store",
    ])
    func mustUnderstandPermitsStoring(text: String) {
        #expect(!CacheControl(text: text).forbidsStoring)
        #expect(CacheControl(text: text + "d").forbidsStoring == text.hasSuffix("understand"))
    }

    /// The qualified form concerns fields that are never handed on (RFC 9111 §5.2.2.4).
    @Test(
        arguments: [
            ("no-cache", true), ("No-CaChE, max-age=10", true), ("no-cache=\"Set-Cookie\"", false),
            ("no-cache=\"a, b\"", false), ("no-cache=a", false), ("no-cache=\"a\", no-cache", true),
            ("no-cache=", true), ("no-cache=\"\"", true), ("no-cache=\",\"", true),
            ("no-cache=\"a b\"", true), ("no-cache=\"a", true), ("no-cache; x", true),
            ("x=\"no-cache\"", false),
        ] as [(String, Bool)])
    func onlyUnqualifiedNoCacheRequiresValidation(text: String, requiresValidation: Bool) {
        #expect(CacheControl(text: text).requiresValidation == requiresValidation)
    }

    /// RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.4; §5.2.2.8 and §5.2.2.10 are for shared caches.
    @Test(
        arguments: [
            (nil, false), ("", false), ("max-age=60", false), ("must-revalidate", true),
            ("max-age=60, Must-Revalidate", true), ("must-revalidate=1", true),
            ("no-cache", true), ("no-cache=\"a\"", false), ("proxy-revalidate", false),
            ("s-maxage=1", false), ("no-store", false), ("x=\"must-revalidate\"", false),
        ] as [(String?, Bool)])
    func recognisesDirectivesThatForbidStaleUse(text: String?, forbids: Bool) {
        #expect(CacheControl(text: text).forbidsStaleUse == forbids)
    }

    @Test(
        arguments: [
            ("stale-while-revalidate=5", 5),
            ("stale-while-revalidate=5, STALE-while-revalidate=9", 5),
            ("stale-while-revalidate=99999999999", 2_147_483_648),
            ("stale-while-revalidate", nil), ("stale-while-revalidate=x", nil),
            ("stale-while-revalidate=-5", nil), ("stale-if-error=5", nil),
        ] as [(String, Int?)])
    func readsStaleWhileRevalidate(text: String, seconds: Int?) {
        #expect(CacheControl(text: text).staleWhileRevalidate == seconds.map { .seconds($0) })
    }

    @Test func readsSeveralFieldsAsOneList() {
        let control = CacheControl(
            fields([
                "Cache-Control: max-age=60", "cache-control: x=\"a", "CACHE-CONTROL: no-store, b\"",
                "Cache-Control: must-revalidate", "CDN-Cache-Control: max-age=1, no-cache",
                "Surrogate-Control: max-age=1", "Pragma: no-cache",
            ]))
        #expect(control.maxAge == .seconds(60))
        #expect(control.forbidsStoring && control.mustRevalidate && !control.requiresValidation)
    }

    @Test func readsALongValueInLinearTime() {
        for part in ["x=\"", "\\\"", "x=\"\\", "a=\"b\",", ",", "\"=\""] {
            let text = String(repeating: part, count: 100_000) + ", max-age=60"
            #expect(!CacheControl(text: text).forbidsStoring)
        }
    }
}

import Foundation
import PrefetchModel
import Testing

@testable import Exporting

@Suite(.timeLimit(.minutes(15))) struct LoaderNameTests {
    private static let photo = "https://example.com/images/photo.jpg"
    private static let query = "https://cdn.example.com/a/b/pic%20one.PNG?w=200&h=100#frag"
    private static let bare = "https://img.example.org/avatar/12345"

    /// Computed with the digests of coreutils; the extension by SDWebImage's rule.
    @Test(arguments: [
        (ExportLayout.sdwebimage, photo, "b46ca04023feeac3addabe8e574e2211.jpg"),
        (.sdwebimage, query, "a032fdc6474043056f8acb88540090f0.PNG"),
        (.sdwebimage, bare, "6478a531f442d84e6b1b3ff8ee92e3b0"),
        (.kingfisher7, photo, "b46ca04023feeac3addabe8e574e2211"),
        (.kingfisher7, query, "a032fdc6474043056f8acb88540090f0"),
        (.kingfisher7, bare, "6478a531f442d84e6b1b3ff8ee92e3b0"),
        (.kingfisher8, photo, "1a17696caef024f60b1e1f594204f3a515beda1abc219c4692bb93c14996e06d"),
        (.kingfisher8, query, "8f90ba4d561b34cadc39c00456b24c58f9367f6fb75d42be146a541b259be427"),
        (.kingfisher8, bare, "c87e2228545ec535519536f7677fcda809b187f966e75329aef0d30ad67469c5"),
        (.nuke, photo, "18c50766868caed2e70f01d52c41eb589f5e50d9"),
        (.nuke, query, "547c0c34f3b1de4bd8a0be1d5412f9010e864e63"),
        (.nuke, bare, "1bc06ce814b07a7b32316f952e1ee6dc310f05ea"),
        (.coil3, photo, "1a17696caef024f60b1e1f594204f3a515beda1abc219c4692bb93c14996e06d.1"),
        (.glide, photo, "1a17696caef024f60b1e1f594204f3a515beda1abc219c4692bb93c14996e06d.0"),
    ])
    func namesFilesAsTheLibraryDoes(_ layout: ExportLayout, _ url: String, _ name: String) {
        #expect(ExportPlan.path(of: .fixture(url), ExportRules(layout: layout)) == name)
    }

    /// Loaders on Apple's systems take `absoluteString` for the key, in which Foundation has
    /// encoded some characters; Coil, Glide and Flutter the text as it is.
    @Test(arguments: [
        "https://h/é.jpg", "https://h/a%20b|c.jpg", "https://h/a[1].jpg?x[]=1|2#fr|ag",
        "HTTPS://H.Example/A.JPG", "https://h/a%zz.jpg", "https://h/a%20é.jpg",
        "https://h/{x}^`\"<>\\.jpg", "https://h/a?b={x}^`\"<>\\", "https://h/a?b=c?d=/e",
        "https://h/%C3%A9.jpg", "https://h/a%2Fb%7c.jpg", "https://h:80/a",
        "https://h/a'(b)*!;,.jpg", "https://h", "https://h?x=é#é#b", "https://h/a%",
        "https://h/a%4",
        "http://h/a?b#", "http://h/?", "http://h/a?%20é#%20", photo, query, bare,
    ])
    func keysAreThoseOfTheSystem(_ url: String) throws {
        let system = try #require(URL(string: url)).absoluteString
        for layout in [ExportLayout.sdwebimage, .kingfisher7, .kingfisher8, .nuke] {
            let named = ExportPlan.path(of: .fixture(url), ExportRules(layout: layout))
            let expected = ExportPlan.path(of: .fixture(system), ExportRules(layout: layout))
            #expect(named == expected, "\(url) \(system)")
            #expect(URLParts.foundationText(of: url, normalized: url) == system)
        }
        for layout in [ExportLayout.coil3, .glide, .flutter] where system != url {
            let named = ExportPlan.path(of: .fixture(url), ExportRules(layout: layout))
            let other = ExportPlan.path(of: .fixture(system), ExportRules(layout: layout))
            #expect(named != other)
        }
    }

    @Test func hostsOfKeysAreASCII() {
        let text = URLParts.foundationText(
            of: "https://müller.example/ä.jpg",
            normalized: "https://xn--mller-kva.example/%C3%A4.jpg")
        #expect(text == "https://xn--mller-kva.example/%C3%A4.jpg")
    }

    @Test(arguments: [
        ("https://e.example/a.tar.gz", "gz"), ("https://e.example/a.jpg/", "jpg"),
        ("https://e.example/.hidden", nil), ("https://e.example/a.", nil),
        ("https://e.example/a%2Eweb%50?x.png", "webP"), ("https://e.example/a.j%00p:g", "jpg"),
        ("https://e.example/a.b%2Fc", nil), ("https://e.example", nil),
        ("https://e.example/a?b=c.png", nil), ("https://e.example/a#b.png", nil),
    ])
    func takesTheExtensionOfTheDecodedPath(_ url: String, _ ending: String?) throws {
        let name = try #require(
            ExportPlan.path(of: .fixture(url), ExportRules(layout: .sdwebimage)))
        #expect(name.dropFirst(32) == ending.map { "." + $0 } ?? "")
    }

    @Test(arguments: [(222, true), (223, false)])
    func dropsAnExtensionThatIsTooLong(_ units: Int, _ isKept: Bool) throws {
        let url = "https://e.example/a." + String(repeating: "x", count: units)
        let name = try #require(
            ExportPlan.path(of: .fixture(url), ExportRules(layout: .sdwebimage)))
        #expect(name.utf8.count == (isKept ? 32 + 1 + units : 32))
    }

    /// The keys by `SDTransformedKeyForKey`, `computedKey(with:)` and `makeDataCacheKey`; each
    /// name is that of the plain key of the same text.
    @Test(arguments: [
        (
            ExportLayout.sdwebimage, photo,
            "SDImageThumbnailingTransformer({100.000000,50.000000},1)",
            "https://example.com/images/photo-SDImageThumbnailingTransformer(%7B100.000000,50.000000%7D,1).jpg"
        ),
        (
            .sdwebimage, query, "SDImageFlippingTransformer(1,0)",
            "https://cdn.example.com/a/b/pic%20one-SDImageFlippingTransformer(1,0).PNG?w=200&h=100#frag"
        ),
        (
            .sdwebimage, bare, "SDImageFlippingTransformer(1,0)",
            "https://img.example.org/avatar/12345-SDImageFlippingTransformer(1,0)"
        ),
        (
            .kingfisher8, photo, "com.onevcat.Kingfisher.BlackWhite",
            "https://example.com/images/photo.jpg@com.onevcat.Kingfisher.BlackWhite"
        ),
        (.nuke, photo, "com.app/round", "https://example.com/images/photo.jpgcom.app/round"),
    ])
    func addsTheTransformersIdentifier(
        _ layout: ExportLayout, _ url: String, _ identifier: String, _ key: String
    ) {
        let rules = ExportRules.fixture(layout) { $0.identifiers = ["small": identifier] }
        #expect(
            ExportPlan.path(of: .fixture(url, variant: "small"), rules)
                == ExportPlan.path(of: .fixture(key), rules))
        #expect(
            ExportPlan.path(of: .fixture(url), rules) != ExportPlan.path(of: .fixture(key), rules))
    }

    @Test func kingfisherExpiresInThisCentury() throws {
        var plan = ExportPlan(ExportRules(layout: .kingfisher8), at: Timestamp(seconds: 0))
        try plan.add(.fixture(LoaderNameTests.photo, expiresAt: Timestamp(seconds: 5_000)))
        try plan.add(.fixture(LoaderNameTests.bare, expiresAt: .distantFuture))
        let times = Set(plan.files().map(\.modified))
        // 2100-01-01 00:00 UTC
        #expect(
            times == [
                .fixed(Timestamp(seconds: 5_000)), .fixed(Timestamp(seconds: 4_102_444_800)),
            ])
    }
}

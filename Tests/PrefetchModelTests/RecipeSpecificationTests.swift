import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15))) struct RecipeSpecificationTests {
    @Test(arguments: [
        ("same", "same;q=85;strip=safe"), ("jpeg", "jpeg;q=85;strip=safe"),
        ("png", "png;strip=safe"), ("original", "original"), ("q=1", "same;q=1;strip=safe"),
        ("q=100,jpeg", "jpeg;q=100;strip=safe"), ("jpeg,q=60", "jpeg;q=60;strip=safe"),
        ("strip=all", "same;q=85;strip=all"), ("png,strip=none", "png;strip=none"),
        ("keep-larger", "same;q=85;strip=safe;larger"),
        ("effort=small", "same;q=85;strip=safe;effort=small"),
        ("png,effort=fast", "png;strip=safe;effort=fast"),
        ("png,effort=balanced", "png;strip=safe"),
        ("animated=first,keep-larger", "same;q=85;strip=safe;animated=first;larger"),
        ("jpeg,animated=refuse", "jpeg;q=85;strip=safe;animated=refuse"),
        ("png,animated=keep", "png;strip=safe"),
        ("max-bytes=200KiB", "same;q=85;strip=safe;max=204800"),
        ("jpeg,max-bytes=1.5kB", "jpeg;q=85;strip=safe;max=1500"),
        ("jpeg,background=#fff", "jpeg;q=85;strip=safe"),
        ("jpeg,background=f80", "jpeg;q=85;strip=safe;background=ff8800"),
        ("background=Navy,jpeg", "jpeg;q=85;strip=safe;background=000080"),
        (
            "keep-larger,max-bytes=9,background=#000001,strip=none,q=7,jpeg",
            "jpeg;q=7;strip=none;background=000001;max=9;larger"
        ),
    ])
    func parsesRecipes(text: String, canonical: String) throws {
        #expect(try Recipe(specification: text).canonicalText == canonical)
    }

    static let known =
        "known are same, jpeg, png, webp, avif, auto, original, q=, strip=, allow-formats=, "
        + "background=, max-bytes=, effort=, "
        + "animated=, keep-larger, linear, scale-down-pixels=, resize=, crop=, rotate=, flip=, blur=, tint=, "
        + "grey, border=, round=, circle, overlay="

    @Test(arguments: [
        ("", "an item is empty; \(known)"), ("jpeg,", "an item is empty; \(known)"),
        (",jpeg", "an item is empty; \(known)"),
        ("wepb", "unknown item 'wepb' (did you mean 'webp'?); \(known)"),
        ("gif", "unknown item 'gif'; \(known)"),
        (
            "auto,allow-formats=jpeg+gif",
            "'allow-formats=' takes jpeg, png, webp and avif with + between them, not 'jpeg+gif'"
        ),
        ("webp,allow-formats=jpeg", "'allow-formats=' has no effect on webp, only on auto"),
        (
            "auto,max-bytes=9",
            "'max-bytes=' has no effect on auto, only on same, jpeg, webp and avif"
        ),
        ("jpg", "unknown item 'jpg' (did you mean 'jpeg'?); \(known)"),
        ("JPEG", "unknown item 'JPEG'; \(known)"),
        ("orignal", "unknown item 'orignal' (did you mean 'original'?); \(known)"),
        ("quality=80", "unknown item 'quality=80' (did you mean 'q='?); \(known)"),
        (
            "max-stored-bytes=1",
            "unknown item 'max-stored-bytes=1' (did you mean 'max-bytes='?); \(known)"
        ),
        ("efort=fast", "unknown item 'efort=fast' (did you mean 'effort='?); \(known)"),
        ("keep-lager", "unknown item 'keep-lager' (did you mean 'keep-larger'?); \(known)"),
        ("safe", "unknown item 'safe' (did you mean 'strip=safe'?); \(known)"),
        ("small", "unknown item 'small' (did you mean 'effort=small'?); \(known)"),
        ("jpeg=1", "unknown item 'jpeg=1' (did you mean 'jpeg'?); \(known)"),
        ("80", "unknown item '80' (did you mean 'q=80' or 'resize=80'?); \(known)"),
        (" jpeg", "unknown item ' jpeg' (did you mean 'jpeg'?); \(known)"),
        ("jpeg,jpeg", "'jpeg' stands twice"), ("jpeg,png", "'jpeg' and 'png' are both formats"),
        (
            "auto,allow-formats=jpeg,webp",
            "'allow-formats=' takes formats with + between them, so '+webp', not ',webp'"
        ),
        (
            "0x0",
            "'0x0' is not a size like 800x600, 800, x600, 800x600^, 800x600!, 800x600~#fff or 50%"
        ),
        ("q=80,q=80", "'q=' stands twice"),
        ("keep-larger,keep-larger", "'keep-larger' stands twice"),
        ("q", "'q=' needs a value"), ("strip", "'strip=' needs a value"),
        ("q=", "'q=' takes 1 to 100, not ''"), ("q=0", "'q=' takes 1 to 100, not '0'"),
        ("q=101", "'q=' takes 1 to 100, not '101'"), ("q=8=0", "'q=' takes 1 to 100, not '8=0'"),
        ("strip=some", "'strip=' takes all, safe or none, not 'some'"),
        ("effort=max", "'effort=' takes fast, balanced or small, not 'max'"),
        ("max-bytes=0", "'max-bytes=' takes a size like 200KiB, not '0'"),
        ("max-bytes=-1", "'max-bytes=' takes a size like 200KiB, not '-1'"),
        (
            "jpeg,background=mauve",
            "'background=' takes #rgb, #rrggbb or a basic colour of CSS, not 'mauve'"
        ),
        ("keep-larger=1", "'keep-larger' takes no value"),
        ("png,q=80", "'q=' has no effect on png, only on same, jpeg, webp, avif and auto"),
        ("background=red", "'background=' has no effect on same, only on jpeg and auto"),
        (
            "effort=small,jpeg",
            "'effort=' has no effect on jpeg, only on same, png, webp, avif and auto"
        ),
        (
            "original,strip=none",
            "'strip=' has no effect on original, only on same, jpeg, png, webp, avif and auto"
        ),
        (
            "keep-larger,original",
            "'keep-larger' has no effect on original, only on same, jpeg, png, webp, avif and auto"
        ),
    ])
    func rejectsInvalidItemsWithAllowedValues(text: String, message: String) {
        let problem = #expect(throws: UserError.self) {
            try Recipe(specification: text)
        }
        #expect(problem?.message == message)
    }

    /// An item is rejected exactly if it would not change the recipe.
    @Test(arguments: [
        "q=1", "strip=all", "background=#123456", "max-bytes=7", "effort=fast", "keep-larger",
    ])
    func rejectsItemsWithoutEffect(item: String) throws {
        for encoding in Recipe.Encoding.allCases {
            let plain = Recipe(encoding: encoding)
            let recipe = try? Recipe(specification: "\(encoding),\(item)")
            #expect(recipe?.canonicalText != plain.canonicalText)
            guard recipe == nil else { continue }
            var changed = try Recipe(specification: item.hasPrefix("b") ? "jpeg,\(item)" : item)
            changed.encoding = encoding
            #expect(changed.canonicalText == plain.canonicalText, "\(encoding), \(item)")
        }
    }

    @Test(
        arguments: [
            ("0", 0), ("17", 17), ("17b", 17), ("1k", 1000), ("1KB", 1000), ("1kib", 1024),
            ("1.5MiB", 1_572_864), ("2MB", 2_000_000), ("1GiB", 1 << 30), (".5k", 500),
            ("", nil), ("k", nil), ("-1", nil), ("+1", nil), ("1 k", nil), ("1e3", nil),
            ("1T", nil),
            ("٣", nil), ("99999999999999999999", nil),
        ] as [(String, Int?)])
    func parsesSizes(text: String, bytes: Int?) {
        #expect(ByteCount(quantity: text)?.bytes == bytes)
    }

    @Test(
        arguments: [
            ("#fff", "ffffff"), ("fff", "ffffff"), ("#12AbEf", "12abef"), ("White", "ffffff"),
            ("fuchsia", "ff00ff"), ("#", nil), ("", nil), ("#ffff", nil), ("-ff", nil),
            ("+fff", nil),
            ("##fff", nil), ("mauve", nil), ("#ggg", nil),
        ] as [(String, String?)])
    func parsesColours(text: String, colour: String?) {
        #expect(RGBColor(text: text)?.description == colour)
    }

    @Test(
        arguments: [
            ("stats", true), ("stat", true), ("sttas", true), ("statss", true), ("stots", true),
            ("tsats", true), ("state", true), ("stat5s", true), ("sta", false), ("sstatss", false),
            ("Stats", true), ("other", false),
        ] as [(String, Bool)])
    func recognizesNearMatches(word: String, isNear: Bool) {
        #expect(word.isNearly("stats") == isNear)
    }
}

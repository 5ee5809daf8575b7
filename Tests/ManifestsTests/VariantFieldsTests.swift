import Testing

@testable import Manifests
@testable import PrefetchModel

/// The fields of text lines about variants.
@Suite(.timeLimit(.minutes(15)))
struct VariantFieldsTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static func variants(
        stripping: Recipe.Stripping = .safe, encoding: Recipe.Encoding = .same,
        animation: Recipe.Animation = .keep
    ) throws -> VariantSet {
        var main = Recipe(encoding: encoding)
        main.animation = animation
        main.stripping = stripping
        let others = try ["web", "thumb"].map {
            RequestedVariant(name: try #require(VariantName($0)), recipe: Recipe(encoding: .jpeg))
        }
        return try VariantSet([RequestedVariant(name: .main, recipe: main)] + others)
    }

    private static func own(_ name: String, _ spec: String) -> RequestedVariant {
        guard let name = VariantName(name), let recipe = try? Recipe(specification: spec) else {
            preconditionFailure("a variant of these tests is valid")
        }
        return RequestedVariant(name: name, recipe: recipe)
    }

    private func entry(_ fields: String, _ variants: VariantSet?) throws -> ReadEntry {
        let options = ManifestOptions(variants: variants)
        let reader = try ManifestReader(
            path: folder.file("list", "http://a.b/ \(fields)\n".utf8), options: options)
        let entries = try #require(try reader.nextBatch()).entries
        #expect(entries.count == 1)
        return try #require(entries.first)
    }

    @Test(
        arguments: [
            ("encode=same", EntryExtras(main: RecipeChanges(encoding: .same))),
            ("encode=jpeg", EntryExtras(main: RecipeChanges(encoding: .jpeg))),
            ("encode=png", EntryExtras(main: RecipeChanges(encoding: .png))),
            ("encode=original", EntryExtras(main: RecipeChanges(encoding: .original))),
            ("quality=1", EntryExtras(main: RecipeChanges(quality: 1))),
            ("quality=100", EntryExtras(main: RecipeChanges(quality: 100))),
            ("quality=085", EntryExtras(main: RecipeChanges(quality: 85))),
            ("encode=png quality=9", EntryExtras(main: RecipeChanges(encoding: .png, quality: 9))),
            ("animated=keep", EntryExtras(main: RecipeChanges(animation: .keep))),
            ("animated=first", EntryExtras(main: RecipeChanges(animation: .first))),
            ("animated=refuse", EntryExtras(main: RecipeChanges(animation: .refuse))),
            (
                "animated=first encode=png resize=20",
                EntryExtras(
                    main: RecipeChanges(
                        encoding: .png, resize: .fit(width: 20, height: nil), animation: .first))
            ),
            (
                "encode=original animated=keep",
                EntryExtras(main: RecipeChanges(encoding: .original, animation: .keep))
            ),
            ("variants=main", EntryExtras(variants: .position(0))),
            ("variants=web", EntryExtras(variants: .position(1))),
            ("variants=thumb,main", EntryExtras(variants: [.position(0), .position(2)])),
            (
                "quality=9 variants=main,web ttl=0",
                EntryExtras(
                    timeToLive: .zero, main: RecipeChanges(quality: 9),
                    variants: [.position(0), .position(1)])
            ),
            (
                "crop=300x200:north resize=50%",
                EntryExtras(
                    main: RecipeChanges(
                        resize: .percent(50),
                        crop: CropGeometry(width: 300, height: 200, place: .gravity(.north))))
            ),
            (
                "transform=flip=h,crop=9x8+1+0,rotate=auto",
                EntryExtras(
                    main: RecipeChanges(steps: [
                        .flip(.horizontal),
                        .crop(CropGeometry(width: 9, height: 8, place: .offset(x: 1, y: 0))),
                    ]))
            ),
            ("transform=rotate=auto", EntryExtras(main: RecipeChanges(steps: []))),
            (
                "transform=border=4,#ff0000,grey resize=9x8~#00000000",
                EntryExtras(
                    main: RecipeChanges(
                        resize: .pad(width: 9, height: 8, .clear),
                        steps: [
                            .border(4, RGBAColor(RGBColor(red: 255, green: 0, blue: 0))), .grey,
                        ]))
            ),
            ("variant=s=32x32^,webp", EntryExtras(ownVariants: [own("s", "32x32^,webp")])),
            (
                "variant=s=png variant=t=tint=#00ff0080 variant=original=original",
                EntryExtras(ownVariants: [
                    own("s", "png"), own("t", "tint=#00ff0080"), own("original", "original"),
                ])
            ),
            // Own variants may be named, and are made in any case.
            (
                "variants=s,web variant=s=png variant=t=webp",
                EntryExtras(
                    variants: .position(1), ownVariants: [own("s", "png"), own("t", "webp")])
            ),
            ("variant=s=png variants=s", EntryExtras(variants: [], ownVariants: [own("s", "png")])),
            // The run's own set, so nothing is stored.
            ("variants=web,thumb,main", nil),
        ] as [(String, EntryExtras?)])
    func readsFields(fields: String, extras: EntryExtras?) throws {
        #expect(
            try entry(fields, VariantFieldsTests.variants())
                == ReadEntry(1, "http://a.b/", extras: extras))
    }

    static let encodeMessage = "field 'encode' takes same, jpeg, png, webp, avif, auto or original"
    static let qualityMessage = "field 'quality' takes 1 to 100"
    static let animatedMessage = "field 'animated' takes keep, first or refuse"
    static let listMessage = "field 'variants' takes comma-separated names, as in main,web"
    static let ownMessage = "field 'variant' takes NAME=SPEC, as in web=jpeg,q=60"
    static let overlayMessage =
        "'overlay=' is for --transform and --variant, since lists open no files; "
        + "'variants=' selects such a variant"
    static let known = "this run makes main, web, thumb"

    @Test(
        arguments: [
            ("encode=", encodeMessage), ("encode=gif", encodeMessage + ", not 'gif'"),
            ("encode=JPEG", encodeMessage + ", not 'JPEG'"), ("encode=jpeg,q=1", encodeMessage),
            ("encode=" + String(repeating: "x", count: 60_000), encodeMessage),
            ("quality=", qualityMessage), ("quality=0", qualityMessage + ", not '0'"),
            ("quality=900", qualityMessage + ", not '900'"),
            ("quality=8.5", qualityMessage + ", not '8.5'"), ("quality=u:SECRET@h", qualityMessage),
            ("quality=" + String(repeating: "9", count: 60_000), qualityMessage),
            ("animated=", animatedMessage), ("animated=last", animatedMessage + ", not 'last'"),
            ("animated=First", animatedMessage + ", not 'First'"),
            ("animated=first,keep", animatedMessage + ", not 'first,keep'"),
            ("animated=keep animated=keep", "duplicate field 'animated'"),
            (
                "variants=web animated=first",
                "field 'animated' is for the variant main, which is not among the variants"
            ),
            ("variants=", listMessage), ("variants=main,", listMessage),
            ("variants=,main", listMessage), ("variants=main,,web", listMessage),
            ("variants=http://u:SECRET@h/", listMessage), ("variants=-web", listMessage),
            ("variants=" + String(repeating: "n", count: 65), listMessage),
            ("variants=large", "unknown variant 'large': \(known)"),
            ("variants=main,Web", "unknown variant 'Web': \(known)"),
            ("variants=web,main,web", "variant 'web' is named twice"),
            ("encode=png encode=png", "duplicate field 'encode'"),
            ("quality=1 ttl=1 quality=2", "duplicate field 'quality'"),
            ("variants=web variants=main", "duplicate field 'variants'"),
            (
                "variants=web quality=9",
                "field 'quality' is for the variant main, which is not among the variants"
            ),
            (
                "encode=png variants=web,thumb",
                "field 'encode' is for the variant main, which is not among the variants"
            ),
            ("Encode=png", "unknown field 'Encode'; did you mean 'encode'?"),
            (
                "transform=flip=h,overlay=/dev/zero@north",
                "field 'transform': \(overlayMessage)"
            ),
            (
                "variant=x=overlay=/dev/zero@north",
                "field 'variant': x: \(overlayMessage)"
            ),
            ("variant=web", ownMessage), ("variant==png", ownMessage),
            ("variant=a b=png", ownMessage), ("variant=-s=png", ownMessage),
            ("variant=http://u:SECRET@h/=png", ownMessage),
            (
                "variant=main=png",
                "field 'variant': the fields encode=, resize= and others describe main"
            ),
            (
                "variant=original=png",
                "field 'variant': the name original is reserved for original=original"
            ),
            ("variant=web=png", "field 'variant': this run makes 'web'; choose another name"),
            ("variant=s=png variant=s=webp", "field 'variant': 's' is given twice"),
            (
                "variant=s=png,q=80",
                "field 'variant': s: 'q=' has no effect on png, only on same, jpeg, webp, avif and auto"
            ),
            ("variant=s=q=0", "field 'variant': s: 'q=' takes 1 to 100, not '0'"),
            ("variant=s=http://u:SECRET@h/", "field 'variant' has an invalid value"),
            (
                "variant=s=" + Array(repeating: "flip=h", count: 65).joined(separator: ","),
                "field 'variant': more than 64 steps"
            ),
            (
                (1...62).map { "variant=v\($0)=png" }.joined(separator: " "),
                "more than 64 variants"
            ),
            (
                "crop=big",
                "field 'crop' takes WxH, WxH+X+Y or WxH:GRAVITY like 300x200:north, not 'big'"
            ),
            ("crop=9x9 crop=9x9", "duplicate field 'crop'"),
            (
                "transform=flip=x", "field 'transform': 'flip=' takes h or v, not 'x'"
            ),
            ("transform=http://u:SECRET@h/", "field 'transform' has an invalid value"),
            (
                "encode=original crop=9x9",
                "encode=original stores the downloaded bytes, so it cannot be combined with a size or other steps"
            ),
            (
                "variants=web crop=9x9",
                "field 'crop' is for the variant main, which is not among the variants"
            ),
            ("qualty=5", "unknown field 'qualty'; did you mean 'quality'?"),
            ("encode", "text without '=' after the URL; a space in a URL is written %20"),
        ] as [(String, String)])
    func refusesFields(fields: String, message: String) throws {
        let entry = try entry(fields, VariantFieldsTests.variants())
        #expect(entry.problem == message)
        #expect(entry.extras == nil)
        // An invalid field leaves the URL unchanged.
        let isOfField =
            message.contains("field") || message.contains("variant")
            || message.contains("encode=")
        #expect(entry.url == (isOfField ? "http://a.b/" : "http://a.b/ \(fields)"))
        #expect(entry.key == String("http://a.b/ \(fields)".prefix(512)))
    }

    @Test func refusesOtherVariantsInARunOfMainAlone() throws {
        let alone = VariantSet(main: Recipe())
        #expect(try entry("variants=main", alone) == ReadEntry(1, "http://a.b/"))
        #expect(
            try entry("variants=web", alone).problem
                == "unknown variant 'web': this run makes main")
    }

    @Test func refusesOriginalWithStripAll() throws {
        let strict = try VariantFieldsTests.variants(stripping: .all)
        #expect(
            try entry("encode=original", strict).problem
                == "encode=original cannot be combined with --strip all: it stores the metadata, too"
        )
        #expect(
            try entry("encode=png", strict).extras
                == EntryExtras(main: RecipeChanges(encoding: .png)))
    }

    @Test(
        arguments: [
            (
                "encode=original animated=first", Recipe.Encoding.same, Recipe.Animation.keep,
                "encode=original cannot be combined with animated=first: it stores animations"
            ),
            (
                "animated=refuse", .original, .keep,
                "--encode original cannot be combined with animated=refuse: it stores animations"
            ),
            (
                "encode=original", .same, .first,
                "encode=original cannot be combined with --animated first: it stores animations"
            ),
            ("encode=original animated=keep", .same, .first, nil),
            ("animated=keep", .original, .keep, nil),
            ("encode=png animated=first", .original, .keep, nil),
            ("quality=5", .original, .keep, nil),
        ] as [(String, Recipe.Encoding, Recipe.Animation, String?)])
    func originalRequiresAnimatedKeep(
        fields: String, encoding: Recipe.Encoding, animation: Recipe.Animation, message: String?
    ) throws {
        let run = try VariantFieldsTests.variants(encoding: encoding, animation: animation)
        #expect(try entry(fields, run).problem == message)
    }

    /// `get --batch` reads the lists of every run.
    @Test func acceptsAllVariantNamesOutsideARun() throws {
        #expect(try entry("variants=any,name", nil) == ReadEntry(1, "http://a.b/"))
        #expect(
            try entry("encode=original variants=main,x", nil).extras
                == EntryExtras(main: RecipeChanges(encoding: .original)))
        #expect(try entry("variants=a=b", nil).problem == VariantFieldsTests.listMessage)
        let names = (1...65).map { "n\($0)" }
        #expect(
            try entry("variants=\(names.joined(separator: ","))", nil).problem
                == "more than 64 variants")
        #expect(
            try entry("variants=\(names.dropLast().joined(separator: ","))", nil).problem == nil)
    }
}

import PrefetchModel
import Testing

struct TransformationTests {
    @Test(arguments: [
        "800x600", "800", "x600", "800x600^", "800x600!", "50%", "2000000@", "1", "x1", "100%",
        "800x600~ff800080", "800^", "800^+", "800+", "x600+", "800x600+", "800x600^+", "800x600^>",
        "800x600~ff800080+", "800x600~ff800080>",
    ])
    func roundTripsResizeGeometry(text: String) throws {
        #expect(try #require(ResizeGeometry(text: text)).description == text)
    }

    @Test(arguments: [
        "", "x", "0", "800x", "800x0", "-5", "+5", "5.5", "800X600", "800x600x3", "x600^", "x600!",
        "101%", "0%", "%", "@", "10000000000", "800 x600", "８00", "800x600!!", "800x600^!",
        "800x600~", "800~#fff", "800x600~#ff", "800x600!~#fff", "800x600~#fff~", "0x5~#fff",
        "800x600!+", "50%+", "9@>", "+", ">", "800x600++", "800x600+^", "800x600>+",
        "800x600+~#fff",
    ])
    func rejectsInvalidResizeGeometry(text: String) {
        #expect(ResizeGeometry(text: text) == nil)
    }

    /// A picture that fits stays as it is without `>`, too.
    @Test(arguments: [("800x600>", "800x600"), ("800>", "800"), ("800^>", "800^")])
    func onlyLargerIsTheDefaultWithoutCrop(text: String, description: String) {
        #expect(ResizeGeometry(text: text)?.description == description)
    }

    @Test(arguments: ["300x200", "300x200+10+20", "300x200+0+0", "300x200:north-east"])
    func roundTripsCropGeometry(text: String) throws {
        #expect(try #require(CropGeometry(text: text)).description == text)
    }

    @Test(arguments: [
        "300", "x200", "300x", "300x200+10", "300x200-10+0", "300x200+10+20+30", "300x200:up",
        "300x200+1+1:north", "300x200^", "0x5", "300x200:", "300x200+99999999999+0",
    ])
    func rejectsInvalidCropGeometry(text: String) {
        #expect(CropGeometry(text: text) == nil)
    }

    @Test func centreIsDefaultGravity() {
        #expect(CropGeometry(text: "3x2:center")?.description == "3x2")
    }

    @Test(
        arguments: [
            ("256x256,webby", nil), ("thumb", nil),
            ("256x256", "same;q=85;strip=safe;resize=256x256"),
            ("256x256^,png", "png;strip=safe;resize=256x256^"),
            ("png,256x256^", "png;strip=safe;resize=256x256^"),
            (
                "jpeg,crop=300x200:north,q=70,rotate=90,resize=150",
                "jpeg;q=70;strip=safe;crop=300x200:north;rotate=90;resize=150"
            ),
            ("rotate=auto,flip=h,50%", "same;q=85;strip=safe;flip=h;resize=50%"),
            ("blur=2.5,tint=#f008", nil), ("flip=h,flip=h", "same;q=85;strip=safe;flip=h;flip=h"),
            (
                "blur=2.5,tint=#ff000080,round=8,jpeg,background=black",
                "jpeg;q=85;strip=safe;background=000000;blur=2.5;tint=ff000080;round=8"
            ),
            ("round=8,background=red", "same;q=85;strip=safe;background=ff0000;round=8"),
            ("background=red", nil),
            ("resize=256,linear", "same;q=85;strip=safe;resize=256;linear"),
            ("linear", nil), ("original,256x256", nil), ("256", "same;q=85;strip=safe;resize=256"),
            ("99", nil), ("original,flip=v", nil),
            (
                "crop=9x9,scale-down-pixels=1000000",
                "same;q=85;strip=safe;resize=1000000@;crop=9x9"
            ),
            ("blur=0", nil), ("blur=101", nil), ("blur=1.25", nil), ("round=-1", nil),
            ("rotate=45", "same;q=85;strip=safe;rotate=45"),
            ("rotate=45,#fff", "same;q=85;strip=safe;rotate=45,ffffffff"),
            ("rotate=45,#fff0", nil), ("rotate=45,#ffffff00", "same;q=85;strip=safe;rotate=45"),
            ("rotate=-7.50,png", "png;strip=safe;rotate=352.5"),
            ("rotate=0.001,flip=h", "same;q=85;strip=safe;rotate=0.001;flip=h"),
            ("rotate=450,red", "same;q=85;strip=safe;rotate=90"),
            ("rotate=-360,png", "png;strip=safe"), ("rotate=-0,png", "png;strip=safe"),
            ("rotate=1.2345", nil), ("rotate=1.", nil), ("rotate=.5", nil), ("rotate=+5", nil),
            ("rotate=--5", nil), ("rotate=123456", nil), ("rotate=", nil), ("rotate=1e2", nil),
            ("grey,circle,png", "png;strip=safe;grey;circle"), ("grey=1", nil), ("circle=", nil),
            ("border=4,#fff", "same;q=85;strip=safe;border=4,ffffffff"),
            ("border=04,red,png", "png;strip=safe;border=4,ff0000ff"),
            ("border=4,#00000080,grey", "same;q=85;strip=safe;border=4,00000080;grey"),
            ("border=4", nil), ("border=4,fff", nil), ("border=0,#fff", nil), ("border=4,", nil),
            ("border=10000,#fff", "same;q=85;strip=safe;border=10000,ffffffff"),
            ("border=10001,#fff", nil), ("border=100000,#fff", nil), ("border=-4,#fff", nil),
            ("border=4,#fff,#fff", nil), ("border=4.5,#fff", nil), ("blur=2,#fff", nil),
            ("round=8:br,tl,png", "png;strip=safe;round=8:tl,br"),
            ("round=8.0:bl", "same;q=85;strip=safe;round=8:bl"),
            ("round=8:tl,tr,bl,br", "same;q=85;strip=safe;round=8"),
            ("round=8:", nil), ("round=8:tl,tl", nil), ("round=8,tl", nil), ("round=8:t", nil),
            ("round=8:tl,tr,bl,br,br", nil), ("tl", nil),
            ("256x256~#fff", "same;q=85;strip=safe;resize=256x256~ffffffff"),
            ("resize=9x8~white,flip=h", "same;q=85;strip=safe;resize=9x8~ffffffff;flip=h"),
            ("9x8~#12345600", "same;q=85;strip=safe;resize=9x8~00000000"),
            ("tint=#12345600", "same;q=85;strip=safe;tint=00000000"),
            ("256x256~", nil), ("256~#fff", nil), ("original,grey", nil),
            ("grey,background=red", nil),
            ("circle,background=red", "same;q=85;strip=safe;background=ff0000;circle"),
            ("border=1,#f00", "same;q=85;strip=safe;border=1,ff0000ff"),
            ("border=1,#f00,background=red", nil),
            (
                "border=1,#ff000080,background=red",
                "same;q=85;strip=safe;background=ff0000;border=1,ff000080"
            ),
            ("flip=x", nil), ("tint=#ff00001", nil), ("resize=", nil), ("crop", nil), ("256x", nil),
        ] as [(String, String?)])
    func parsesSteps(text: String, canonical: String?) {
        let recipe = try? Recipe(specification: text)
        #expect(recipe?.canonicalText == canonical)
        if let canonical { #expect(Recipe(canonicalText: canonical) == recipe) }
    }

    /// Texts of recipes without steps, as stored in databases, do not change.
    @Test func textsWithoutStepsAreStable() {
        var recipe = Recipe(encoding: .jpeg)
        #expect(recipe.canonicalText == "jpeg;q=85;strip=safe")
        recipe.transformations = [.flip(.horizontal)]
        #expect(recipe.canonicalText == "jpeg;q=85;strip=safe;flip=h")
        #expect(recipe.untransformed == Recipe(encoding: .jpeg))
        // For a JPEG `same` is `jpeg`, except for settings that depend on the size.
        #expect(
            Recipe.effectiveText(
                of: "same;q=85;strip=safe;resize=9", under: .encoded(as: .jpeg, ignoring: []))
                == "same;q=85;strip=safe;resize=9")
    }

    @Test func entrySizeReplacesSizeOfRun() {
        var recipe = Recipe()
        recipe.replaceSize(with: .percent(50))
        #expect(recipe.canonicalText == "same;q=85;strip=safe;resize=50%")
        recipe.transformations.append(.flip(.vertical))
        recipe.scaleDown(toPixels: 1000)
        recipe.replaceSize(with: .fit(width: 80, height: nil))
        #expect(recipe.canonicalText == "same;q=85;strip=safe;resize=1000@;resize=80;flip=v")
    }

    @Test func reportsInvalidSteps() throws {
        #expect(try Recipe.steps(in: "flip=h,50%").count == 2)
        #expect(throws: UserError.self) { try Recipe.steps(in: "q=5") }
        #expect(throws: UserError.self) { try Recipe.steps(in: "flip=h,") }
        do {
            _ = try Recipe.steps(in: "rotate=x")
        } catch {
            #expect(
                error.message
                    == "'rotate=' takes auto or degrees like 90, -7.5 or 45,#rrggbb, not 'x'")
        }
    }

    /// Each message names the step and its form.
    @Test(arguments: [
        ("border=4", "'border=' takes W,#rrggbb with a width of 1 to 10000 pixels, not '4'"),
        ("border", "'border=' needs W,#rrggbb with a width of 1 to 10000 pixels"),
        ("grey=2", "'grey' takes no value, not '2'"),
        (
            "round=8:top",
            "'round=' takes a number of pixels, 0.1 to 10000, or with corners like 8:tl,tr, "
                + "not '8:top'"
        ),
        ("overlay=a.png", "'overlay=' takes FILE@GRAVITY like logo.png@south-east, not 'a.png'"),
        (
            "9x9~",
            "'9x9~' is not a size like 800x600, 800, x600, 800x600^, 800x600!, 800x600~#fff or 50%"
        ),
    ])
    func namesTheForm(text: String, message: String) {
        let problem = #expect(throws: UserError.self) {
            try Recipe(specification: text)
        }
        #expect(problem?.message == message)
    }

    /// A list of another author opens no files.
    @Test func onlyTheCallersReaderOpensOverlays() throws {
        let digits = String(repeating: "ab", count: 32)
        let digest = try #require(ContentDigest(hexadecimal: digits))
        var read: [String] = []
        let recipe = try Recipe(
            specification: "overlay=logo@2x.png@south-east,overlay=\(digits)@north",
            overlay: { file throws(UserError) in
                read.append(file)
                return digest
            })
        #expect(read == ["logo@2x.png", digits])
        let text =
            "same;q=85;strip=safe;overlay=\(digits)@south-east;overlay=\(digits)@north"
        #expect(recipe.canonicalText == text)
        #expect(Recipe(canonicalText: text) == recipe)
        #expect(Recipe(canonicalText: "png;strip=safe;overlay=logo.png@north") == nil)
        for list in ["overlay=logo.png@south-east", "overlay=\(digits)@north"] {
            #expect(throws: UserError.self) { try Recipe(specification: list) }
            #expect(throws: UserError.self) { try Recipe.steps(in: list) }
        }
        for invalid in ["overlay=@north", "overlay=a.png@", "overlay=a.png@up", "overlay="] {
            #expect(throws: UserError.self) {
                try Recipe(
                    specification: invalid,
                    overlay: { _ throws(UserError) in digest })
            }
        }
    }

    /// Steps without a value are steps as well.
    @Test(arguments: ["grey", "circle", "border=1,ffffffff"])
    func transformedRecipesHaveNoOtherText(step: String) {
        let text = "same;q=85;strip=safe;\(step)"
        #expect(
            Recipe.effectiveText(of: text, under: .encoded(as: .jpeg, ignoring: [])) == text)
    }
}

import PrefetchModel
import Testing

struct TransformationTests {
    @Test(arguments: [
        "800x600", "800", "x600", "800x600^", "800x600!", "50%", "2000000@", "1", "x1", "100%",
    ])
    func roundTripsResizeGeometry(text: String) throws {
        #expect(try #require(ResizeGeometry(text: text)).description == text)
    }

    @Test(arguments: [
        "", "x", "0", "800x", "800x0", "-5", "+5", "5.5", "800X600", "800x600x3", "800^", "x600!",
        "101%", "0%", "%", "@", "10000000000", "800 x600", "８00", "800x600!!", "800x600^!",
    ])
    func rejectsInvalidResizeGeometry(text: String) {
        #expect(ResizeGeometry(text: text) == nil)
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
            ("rotate=45", nil),
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
        #expect(throws: Recipe.SpecificationProblem.self) { try Recipe.steps(in: "q=5") }
        #expect(throws: Recipe.SpecificationProblem.self) { try Recipe.steps(in: "flip=h,") }
        do {
            _ = try Recipe.steps(in: "rotate=45")
        } catch {
            #expect(error.message == "'rotate=' takes auto, 90, 180 or 270, not '45'")
        }
    }
}

import Testing

@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15))) struct VariantSetTests {
    private static func variant(_ name: String, _ recipe: Recipe = Recipe()) throws
        -> RequestedVariant
    {
        RequestedVariant(name: try #require(VariantName(name)), recipe: recipe)
    }

    private static func set(_ names: String...) throws -> VariantSet {
        try VariantSet(names.map { try variant($0, Recipe(quality: $0.utf8.count)) })
    }

    @Test(arguments: [
        "a", "Z", "0", "main", "original", "web-2x", "a_b.c", "9.", "a--", "Main",
        String(repeating: "n", count: 64), "main~2", String(repeating: "n", count: 64) + "~64",
    ])
    func acceptsValidNames(text: String) throws {
        #expect(try #require(VariantName(text)).text == text)
        #expect(VariantName(text)?.description == text)
        #expect(VariantName(text)?.isNumbered == text.contains("~"))
    }

    @Test(arguments: [
        "", "-a", "_a", ".a", "a b", "a,b", "a=b", "a/b", "ä", "a\u{301}", "a\n", "a\0", "٣", "a%",
        String(repeating: "n", count: 65), "main~", "main~1", "main~02", "main~65", "main~2~3",
        "~2",
    ])
    func rejectsInvalidNames(text: String) {
        #expect(VariantName(text) == nil)
    }

    @Test func namesAreCaseSensitive() throws {
        #expect(VariantName("main") == .main)
        #expect(VariantName("Main") != .main)
        #expect(VariantName("original") == .original)
        #expect(try VariantSetTests.set("web", "Web").count == 2)
    }

    @Test func ordersMainFirst() throws {
        let set = try VariantSetTests.set("z", "a", "main", "m")
        #expect(set.map(\.name.text) == ["main", "z", "a", "m"])
        #expect(set.map(\.recipe.quality) == [4, 1, 1, 1])
        #expect(set.primary == set[0] && set.main == Recipe(quality: 4))
        let other = try VariantSetTests.set("z", "a")
        #expect(other.map(\.name.text) == ["z", "a"])
        #expect(other.primary.name.text == "z" && other.main == nil)
        for (position, variant) in set.enumerated() {
            #expect(set.position(of: variant.name) == position)
        }
        #expect(other.position(of: .main) == nil)
    }

    @Test func singleVariantSetEqualsItsVariant() throws {
        let recipe = Recipe(encoding: .png)
        let set = VariantSet(main: recipe)
        #expect(set.count == 1 && set.primary.name == .main && set.main == recipe)
        #expect(try VariantSet([RequestedVariant(name: .main, recipe: recipe)]) == set)
    }

    @Test func rejectsEmptyDuplicateAndLargeSets() throws {
        let wrongCount = UserError(.usage, "--variant: 1 to 64 variants, including main")
        #expect(throws: wrongCount) { try VariantSet([]) }
        #expect(throws: UserError(.usage, "--variant b is given twice")) {
            try VariantSetTests.set("main", "b", "c", "b", "main")
        }
        let most = try (1...64).map { try VariantSetTests.variant("v\($0)") }
        let set = try VariantSet(most)
        #expect(set.map(\.name) == most.map(\.name))
        let more = most + [try VariantSetTests.variant("v65")]
        #expect(throws: wrongCount) { try VariantSet(more) }
    }

    @Test func entriesSelectVariants() throws {
        let set = try VariantSetTests.set("main", "web", "thumb")
        func names(_ positions: Int...) -> [String] {
            let selection = VariantSelection(positions.map { .position($0) })
            return set.applying(EntryExtras(variants: selection)).map(\.name.text)
        }
        #expect(set.applying(EntryExtras()) == set)
        #expect(names(0, 1, 2) == ["main", "web", "thumb"])
        #expect(names(2, 0) == ["main", "thumb"])
        #expect(names(2, 1) == ["web", "thumb"])
        #expect(names(1) == ["web"])
        #expect(names(0) == ["main"])
        // An empty selection, which manifests cannot express.
        #expect(names(7) == ["main", "web", "thumb"])
        let most = try VariantSet((1...64).map { try VariantSetTests.variant("v\($0)") })
        let last = most.applying(EntryExtras(variants: .position(63)))
        #expect(last.map(\.name.text) == ["v64"])
    }

    @Test func entryEncodingAndQualityApplyToMain() throws {
        var recipe = Recipe(quality: 70, keepsLarger: true)
        recipe.stripping = .all
        let web = try VariantSetTests.variant("web", Recipe(encoding: .jpeg))
        let set = try VariantSet([RequestedVariant(name: .main, recipe: recipe), web])
        func main(_ encoding: Recipe.Encoding?, _ quality: Int?) -> String? {
            let result = set.applying(
                EntryExtras(main: RecipeChanges(encoding: encoding, quality: quality)))
            #expect(result[1] == web)
            return result.main?.canonicalText
        }
        #expect(main(nil, 40) == "same;q=40;strip=all;larger")
        #expect(main(.jpeg, nil) == "jpeg;q=70;strip=all;larger")
        #expect(main(.jpeg, 40) == "jpeg;q=40;strip=all;larger")
        // As with the flags.
        #expect(main(.png, 40) == "png;strip=all;larger")
        #expect(main(.original, 40) == "original")
        let first = set.applying(
            EntryExtras(main: RecipeChanges(encoding: .jpeg, animation: .first)))
        #expect(first.main?.canonicalText == "jpeg;q=70;strip=all;animated=first;larger")
        #expect(first[1] == web)
        let other = set.applying(
            EntryExtras(main: RecipeChanges(encoding: .png, quality: 4), variants: .position(1)))
        #expect(other == VariantSet(web))
    }

    private static func qualities(_ variants: KeyValuePairs<String, Int>) throws -> VariantSet {
        var set: VariantSet?
        for (name, quality) in variants {
            let next = VariantSet(try variant(name, Recipe(quality: quality)))
            set = try set.map { try #require($0.adding(next)) } ?? next
        }
        return try #require(set)
    }

    @Test(
        arguments: [
            (["main": 1], ["main": 1], ["main": 1]),
            (["main": 1], ["main": 2], ["main": 1, "main~2": 2]),
            (["main": 1, "main~2": 2], ["main": 3], ["main": 1, "main~2": 2, "main~3": 3]),
            (["main": 1, "main~2": 2], ["main": 2], ["main": 1, "main~2": 2]),
            (["main": 1], ["web": 2], ["main": 1, "web": 2]),
            // A free name is another name of the same variant.
            (["main": 1], ["web": 1], ["main": 1, "web": 1]),
            (["main": 1, "web": 2], ["web": 1], ["main": 1, "web": 2]),
            (["main": 1, "web": 2], ["main": 2, "web": 1], ["main": 1, "web": 2]),
            // The order stays, and main with it.
            (["web": 1], ["main": 2], ["web": 1, "main": 2]),
        ] as [(KeyValuePairs<String, Int>, KeyValuePairs<String, Int>, KeyValuePairs<String, Int>)])
    func addsTheVariantsOfAnotherLine(
        first: KeyValuePairs<String, Int>, line: KeyValuePairs<String, Int>,
        both: KeyValuePairs<String, Int>
    ) throws {
        let set = try VariantSetTests.qualities(first)
        let added = try VariantSetTests.qualities(line)
        let union = try #require(set.adding(added))
        #expect(union.map(\.name.text) == both.map(\.key))
        #expect(union.map(\.recipe.quality) == both.map(\.value))
        #expect(union.adding(added) == union && union.adding(set) == union)
        let positions = try #require(union.positions(of: added, within: union.count))
        #expect(positions.map { union[$0].recipe } == added.map(\.recipe))
        #expect((union.count == set.count) == (set.positions(of: added, within: 64) != nil))
        #expect(VariantSet(text: union.text) == union)
    }

    @Test func addsAtMost64Variants() throws {
        let most = try VariantSet((1...63).map { try VariantSetTests.variant("v\($0)") })
        let other = VariantSet(main: Recipe())
        let full = try #require(most.adding(other))
        #expect(full.count == 64 && full.adding(other) == full)
        #expect(full.adding(VariantSet(main: Recipe(quality: 1))) == nil)
        #expect(full.positions(of: other, within: 63) == nil)
    }

    @Test func entryStepsApplyToMain() throws {
        var recipe = Recipe()
        recipe.transformations = [.flip(.horizontal), .resize(.fit(width: 800, height: nil))]
        func main(_ extras: EntryExtras, limited: Bool = false) -> [String]? {
            var recipe = recipe
            if limited { recipe.scaleDown(toPixels: 99) }
            return VariantSet(main: recipe).applying(extras).main?.transformations
                .map(\.description)
        }
        let crop = CropGeometry(width: 5, height: 6, place: .gravity(.center))
        #expect(
            main(EntryExtras(main: RecipeChanges(crop: crop))) == [
                "crop=5x6", "flip=h", "resize=800",
            ])
        #expect(
            main(EntryExtras(main: RecipeChanges(crop: crop)), limited: true)
                == ["resize=99@", "crop=5x6", "flip=h", "resize=800"])
        #expect(
            main(EntryExtras(main: RecipeChanges(resize: .fit(width: 20, height: nil), crop: crop)))
                == ["crop=5x6", "flip=h", "resize=20"])
        #expect(main(EntryExtras(main: RecipeChanges(steps: [.rotate(.half)]))) == ["rotate=180"])
        #expect(main(EntryExtras(main: RecipeChanges(steps: [])), limited: true) == ["resize=99@"])
        let other = CropGeometry(width: 1, height: 2, place: .offset(x: 3, y: 4))
        #expect(
            main(
                EntryExtras(main: RecipeChanges(steps: [.rotate(.half), .crop(other)], crop: crop)))
                == ["rotate=180", "crop=5x6"])
    }

    @Test func ownVariantsFollowTheSelection() throws {
        let web = try VariantSetTests.variant("web")
        let own = try VariantSetTests.variant("own")
        let set = try VariantSet([RequestedVariant(name: .main, recipe: Recipe()), web])
        func names(_ selection: VariantSelection?) -> [String] {
            set.applying(
                EntryExtras(
                    main: RecipeChanges(quality: 9), variants: selection, ownVariants: [own])
            )
            .map(\.name.text)
        }
        #expect(names(nil) == ["main", "web", "own"])
        #expect(names(.position(1)) == ["web", "own"])
        #expect(names([]) == ["own"])
    }

    @Test func extrasReportVariantChanges() throws {
        let own = try VariantSetTests.variant("own")
        #expect(EntryExtras(main: RecipeChanges(steps: [])).changesVariants)
        #expect(EntryExtras(ownVariants: [own]).changesVariants)
        #expect(!EntryExtras(timeToLive: .zero).changesVariants)
        #expect(EntryExtras(main: RecipeChanges(encoding: .same)).changesVariants)
        #expect(EntryExtras(main: RecipeChanges(quality: 85)).changesVariants)
        #expect(EntryExtras(main: RecipeChanges(animation: .keep)).changesVariants)
        #expect(EntryExtras(variants: .position(0)).changesVariants)
    }
}

import Foundation
import Testing

@testable import EntryQueue
@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct VariantSetTableTests {
    private static let folder = FileManager.default.temporaryDirectory.path

    private static func main(_ quality: Int) -> VariantSet {
        VariantSet(main: Recipe(quality: quality))
    }

    @Test func equalSetsHaveOneNumber() throws {
        let table = VariantSetTable(Self.main(85), folder: Self.folder)
        #expect(try table.number(of: Self.main(85)) == 0)
        let small = try table.number(of: Self.main(20))
        #expect(try table.number(of: Self.main(20)) == small && small != 0)
        #expect(try table.set(small) == Self.main(20))
        let both = try #require(try table.union(0, small))
        #expect(try table.set(both).map(\.name.text) == ["main", "main~2"])
        #expect(try table.union(0, small) == both)
        #expect(try table.union(both, small) == both && table.union(both, 0) == both)
        // The first line's variant has the name.
        let other = try #require(try table.union(small, 0))
        #expect(try table.set(other).first?.recipe.quality == 20)
        #expect(table.spilledCount == 0)
    }

    /// A list may have different steps in each of a million lines.
    @Test func manySetsAreKeptInAFile() throws {
        let table = VariantSetTable(Self.main(85), folder: Self.folder, maximumBytes: 40_000)
        func set(_ number: Int) -> VariantSet {
            VariantSet(main: Recipe()).applying(
                EntryExtras(
                    main: RecipeChanges(
                        crop: CropGeometry(width: 1 + number, height: 2, place: .offset(x: 3, y: 4))
                    )))
        }
        let numbers = try (0..<20_000).map { try table.number(of: set($0)) }
        #expect(table.spilledCount > 19_000 && Set(numbers).count == numbers.count)
        for number in [0, 1, 10_000, 19_999] {
            #expect(try table.set(numbers[number]) == set(number))
            let both = try #require(try table.union(numbers[number], numbers[7]))
            let recipes = try table.set(both).map(\.recipe)
            #expect(recipes == [set(number).primary.recipe, set(7).primary.recipe])
            #expect(try table.union(both, numbers[7]) == both)
        }
    }

    @Test func refusesMoreVariantsThanASetHas() throws {
        let variants = try (1...64).map {
            RequestedVariant(name: try #require(VariantName("v\($0)")), recipe: Recipe(quality: $0))
        }
        let table = VariantSetTable(try VariantSet(variants), folder: Self.folder)
        #expect(try table.union(0, table.number(of: Self.main(85))) == nil)
        // It has this recipe, but the name is new.
        #expect(try table.union(0, table.number(of: Self.main(1))) == nil)
    }
}

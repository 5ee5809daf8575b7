import PrefetchModel
import SeededRandom
import Testing

@testable import Exporting

@Suite(.timeLimit(.minutes(15))) struct MirrorNameTests {
    /// Compared with `wget -x` (1.21.3) down to the first empty path; the others are our rules.
    @Test(arguments: [
        ("http://e.example/a/b.jpg", "e.example/a/b.jpg"),
        ("http://e.example:8080/a.jpg", "e.example:8080/a.jpg"),
        ("http://e.example/", "e.example/index.html"),
        ("http://e.example/a/?id=1", "e.example/a/index.html?id=1"),
        ("http://e.example/pic%20one.PNG?w=200&h=100", "e.example/pic one.PNG?w=200&h=100"),
        ("http://e.example/a%2Fb.jpg", "e.example/a%2Fb.jpg"),
        ("http://e.example/a.jpg?u=x/y", "e.example/a.jpg?u=x%2Fy"),
        ("http://e.example/a%0Ab.jpg", "e.example/a%0Ab.jpg"),
        ("http://e.example", "e.example/index.html"),
        ("http://e.example//a///b.jpg", "e.example/a/b.jpg"),
        ("http://e.example/%2e%2e/%2E%2E/etc/passwd", "e.example/%2E%2E/%2E%2E/etc/passwd"),
        ("http://e.example/a..%2F..%2Fetc", "e.example/a..%2F..%2Fetc"),
        ("http://e.example/%2e/a", "e.example/%2E/a"),
        ("http://e.example/a%00.jpg", "e.example/a%00.jpg"),
        ("http://e.example/%C3%A9.jpg", "e.example/é.jpg"),
        ("http://e.example/%E9.jpg", "e.example/%E9.jpg"),
        ("http://e.example/%C2%85%7F.jpg", "e.example/%C2%85%7F.jpg"),
        ("http://e.example/CON.jpg", "e.example/%43ON.jpg"),
        ("http://e.example/aux/nul", "e.example/%61ux/%6Eul"),
        ("http://e.example/com1.tar.gz", "e.example/%63om1.tar.gz"),
        ("http://e.example/console.jpg", "e.example/console.jpg"),
        ("http://e.example/a:b*c?d", "e.example/a:b*c?d"),
        ("http://e.example/.prefetch-export", "e.example/%2Eprefetch-export"),
        ("http://user:secret@e.example/a.jpg", "e.example/a.jpg"),
        ("http://[::1]:81/a.jpg", "[::1]:81/a.jpg"),
    ])
    func namesFilesAsWget(_ url: String, _ path: String) {
        #expect(ExportPlan.path(of: .fixture(url), ExportRules(layout: .mirror)) == path)
    }

    @Test(arguments: [
        ("http://e.example:8080/a:b*c.jpg?d", "e.example+8080/a%3Ab%2Ac.jpg@d"),
        ("http://e.example/a.jpg.", "e.example/a.jpg%2E"),
        ("http://e.example/a.jpg%20", "e.example/a.jpg%20"),
        ("http://e.example/a%5Cb", "e.example/a%5Cb"),
    ])
    func encodesForWindows(_ url: String, _ path: String) {
        let rules = ExportRules.fixture(.mirror) { $0.isCaseInsensitive = true }
        #expect(ExportPlan.path(of: .fixture(url), rules) == path)
    }

    @Test func shortensLongNames() throws {
        let long = String(repeating: "é", count: 200)
        let url = "http://e.example/\(long).jpeg"
        let path = try #require(ExportPlan.path(of: .fixture(url), ExportRules(layout: .mirror)))
        let name = try #require(path.split(separator: "/").last)
        #expect((254...255).contains(name.utf8.count))
        #expect(name.hasSuffix(".jpeg") && name.hasPrefix("éé") && name.contains("~"))
        let other = ExportPlan.path(
            of: .fixture("http://e.example/\(long)x.jpeg"), ExportRules(layout: .mirror))
        #expect(other != path)
    }

    @Test func refusesAPathThatIsTooLong() {
        let url = "http://e.example/" + String(repeating: "abcdefgh/", count: 500)
        #expect(ExportPlan.path(of: .fixture(url), ExportRules(layout: .mirror)) == nil)
    }

    /// Random bytes of URLs never lead out of the folder.
    @Test(arguments: 0..<20) func neverLeavesItsFolder(_ seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let pieces = [
            "..", "%2e", ".", "/", "%2F", "%5c", "\\", "%00", "a", "CON", "%ff", "~", "*", " ", "é",
        ]
        for layout in [ExportLayout.mirror, .imagefolder] {
            let rules = ExportRules.fixture(layout) { $0.isCaseInsensitive = seed % 2 == 0 }
            for _ in 0..<200 {
                let tail = (0..<Int.random(in: 0..<12, using: &random)).map { _ in
                    pieces.randomElement(using: &random) ?? ""
                }.joined()
                guard let path = ExportPlan.path(of: .fixture("http://h.example/" + tail), rules)
                else { continue }
                let names = path.split(separator: "/", omittingEmptySubsequences: false)
                #expect(
                    names.allSatisfy {
                        !$0.isEmpty && $0 != "." && $0 != ".." && $0.utf8.count <= 255
                            && !$0.utf8.contains(0)
                    }, "\(tail) → \(path)")
            }
        }
    }
}

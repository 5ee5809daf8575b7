import Foundation
import Glibc
import TestSupport
import Testing

/// `run --max-size` and `run --prune` keep a cache within its limits automatically.
@Suite(.timeLimit(.minutes(15)))
struct MaxSizeTests {
    /// Serves different images of one block each on disk.
    private func withImages(
        _ body: (Origin, Workspace, (Range<Int>) -> [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.serve { request in
                Int(request.path.dropFirst()).map { .image(Fixtures.png(seed: $0)) } ?? .notFound
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                try await body(origin, workspace) { numbers in
                    numbers.map { origin.url("/\($0)") }
                }
            }
        }
    }

    private func numbers(_ workspace: Workspace) async throws -> [Int] {
        try await workspace.query("SELECT key FROM resource").compactMap {
            $0[0].flatMap { Int($0.split(separator: "/").last ?? "") }
        }.sorted()
    }

    @Test func evictsUnlistedImages() async throws {
        try await withImages { origin, workspace, urls in
            let first = try await workspace.prefetch(urls(0..<20), "--max-size", "80KiB")
            #expect(first.summary.outcomes == ["downloaded": 20], "\(first.result)")
            let second = try await workspace.prefetch(urls(10..<25), "--max-size", "80KiB")
            #expect(
                second.summary.outcomes == ["fresh": 10, "downloaded": 5], "\(second.result)")
            let left = try await numbers(workspace)
            // Evicts down to nine tenths of the size that leaves room for one more, repeatedly.
            #expect(left.count <= 20 && Set(left).isSuperset(of: 10..<25), "\(left)")
            // The rest of the first list is evicted; the second list is complete.
            let third = try await workspace.prefetch(urls(25..<45), "--max-size", "80KiB")
            #expect(third.summary.outcomes == ["downloaded": 20], "\(third.result)")
            #expect(try await numbers(workspace) == Array(25..<45))
        }
    }

    @Test func keepsListedImages() async throws {
        try await withImages { origin, workspace, urls in
            let run = try await workspace.prefetch(
                urls(0..<40), "--max-size", "40KiB", "-j", "2")
            #expect(run.summary.outcomes == ["downloaded": 10, "failed": 30], "\(run.result)")
            #expect(run.result.status == 1, "\(run.result)")
            #expect(run.summary.reasons["disk"] == 30)
            #expect(
                run.result.error.contains("--max-size leaves no room for it"), "\(run.result)")
            #expect(try await numbers(workspace).count == 10)
            // The failures are not recorded, and the images are stored once there is room.
            #expect(try await workspace.query("SELECT * FROM failure").isEmpty)
            // Later runs request one new image each, and say nothing new.
            for order in ["fifo", "lifo", "random"] {
                let count = origin.requests.count
                let again = try await workspace.prefetch(
                    urls(0..<40), "--max-size", "40KiB", "--order", order, "--fail-on", "new")
                #expect(
                    again.summary.outcomes == ["fresh": 10, "failed": 30], "\(again.result)")
                #expect(again.result.status == 0 && again.result.error.contains("disk (known)"))
                #expect(origin.requests.count == count + 1, "\(again.result)")
            }
            let plan = try await workspace.run(
                "plan", try workspace.manifest(urls(0..<40)), "--max-size", "40KiB", "--json")
            #expect(plan.output.contains(#""requests":1,"without_room":29,"#), "\(plan)")
            // Lost files leave room for as many.
            let lost = try await workspace.query(
                """
                SELECT 'content/' || substr(name, 1, 2) || '/' || name || '.png'
                FROM (SELECT lower(hex(sha256)) AS name FROM variant LIMIT 3)
                """)
            for file in lost.compactMap({ $0[0] }) { try workspace.removeFile(file) }
            for requests in [3, 1] {
                let count = origin.requests.count
                let again = try await workspace.prefetch(
                    urls(0..<40), "--max-size", "40KiB", "--fail-on", "new")
                #expect(again.summary["failed"] == 30, "\(again.result)")
                #expect(again.result.status == 0, "\(again.result)")
                #expect(origin.requests.count == count + requests, "\(again.result)")
            }
            // The same files again take no room.
            let forced = try await workspace.prefetch(
                urls(0..<40), "--max-size", "40KiB", "--refresh", "force", "--fail-on", "new")
            #expect(forced.summary.outcomes == ["downloaded": 10, "failed": 30])
            #expect(forced.result.status == 0, "\(forced.result)")
            let next = try await workspace.prefetch(urls(0..<40), "--max-size", "160KiB")
            #expect(
                next.summary.outcomes == ["fresh": 10, "downloaded": 30], "\(next.result)")
        }
    }

    /// Large images on both workers: each waits its turn.
    @Test func severalWorkersWaitForRoom() async throws {
        try await withImages { origin, workspace, urls in
            // Eight blocks each; the limit is sixty.
            for number in 0..<6 {
                let image = Fixtures.png(width: 100, height: 100, seed: number + 1, isNoise: true)
                origin.serve("/large\(number)", .image(image))
            }
            let first = try await workspace.prefetch(urls(0..<120))
            #expect(first.summary.outcomes == ["downloaded": 120], "\(first.result)")
            let large = (0..<6).map { origin.url("/large\($0)") }
            let run = try await workspace.prefetch(large, "--max-size", "240KiB")
            #expect(run.summary.outcomes == ["downloaded": 6], "\(run.result)")
        }
    }

    /// Identifiers of evicted resources are reused; their new owners stay.
    @Test func keepsNewImagesWithReusedIdentifiers() async throws {
        try await withImages { _, workspace, urls in
            _ = try await workspace.prefetch(urls(0..<15))
            _ = try await workspace.prefetch(urls(15..<18))
            _ = try await workspace.prefetch(urls(0..<15), "--refresh", "all")
            let run = try await workspace.prefetch(urls(20..<60), "--max-size", "72KiB")
            let stored = run.summary["downloaded"]
            #expect(stored == 18 && run.summary["failed"] == 22, "\(run.result)")
            #expect(try await numbers(workspace).allSatisfy { $0 >= 20 })
            #expect(try await numbers(workspace).count == stored)
        }
    }

    /// Even if nothing is stored, since the limit may be new. The lists of a broken program cost no
    /// image.
    @Test func warmRunEnforcesLimit() async throws {
        try await withImages { _, workspace, urls in
            _ = try await workspace.prefetch(urls(0..<30))
            for lines in [[], ["\"http://a.example/1.png"]] {
                let broken = try await workspace.prefetch(lines, "--max-size", "40KiB")
                #expect(broken.result.status == 1, "\(broken.result)")
                #expect(try await numbers(workspace).count == 30, "\(broken.result)")
            }
            let run = try await workspace.prefetch(urls(0..<10), "--max-size", "60KiB")
            #expect(run.summary.outcomes == ["fresh": 10], "\(run.result)")
            let left = try await numbers(workspace)
            #expect(left.count == 13 && Set(left).isSuperset(of: 0..<10), "\(left)")
        }
    }

    /// Every image is listed and no block is free, but each new body is stored.
    @Test func changedImagesReplaceTheirFilesInFullCache() async throws {
        try await withImages { origin, workspace, urls in
            _ = try await workspace.prefetch(urls(0..<10), "--max-size", "40KiB")
            origin.serve { request in
                Int(request.path.dropFirst()).map { .image(Fixtures.png(seed: $0 + 1000)) }
                    ?? .notFound
            }
            let run = try await workspace.prefetch(
                urls(0..<10), "--max-size", "40KiB", "--refresh", "all")
            #expect(run.summary.outcomes == ["downloaded": 10], "\(run.result)")
            let files = try await workspace.query("SELECT files, blocks FROM usage")
            #expect(files.map { $0.compactMap(\.self) } == [["10", "10"]], "\(files)")
            // A listed image's variant of another recipe stays, even if its new variant finds no
            // room.
            let jpeg = try await workspace.prefetch(
                urls(0..<10), "--encode", "jpeg", "--max-size", "40KiB")
            #expect(try await numbers(workspace) == Array(0..<10), "\(jpeg.result)")
        }
    }

    /// The limit leaves room for two more images: superseded variants are evicted in favour of new
    /// ones.
    @Test func evictsVariantsSupersededByRun() async throws {
        try await withImages { origin, workspace, urls in
            _ = try await workspace.prefetch(urls(0..<10))
            let run = try await workspace.prefetch(
                urls(0..<10), "--encode", "jpeg", "--max-size", "48KiB")
            #expect(run.summary.outcomes == ["downloaded": 10], "\(run.result)")
            #expect(run.result.error.contains("pruned 0 images ("), "\(run.result)")
            #expect(try await numbers(workspace) == Array(0..<10))
        }
    }

    @Test func tooLargeImageLeavesRoomForSmallOnes() async throws {
        try await withImages { origin, workspace, urls in
            _ = try await workspace.prefetch(urls(0..<10))
            // About eight blocks.
            origin.serve(
                "/large", .image(Fixtures.png(width: 100, height: 100, seed: 1, isNoise: true)))
            let list = [origin.url("/large")] + urls(0..<14)
            let run = try await workspace.prefetch(list, "--max-size", "56KiB", "-j", "1")
            #expect(
                run.summary.outcomes == ["fresh": 10, "downloaded": 4, "failed": 1],
                "\(run.result)")
            #expect(run.result.error.contains("--max-size leaves no room for it"))
            // One that would not fit into an empty cache is blacklisted until the limit is larger.
            for (limit, outcome) in [
                ("24KiB", "failed"), ("24KiB", "blacklisted"), ("20KiB", "blacklisted"),
                ("64KiB", "downloaded"),
            ] {
                let small = try await workspace.prefetch(
                    [origin.url("/large")], "--max-size", limit, "--cache-dir", "small")
                #expect(small.summary.outcomes == [outcome: 1], "\(limit): \(small.result)")
            }
        }
    }

    // MARK: --prune

    /// An empty list may be a mistake of its producer.
    @Test func prunesNothingIfListHasNoStoredImage() async throws {
        try await withImages { _, workspace, urls in
            _ = try await workspace.prefetch(urls(0..<5))
            let month = 31 * 86_400_000
            _ = try await workspace.query(
                "UPDATE listing SET first_at = first_at - \(month), last_at = last_at - \(month)")
            _ = try await workspace.query(
                "UPDATE resource SET validated_at = validated_at - \(month)")
            _ = try await workspace.query(
                "UPDATE freshness SET validated_at = validated_at - \(month)")
            _ = try await workspace.query(
                "UPDATE property SET value = value - \(month) WHERE name = 'listings_begin'")
            for list in [[], ["nonsense"], urls(90..<91)] {
                let run = try await workspace.prefetch(
                    list, "--prune", "unlisted-for=30d", "--offline")
                #expect(!run.result.error.contains("pruned"), "\(run.result)")
            }
            // Nor does a month without runs.
            let pruned = try await workspace.run("prune", "--unlisted-for", "30d")
            #expect(pruned.error.contains("removed 0 images"), "\(pruned)")
            #expect(try await numbers(workspace) == Array(0..<5))
            let run = try await workspace.prefetch(urls(0..<1), "--prune", "unlisted-for=30d")
            #expect(run.result.error.contains("pruned 4 images"), "\(run.result)")
        }
    }

    @Test func prunesOnceADay() async throws {
        try await withImages { origin, workspace, urls in
            let first = try await workspace.prefetch(
                urls(0..<20), "--prune", "max-files=10,low-water=80%")
            #expect(first.summary.outcomes == ["downloaded": 20], "\(first.result)")
            #expect(
                first.result.error.contains("pruned 12 images (12 variants)"), "\(first.result)")
            #expect(try await numbers(workspace).count == 8)
            let second = try await workspace.prefetch(urls(0..<20), "--prune", "max-files=10")
            #expect(!second.result.error.contains("pruned"), "\(second.result)")
            #expect(try await numbers(workspace).count == 20)
            _ = try await workspace.query(
                "UPDATE property SET value = value - 86400000 WHERE name = 'last_pruned'")
            let third = try await workspace.prefetch(urls(0..<5), "--prune", "max-files=10")
            #expect(third.result.error.contains("pruned 11 images"), "\(third.result)")
            // Recently listed images stay.
            #expect(Set(try await numbers(workspace)).isSuperset(of: 0..<5))
        }
    }
}

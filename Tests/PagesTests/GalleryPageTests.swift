import PrefetchModel
import TestSupport
import Testing

@testable import Pages

@Suite(.timeLimit(.minutes(15)))
struct GalleryPageTests {
    private static let now = Timestamp(seconds: 1_795_250_000)

    private func image(_ number: Int, host: String, path: String) throws -> GalleryImage {
        let digest = try #require(ContentDigest(hexadecimal: String(repeating: "0a", count: 32)))
        let stored = StoredImage(
            digest: digest, format: .webp, widthInPixels: 64, heightInPixels: 48,
            size: ByteCount(1234))
        var image = GalleryImage(
            url: host + path, host: host, fetchedAt: Timestamp(seconds: 1_795_000_000),
            expiresAt: number % 2 == 0 ? nil : Timestamp(seconds: 1_796_000_000), isFresh: true)
        image.add(path, stored, isSuperseded: true)
        image.add("main", stored, isSuperseded: false)
        image.preview = PageImage(Array(repeating: 0xFF, count: 2000), isBlurred: true)
        image.thumbnail = "thumbnails/\(digest).jpg"
        return image
    }

    private func gallery(_ counts: [Int]) -> Gallery {
        Gallery(
            cacheDirectory: "/c",
            hosts: counts.enumerated().map { ("https://\($0.offset).example", $0.element) },
            now: Self.now)
    }

    @Test func hostsBeginOnTheirPages() {
        let gallery = gallery([199, 1, 1, 400, 5])
        #expect(gallery.hosts.map(\.page) == [1, 1, 2, 2, 4])
        #expect(gallery.images == 606 && gallery.pages == 4)
    }

    @Test func emptyGalleryHasAPage() async throws {
        let page = gallery([]).page(1, of: [], isLast: true)
        #expect(try await PageJudge.complaints(page) == "")
        #expect(Gallery.isOwn(Array(page.prefix(Gallery.headBytes))))
        #expect(!Gallery.isOwn(Array("<!DOCTYPE html>\n<html lang=\"en\"></html>".utf8)))
    }

    @Test func largestPageStaysWithinItsLimit() async throws {
        let long = String(repeating: "&\u{202E}\"<", count: 2000)
        let images = try (0..<Gallery.imagesPerPage).map {
            try image($0, host: "https://\($0)\(long)", path: "/\(long)")
        }
        let counts = Array(repeating: 1, count: 5000)
        let page = gallery(counts).page(1, of: images, isLast: false)
        #expect(page.count <= ReportPage.mostBytes, "\(page.count)")
        #expect(try await PageJudge.complaints(page) == "")
    }

    @Test func pagesLinkToTheirNeighbours() async throws {
        let images = [try image(1, host: "https://0.example", path: "/a/b.jpg?x=1")]
        for (number, isLast, links) in [
            (1, false, ["page-2.html", "page-5.html"]),
            (3, false, ["index.html", "page-2.html", "page-4.html", "page-5.html"]),
            (5, true, ["index.html", "page-4.html"]),
        ] {
            let page = gallery([1000]).page(number, of: images, isLast: isLast)
            let html = String(decoding: page, as: UTF8.self)
            #expect(try await PageJudge.complaints(page) == "")
            let found = html.matches(of: /href="([^"]*)"/).map { String($0.output.1) }
                .filter { !$0.hasPrefix("data:") }
            #expect(found == links + links, "page \(number)")
            #expect(html.contains(">/a/b.jpg?x=1</span>") && html.contains("alt=\"b.jpg\""))
        }
    }
}

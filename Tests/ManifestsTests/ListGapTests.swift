import PrefetchModel
import Testing

@testable import Manifests

/// Lines that may hide images, in every format.
struct ListGapTests {
    private static let url = "https://a.example/1.png"

    /// A list, and the line that makes it partial.
    struct Sample: Sendable {
        let format: ManifestFormat
        let text: String
        let gap: Int?
    }

    private static let samples: [Sample] = [
        Sample(format: .text, text: "\(url)\n\n# \n", gap: nil),
        Sample(format: .text, text: "url\n\(url)\n", gap: nil),
        Sample(format: .text, text: "\(url)\ndata:image/png;base64,AA\n", gap: nil),
        Sample(format: .text, text: "\(url)\nno url\n", gap: 2),
        Sample(format: .text, text: "\(url)\nhttps//b.example/\n", gap: 2),
        Sample(format: .text, text: "\(url)\nhtps://b.example/\n", gap: 2),
        Sample(format: .text, text: "\(url) priority=none\n", gap: 1),
        Sample(format: .text, text: "\(url) title=\"x\n", gap: 1),
        Sample(format: .csv, text: "url,a\n,b\n\(url),c\n", gap: nil),
        Sample(format: .csv, text: "a,url\nb,\nc,\(url)\n", gap: nil),
        Sample(format: .csv, text: "a,url\nb\nc,\(url)\n", gap: 2),
        Sample(format: .csv, text: "url,a\n\(url),\"b\n\(url),c\n", gap: 2),
        Sample(format: .csv, text: "url\n\(url),b\n", gap: 2),
        Sample(format: .tsv, text: "url\ta\n\t\n\(url)\tb\n", gap: nil),
        Sample(format: .jsonl, text: "{\"url\":null}\n{\"url\":\"\"}\n", gap: nil),
        Sample(format: .jsonl, text: "{\"url\":\"\(url)\"}\n{\"a\":1}\n", gap: 2),
        Sample(format: .jsonl, text: "{\"url\":\"\(url)\"}\n{\"url\":1}\n", gap: 2),
        Sample(format: .jsonl, text: "{\"url\":\"\(url)\"}\n{\"url\":\"https:", gap: 2),
        Sample(
            format: .sitemap,
            text: "<urlset><url><loc>\(url)</loc><image><loc></loc></image></url></urlset>",
            gap: nil),
        Sample(format: .csv, text: "image_url,url\n,\(url)\n\(url),\n", gap: 2),
        Sample(format: .csv, text: "url,key\n,k\n\(url),l\n", gap: nil),
        Sample(
            format: .jsonl,
            text: "{\"image_url\":null,\"url\":\"\(url)\"}\n{\"image_url\":\"\(url)\"}\n", gap: 1),
        Sample(format: .jsonl, text: "{\"url\":[]}\n", gap: nil),
        Sample(
            format: .jsonl, text: "{\"url\":[\"\(url)\",\"data:image/png;base64,AA\"]}\n", gap: nil),
        Sample(
            format: .jsonl, text: "{\"url\":[\"data:image/png;base64,AA\",\"\(url)\"]}\n", gap: nil),
        Sample(
            format: .sitemap,
            text: "<sitemapindex>\n<sitemap><lastmod>2020</lastmod></sitemap></sitemapindex>",
            gap: 2),
        Sample(
            format: .sitemap,
            text: "<sitemapindex>\n<sitemap><loc></loc></sitemap></sitemapindex>", gap: 2),
        Sample(
            format: .sitemap,
            text: "<urlset><url>\n<image><loc>no url</loc></image></url></urlset>", gap: 2),
    ]

    @Test(arguments: samples)
    func aLineWhoseImageIsUnknownMakesAListPartial(sample: Sample) throws {
        var options = ManifestOptions(format: sample.format)
        options.followsIndexes = true
        let folder = try TemporaryFolder()
        let path = try folder.file("list", sample.text.utf8)
        let reader = try ManifestReader(path: path, options: options)
        while try reader.nextBatch() != nil {}
        #expect(reader.gap?.place == sample.gap.map { "\(path):\($0)" }, "\(sample)")
    }

    @Test func eachOmissionIsDecided() {
        for omission in ListOmission.allCases {
            let gap = ListGap(omission, at: "list:1", "why")
            #expect((gap != nil) == omission.hidesImages, "\(omission)")
        }
    }
}

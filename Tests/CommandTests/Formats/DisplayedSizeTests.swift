import Foundation
import TestSupport
import Testing

/// All orientations, odd sides and output formats: another decoder shows the same picture, and all
/// commands state its sides as displayed.
@Suite(.timeLimit(.minutes(15)))
struct DisplayedSizeTests {
    private static let kinds = ["jpeg", "png", "webp"]
    private static let sides = [(35, 22), (48, 32)]

    /// One picture without symmetry in each of the kinds, with each orientation as a tag.
    private static let painter = """
        import sys
        from PIL import Image
        for kind in ["jpeg", "png", "webp"]:
            for width, height in [(35, 22), (48, 32)]:
                shades = [(255 * x // width, 255 * y // height, 255 - 200 * x * y // (width * height))
                    for y in range(height) for x in range(width)]
                picture = Image.new("RGB", (width, height))
                picture.putdata(shades)
                for orientation in range(1, 9):
                    exif = Image.Exif()
                    exif[0x010F], exif[0x0112] = "Maker", orientation
                    picture.save(f"{kind}-{width}-{orientation}", kind, quality=92, exif=exif)
        """

    /// Compares files with their sources as displayed. A line for each: width, height, tag, mean
    /// difference of samples after resizing to one size, and number of other EXIF tags.
    private static let viewer = """
        import subprocess, sys
        from PIL import Image, ImageChops, ImageOps, ImageStat
        def shown(path):
            with open(path, "rb") as file:
                if file.read(12)[4:8] == b"ftyp":
                    # It applies no turn, so that the rows must need none.
                    subprocess.run(["avifdec", path, "shown.png"], check=True, capture_output=True)
                    path = "shown.png"
            picture = Image.open(path)
            exif = picture.getexif()
            others = len(set(exif) - {0x0112})
            return ImageOps.exif_transpose(picture).convert("RGB"), exif.get(0x0112, 1), others
        for source, path in zip(sys.argv[1::2], sys.argv[2::2]):
            picture, tag, others = shown(path)
            wanted = shown(source)[0].resize(picture.size)
            differences = ImageStat.Stat(ImageChops.difference(picture, wanted)).mean
            print(*picture.size, tag, max(differences), others)
        """

    private static let outputs: [(options: [String], isThroughPixels: Bool)] = [
        ([], false), (["--quality", "40"], false), (["--encode", "original"], false),
        (["--encode", "jpeg"], false), (["--encode", "png"], false), (["--encode", "webp"], false),
        (["--encode", "avif"], false), (["--encode", "auto"], false),
        (["--resize", "20x20"], true),
        (["--encode", "webp", "--transform", "flip=h,flip=h"], true),
    ]

    @Test(arguments: outputs.indices)
    func everyPictureIsShownAsItsSource(output: Int) async throws {
        let (options, isThroughPixels) = DisplayedSizeTests.outputs[output]
        // Unchanged bytes are not stripped.
        let ways =
            options.contains("original") ? [[]] : ["safe", "all", "none"].map { ["--strip", $0] }
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let made = try await PythonServer.run(
                    DisplayedSizeTests.painter, [], folder: workspace.folder)
                try #require(made.status == 0, "\(made.text)")
                var names: [String] = []
                for kind in DisplayedSizeTests.kinds {
                    for (width, _) in DisplayedSizeTests.sides {
                        names += (1...8).map { "\(kind)-\(width)-\($0)" }
                    }
                }
                for name in names {
                    let file = URL(filePath: workspace.folder + "/" + name)
                    let headers = [("Cache-Control", "max-age=3600")]
                    origin.serve(
                        "/" + name,
                        Response(headers: headers, body: [UInt8](try Data(contentsOf: file))))
                }
                for stripping in ways {
                    try await check(
                        names, at: origin, options + stripping, isThroughPixels, workspace)
                    try workspace.removeCache()
                }
            }
        }
    }

    private func check(
        _ names: [String], at origin: Origin, _ flags: [String], _ isThroughPixels: Bool,
        _ workspace: Workspace
    ) async throws {
        let lines = names.map { origin.url("/" + $0) }
        let cold = try await workspace.finish(
            workspace.prefetchCommand(lines, flags).run(), entries: names.count)
        #expect(cold.result.status == 0, "\(cold.result)")
        let entries = cold.report.entries.sorted { $0.line < $1.line }
        let paths = try entries.map { try #require($0.path) }
        let viewed = try await PythonServer.run(
            DisplayedSizeTests.viewer,
            zip(names, paths).flatMap { [$0, workspace.cache + "/" + $1] },
            folder: workspace.folder)
        try #require(viewed.status == 0, "\(viewed.text)")
        let views = viewed.text.split(separator: "\n").map {
            $0.split(separator: " ").compactMap { Double($0) }
        }
        try #require(views.count == names.count)
        for (entry, (name, view)) in zip(entries, zip(names, views)) {
            #expect(
                [entry.width, entry.height] == [Int(view[0]), Int(view[1])], "\(name) \(flags)")
            let tag = view[2] == 1 ? nil : Int(view[2])
            #expect(entry.orientation == tag, "\(name) \(flags)")
            #expect(view[3] < 12, "\(name) \(flags): \(view[3])")
            let isStripped = flags.contains("safe") || flags.contains("all")
            #expect(view[4] == 0 || !isStripped, "\(name) \(flags)")
            let isConverted = !name.hasPrefix(entry.format ?? "")
            if isConverted || isThroughPixels { #expect(tag == nil, "\(name) \(flags)") }
            guard !flags.contains("--resize") else { continue }
            let parts = name.split(separator: "-").compactMap { Int($0) }
            let isTransposed = parts[1] >= 5
            let height = parts[0] == 35 ? 22 : 32
            #expect(view[0] == Double(isTransposed ? height : parts[0]), "\(name) \(flags)")
        }
        try await expectSame(entries, lines, flags, workspace)
        try await workspace.judge()
    }

    /// A fresh run, `list` and the database state the same sides and orientation.
    private func expectSame(
        _ entries: [Report.Entry], _ lines: [String], _ flags: [String], _ workspace: Workspace
    ) async throws {
        let warm = try await workspace.finish(workspace.prefetchCommand(lines, flags).run())
        let fresh = warm.report.entries.sorted { $0.line < $1.line }
        #expect(fresh.allSatisfy { $0.outcome == "fresh" }, "\(warm.result)")
        #expect(fresh.map(\.orientation) == entries.map(\.orientation))
        #expect(fresh.map(\.width) == entries.map(\.width))
        let listed = try await workspace.run("list", "--json").jsonLines()
        let byURL = Dictionary(
            listed.map { ($0["url"] as? String ?? "", $0) }, uniquingKeysWith: { first, _ in first }
        )
        for (entry, url) in zip(entries, lines) {
            let row = try #require(byURL[url])
            #expect(row["width"] as? Int == entry.width && row["height"] as? Int == entry.height)
            #expect(row["orientation"] as? Int == entry.orientation)
        }
        #expect(
            try await workspace.query(
                "SELECT count(*) FROM resource WHERE (source_width > source_height) <> (url GLOB '*-[1-4]')"
            ) == [["0"]])
    }
}

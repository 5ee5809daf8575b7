import Foundation
import TestSupport
import Testing

/// Pictures made and looked at by another program.
private struct Painter {
    let workspace: Workspace

    /// The properties that another decoder reports for a file.
    struct Look: Decodable {
        let format: String
        let mode: String
        let size: [Int]
        let exif: [Int]
        let hasPosition: Bool
        let orientation: Int
        let profile: Int
        let comment: Bool
        /// The corners of the displayed picture from the top left, by rows.
        let corners: [[Int]]
    }

    private func python(_ script: String, _ arguments: String...) async throws -> String {
        let answer = try await PythonServer.run(script, arguments, folder: workspace.folder)
        try #require(answer.status == 0, "\(answer.text)")
        return answer.text
    }

    /// 64×48 pixels, a quarter each of red, lime, blue and yellow, with EXIF (maker, orientation
    /// and position), a profile (`sRGB`, another or none) and a comment.
    func picture(
        format: String, orientation: Int = 1, profile: String = "none", mode: String = "RGB"
    ) async throws -> [UInt8] {
        _ = try await python(
            """
            import sys
            from PIL import Image, ImageCms, PngImagePlugin
            form, orientation, profile, mode = sys.argv[1:]
            picture = Image.new("RGB", (64, 48))
            for n, colour in enumerate([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)]):
                picture.paste(colour, (n % 2 * 32, n // 2 * 24, n % 2 * 32 + 32, n // 2 * 24 + 24))
            if mode == "LA":
                picture = Image.new("LA", (64, 48), (0, 0))
            elif mode == "RGBA":
                picture.putalpha(0)
            exif = Image.Exif()
            exif[0x010F], exif[0x0112] = "Maker", int(orientation)
            exif[0x8825] = {1: "N", 2: (50.0, 7.0, 0.0)}
            icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
            if profile == "other":
                icc = icc.replace(b"rXYZ", b"tXYZ").replace(b"gXYZ", b"rXYZ").replace(b"tXYZ", b"gXYZ")
            options = {"exif": exif}
            if profile != "none":
                options["icc_profile"] = icc
            if form == "png":
                info = PngImagePlugin.PngInfo()
                info.add_text("Comment", "words")
                picture.save("made", "PNG", pnginfo=info, compress_level=1, **options)
            else:
                picture.save("made", "JPEG", quality=98, comment="words", **options)
            """, format, "\(orientation)", profile, mode)
        return Array(try Data(contentsOf: URL(filePath: workspace.folder + "/made")))
    }

    func look(at path: String?) async throws -> Look {
        let path = try #require(path)
        let output = try await python(
            """
            import json, sys
            from PIL import Image, ImageOps
            picture = Image.open(sys.argv[1])
            picture.load()
            exif = picture.getexif()
            shown = ImageOps.exif_transpose(picture).convert("RGBA")
            w, h = shown.size
            print(json.dumps({
                "format": picture.format, "mode": picture.mode, "size": picture.size,
                "exif": sorted(exif), "hasPosition": bool(exif.get_ifd(0x8825)),
                "orientation": exif.get(0x0112, 1), "profile": len(picture.info.get("icc_profile", b"")),
                "comment": "comment" in picture.info or "Comment" in picture.info,
                "corners": [shown.getpixel(p) for p in
                    [(2, 2), (w - 3, 2), (2, h - 3), (w - 3, h - 3)]]}))
            """, workspace.cache + "/" + path)
        return try JSONDecoder().decode(Look.self, from: Data(output.utf8))
    }
}

/// The effects of flags on stored pictures, checked by another decoder.
@Suite(.timeLimit(.minutes(15)))
struct StoredPictureTests {
    /// Serves one picture and stores it with these options.
    private func stored(
        _ options: [String],
        of picture: (Painter) async throws -> [UInt8],
        _ body: (Painter.Look, Report.Entry) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let painter = Painter(workspace: workspace)
                origin.serve("/a", .picture(try await picture(painter)))
                let run = try await workspace.finish(
                    workspace.prefetchCommand([origin.url("/a")], options).run(), entries: 1)
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                let entry = try #require(run.report.entries.first)
                try await workspace.judge()
                try await body(try await painter.look(at: entry.path), entry)
            }
        }
    }

    /// `safe` drops all but a profile of another space, `all` every profile, and `none` nothing.
    /// A picture without EXIF is stored as it is displayed.
    @Test(arguments: ["jpeg", "png"])
    func strippingDropsWhatItSays(format: String) async throws {
        for (profile, orientation) in [("sRGB", 1), ("other", 6)] {
            try await stored([]) {
                try await $0.picture(format: format, orientation: orientation, profile: profile)
            } _: { look, entry in
                #expect(look.exif.isEmpty && !look.hasPosition && !look.comment)
                #expect((look.profile > 0) == (profile == "other"))
                #expect(look.size == (orientation < 5 ? [64, 48] : [48, 64]))
                #expect([entry.width, entry.height] == look.size)
            }
        }
        try await stored(["--strip", "all"]) {
            try await $0.picture(format: format, profile: "other")
        } _: { look, _ in
            #expect(look.exif.isEmpty && look.profile == 0 && !look.comment)
        }
        for options in [["--quality", "40"], ["--keep-larger"]] {
            try await stored(["--strip", "none"] + options) {
                try await $0.picture(format: format, orientation: 6, profile: "sRGB")
            } _: { look, entry in
                #expect(look.hasPosition && look.exif.contains(0x010F) && look.comment)
                #expect(look.profile > 0)
                #expect(look.size == [64, 48] && look.orientation == 6)
                #expect(entry.width == 48 && entry.height == 64 && entry.orientation == 6)
            }
        }
    }

    @Test(arguments: [
        ("#f80", [255, 136, 0]), ("teal", [0, 128, 128]), ("a0b0c0", [160, 176, 192]),
    ])
    func transparentPixelsShowTheBackground(colour: String, expected: [Int]) async throws {
        for mode in ["RGBA", "LA"] {
            try await stored(["--encode", "jpeg", "--background", colour]) {
                try await $0.picture(format: "png", mode: mode)
            } _: { look, _ in
                #expect(look.format == "JPEG" && look.mode == "RGB")
                for corner in look.corners {
                    #expect(zip(corner, expected).allSatisfy { abs($0 - $1) <= 3 }, "\(corner)")
                }
            }
        }
        // It is white by default.
        try await stored(["--encode", "jpeg"]) {
            try await $0.picture(format: "png", mode: "LA")
        } _: { look, _ in
            #expect(look.mode == "L" && look.corners.allSatisfy { $0 == [255, 255, 255, 255] })
        }
    }

    /// Noise, which costs bytes at every quality.
    private static let noise = Fixtures.png(width: 200, height: 150, isNoise: true)

    @Test func qualityIsGivenUpForTheLargestSize() async throws {
        var whole = 0
        try await stored(["--encode", "jpeg"]) { _ in
            StoredPictureTests.noise
        } _: { _, entry in
            whole = try #require(entry.bytesStored)
        }
        for most in [whole, whole * 4 / 5, 1_000] {
            try await stored(["--encode", "jpeg", "--max-stored-bytes", "\(most)"]) { _ in
                StoredPictureTests.noise
            } _: { _, entry in
                let stored = try #require(entry.bytesStored)
                if most == 1_000 {
                    #expect(stored > most && stored < whole * 4 / 5)
                    #expect(
                        entry.message == "\(stored) bytes, --max-stored-bytes asked for 1000")
                } else {
                    #expect((most * 9 / 10...most).contains(stored) && entry.message == nil)
                }
            }
        }
        // A PNG is stored as it is.
        try await stored(["--max-stored-bytes", "1kB"]) { _ in
            StoredPictureTests.noise
        } _: { look, entry in
            #expect(look.format == "PNG")
            let stored = try #require(entry.bytesStored)
            #expect(entry.message == "\(stored) bytes, --max-stored-bytes asked for 1000")
        }
    }

    @Test func whatTakesTooLongIsUnsupported() async throws {
        try await withOrigin { origin in
            let bytes = Fixtures.png(width: 1_000, height: 1_000, isNoise: true)
            origin.serve("/a.png", .picture(bytes))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (time, verdict) in [("1ms", "failed/unsupported-image"), ("1m", "downloaded")] {
                    let run = try await workspace.prefetch(
                        [origin.url("/a.png")], "--max-decode-time", time, "--retry-failed")
                    #expect(run.report.verdicts == [verdict], "\(run.result)")
                }
            }
        }
    }

    @Test func otherFlagsAreOtherVariants() async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .picture(Fixtures.png(.rgba), ("Cache-Control", "max-age=3600")))
            try await withWorkspace { workspace in
                let variants = [
                    [], ["--strip", "all"], ["--effort", "small"], ["--encode", "jpeg"],
                    ["--encode", "jpeg", "--background", "black"],
                ]
                for options in variants {
                    let first = try await workspace.finish(
                        workspace.prefetchCommand([origin.url("/a.png")], options).run())
                    #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                }
                for options in variants + [["--encode", "jpeg", "--background", "#FFF"]] {
                    let again = try await workspace.finish(
                        workspace.prefetchCommand([origin.url("/a.png")], options).run())
                    #expect(again.report.verdicts == ["fresh"], "\(again.result)")
                }
            }
        }
    }
}

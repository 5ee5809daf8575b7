#if GIF
    import Foundation
    import PrefetchModel
    import Testing

    @testable import Codecs

    /// Other programs show the frames of the GIFs that are written.
    @Suite(.timeLimit(.minutes(15))) struct GIFReaderTests {
        private typealias Frames = [AnimationTransformingTests.Shown]

        /// Runs `Scripts/judges/gif_readers.py` on a folder, by Debian's Python, for which the
        /// package `python3-pil` is installed.
        private static func verdicts(on folder: URL) throws -> [String] {
            let (process, output) = (Process(), Pipe())
            process.executableURL = URL(filePath: "/usr/bin/python3")
            process.arguments = [
                "-I", "-B", SourceTree.root.appending(path: "Scripts/judges/gif_readers.py").path,
                folder.path,
            ]
            process.standardOutput = output
            try process.run()
            let text = try output.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
            return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        }

        private static func write(_ file: [UInt8], _ frames: Frames, to place: URL) throws {
            try Data(file).write(to: place.appendingPathExtension("gif"))
            let samples = frames.flatMap { shown in
                shown.picture.pixels.flatMap { [$0.x, $0.y, $0.z, $0.w] }
            }
            try Data(samples).write(to: place.appendingPathExtension("rgba"))
        }

        /// The samples have all disposals, with and without transparent pixels.
        @Test func allReadersShowTheFrames() throws {
            let folder = FileManager.default.temporaryDirectory.appending(
                path: "gif-readers-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            var count = 0
            var disposals: Set<UInt8> = []
            for (kind, alphas) in ([[255], [0, 255]] as [[UInt8]]).enumerated() {
                for seed in 0..<20 {
                    let sample = AnimationTransformingTests.Sample(
                        seed: UInt64(seed), alphas: alphas, isStaticImageAFrame: true)
                    let gif = try AnimationTransformingTests().gif(of: sample.file)
                    let name = "\(kind)-\(seed)"
                    try Self.write(gif, sample.frames, to: folder.appending(path: name))
                    let small = try stored(gif, Recipe(specification: "same,11x7!")).bytes
                    try Self.write(
                        small, AnimationTransformingTests.shown(small).frames,
                        to: folder.appending(path: name + "-small"))
                    count += 2
                    for start in gif.indices.dropLast(8)
                    where gif[start...].starts(with: [0x21, 0xF9, 4]) {
                        disposals.insert(gif[start + 3] >> 2 & 7)
                    }
                }
            }
            #expect(disposals.isSuperset(of: [1, 2]))
            let verdicts = try Self.verdicts(on: folder)
            let readers = verdicts.filter { $0.hasSuffix(" read \(count)") }
            #expect(readers.contains { $0.hasPrefix("pillow ") })
            let faults = verdicts.filter {
                !readers.contains($0) && !$0.hasSuffix(" is not installed")
            }
            #expect(faults.isEmpty)
        }
    }
#endif

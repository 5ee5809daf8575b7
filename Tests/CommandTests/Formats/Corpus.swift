import Foundation
import TestSupport

/// The images of the shared data and their expected properties.
enum Corpus {
    struct File: Sendable, CustomStringConvertible {
        /// Relative to the shared data.
        let path: String
        let isPNG: Bool
        let pillow: String
        let systemLibrary: String
        /// 0 where the reference could not tell.
        let pixels: Int
        /// The first 32 hexadecimal digits of the SHA-256 of the RGBA bytes; nil where none is
        /// given.
        let pixelDigest: String?
        /// Whether its EXIF says so, or nothing: the reference's pixels are not turned.
        let isUpright: Bool

        var description: String { path }

        enum Agreement: Sendable {
            /// Both reference decoders take the file without a warning.
            case taken
            /// Both refuse it, possibly for its size.
            case refused
            case differing
        }

        var agreement: Agreement {
            let refusals: Set = ["error", "too-large"]
            return switch (pillow, systemLibrary) {
            case ("ok", "ok"): .taken
            case (let one, let other) where refusals.isSuperset(of: [one, other]): .refused
            default: .differing
            }
        }
    }

    /// A line of `differing-verdicts.tsv`.
    struct Decision: Sendable {
        let path: String
        /// As in ``Report/Entry/verdict``.
        let verdict: String
        let reason: String
    }

    /// Every file that has the form of a PNG or JPEG, whole or not, in the order of its path.
    static func files(_ agreement: File.Agreement? = nil) throws -> [File] {
        guard let folder = SharedData.folder else { return [] }
        return try rows(of: folder.appending(path: "EXPECT.tsv")).compactMap { fields in
            guard fields.count >= 11, ["png", "jpeg", "jpeg?"].contains(fields[2]) else {
                return nil
            }
            let file = File(
                path: fields[0], isPNG: fields[2] == "png", pillow: fields[3],
                systemLibrary: fields[10], pixels: (Int(fields[4]) ?? 0) * (Int(fields[5]) ?? 0),
                pixelDigest: fields[9].isEmpty ? nil : fields[9],
                isUpright: ["", "1"].contains(fields[8]))
            return agreement == nil || file.agreement == agreement ? file : nil
        }
    }

    /// The decisions where the reference decoders differ, and where the program differs from
    /// both.
    static func decisions() throws -> [Decision] {
        try rows(of: beside("differing-verdicts.tsv")).map { fields in
            Decision(path: fields[0], verdict: fields[1], reason: fields[2])
        }
    }

    static func bytes(of file: File) throws -> [UInt8] {
        guard let folder = SharedData.folder else { return [] }
        return Array(try Data(contentsOf: folder.appending(path: file.path)))
    }

    /// A file in the folder of these tests.
    static func beside(_ name: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: name)
    }

    /// Without the header.
    private static func rows(of table: URL) throws -> [[String]] {
        try String(contentsOf: table, encoding: .utf8).split(separator: "\n").dropFirst().map {
            $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }
}

extension Workspace {
    /// Runs over these files, each from a URL of its own; the results are in the files' order.
    func prefetch(
        _ files: [Corpus.File], from origin: Origin, _ options: [String]
    ) async throws -> (run: Run, entries: [Report.Entry]) {
        let run = try await finish(
            prefetchCommand(files, from: origin, options).run(), entries: files.count)
        return (run, run.report.entries.sorted { $0.line < $1.line })
    }

    func prefetchCommand(
        _ files: some Sequence<Corpus.File>, from origin: Origin, _ options: [String]
    ) throws -> Command {
        var bodies: [String: [UInt8]] = [:]
        for file in files { bodies["/" + file.path] = try Corpus.bytes(of: file) }
        origin.serve { [bodies] request in bodies[request.path].map { .image($0) } }
        return try prefetchCommand(files.map { origin.url("/" + $0.path) }, options)
    }

    /// For unchanged files: a stricter program may reject them.
    func removeCache() throws {
        try FileManager.default.removeItem(atPath: cache)
    }
}

import ArgumentParser
import Exporting
import FileOutput
import PrefetchModel
import Reporting

/// Flags of `export` about its maps: the path of each image's file.
struct ExportMapOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write a table of URL, variant, path, width, height and SHA-256.", valueName: "file"),
        completion: .file())
    var map: String?

    @Option(
        name: .customLong("map-json"),
        help: ArgumentHelp("The same as JSON Lines.", valueName: "file"), completion: .file())
    var mapJSON: String?

    var files: [WrittenFiles.Use] {
        [("--map", map), ("--map-json", mapJSON)].compactMap { name, path in
            path.map { WrittenFiles.Use(path: $0, name: name) }
        }
    }

    /// Checks that the maps can be written.
    ///
    /// - Throws: also for a map in the exported folder.
    func check(outside folder: String) throws {
        for file in files.map(\.path) where file != "-" {
            guard !WrittenFiles.isInside(file, folder: folder) else {
                throw UserError(
                    .usage, "\(file): a map cannot be in the exported folder",
                    hint: "name a file outside of \(folder)")
            }
            try FilePlace(file).checkReplacing()
        }
    }

    func write(_ rows: [ExportPlan.Row]) throws {
        for (path, bytes) in [(map, ExportMap.table), (mapJSON, ExportMap.jsonLines)] {
            if let path { try OutputFile.replace(path, with: bytes(rows)) }
        }
    }
}

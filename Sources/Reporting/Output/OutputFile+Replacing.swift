package import FileOutput

extension OutputFile {
    /// Checks that a ``ReplacingFile`` may succeed.
    ///
    /// - Throws: ``OutputError``, see ``FilePlace/checkReplacing()``.
    package static func checkReplacing(_ path: String) throws(OutputError) {
        try FilePlace(path).checkReplacing()
    }

    /// Checks that no stranger's link leads to a folder.
    ///
    /// - Throws: ``OutputError``, see ``FilePlace``.
    package static func check(folder path: String) throws(OutputError) {
        try FilePlace.check(folder: path)
    }

    /// Replaces a file by one with this content, see ``ReplacingFile``.
    ///
    /// - Throws: ``OutputError``; the old file is unchanged then.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(OutputError) {
        var file = try ReplacingFile(path)
        try file.write(bytes)
        try file.commit()
    }
}

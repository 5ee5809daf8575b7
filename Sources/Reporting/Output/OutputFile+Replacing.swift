internal import FileOutput

extension OutputFile {
    /// Checks that a ``ReplacingFile`` may succeed.
    ///
    /// - Throws: ``ReportingError``, see ``FilePlace/checkReplacing()``.
    package static func checkReplacing(_ path: String) throws(ReportingError) {
        do throws(FileOutputError) {
            try FilePlace(path).checkReplacing()
        } catch {
            throw ReportingError(error)
        }
    }

    /// Checks that no stranger's link leads to a folder.
    ///
    /// - Throws: ``ReportingError``, see ``FilePlace``.
    package static func check(folder path: String) throws(ReportingError) {
        do throws(FileOutputError) {
            try FilePlace.check(folder: path)
        } catch {
            throw ReportingError(error)
        }
    }

    /// Replaces a file by one with this content, see ``ReplacingFile``.
    ///
    /// - Throws: ``ReportingError``; the old file is unchanged then.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(ReportingError) {
        do throws(FileOutputError) {
            var file = try ReplacingFile(path)
            try file.write(bytes)
            try file.commit()
        } catch {
            throw ReportingError(error)
        }
    }
}

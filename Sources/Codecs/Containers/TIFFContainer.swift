internal import PrefetchModel

/// TIFF 6.0 (section 2) and BigTIFF. Header, the chain of directories, and the strips or tiles of
/// each lie within the file.
enum TIFFContainer: ImageContainer {
    /// More directories than any multi-page file has.
    private static let maximumDirectories = 10_000

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        // The first directory may follow the picture data.
        guard let layout = TIFFLayout(beginning), let start = layout.first,
            let directory = TIFFDirectory(at: start, layout)
        else { return .later }
        guard let width = directory.value(of: .width), let height = directory.value(of: .height),
            width > 0, height > 0, width <= Int(UInt32.max), height <= Int(UInt32.max)
        else { return .unknown }
        return .known(width: width, height: height)
    }

    static func orientation(in beginning: UnsafeRawBufferPointer) -> Int {
        guard let layout = TIFFLayout(beginning), let start = layout.first,
            let value = TIFFDirectory(at: start, layout)?.value(of: .orientation),
            (1...8).contains(value)
        else { return ExifOrientation.upright }
        return value
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard let layout = TIFFLayout(source), var offset = layout.first else {
            throw .cut("the file ends in its header")
        }
        guard offset > 0 else { throw .broken("no directory") }
        var directories: Set<Int> = []
        while true {
            guard let directory = TIFFDirectory(at: offset, layout) else {
                throw .cut("a directory passes the end of the file")
            }
            guard directories.insert(offset).inserted else {
                return ImageWarning(text: "the chain of directories has no end")
            }
            guard directories.count <= maximumDirectories else {
                throw .limitExceeded("more than \(maximumDirectories) directories")
            }
            try interruption.check(after: 32 * directory.entries)
            let hasData = try check(directory, source, interruption)
            if directories.count == 1, !hasData {
                throw .broken("the first directory has no picture")
            }
            offset = directory.next
            if offset == 0 {
                return directory.hasNext
                    ? nil
                    : ImageWarning(
                        text: "the pointer after the last directory is missing", lacksEnd: true)
            }
        }
    }

    /// - Returns: whether the directory has any picture data.
    private static func check(
        _ directory: TIFFDirectory, _ source: UnsafeRawBufferPointer, _ interruption: Interruption
    ) throws(CodecError) -> Bool {
        var hasData = false
        for (offsets, lengths) in TIFFDirectory.dataTags {
            guard let places = directory.field(offsets) else { continue }
            let sizes = directory.field(lengths)
            guard sizes.map({ $0.count == places.count }) ?? true else {
                throw .broken("offsets and lengths of its data do not match")
            }
            hasData = hasData || places.count > 0
            for index in 0..<places.count {
                try interruption.check(after: 64)
                // Some writers leave the lengths out.
                guard let place = places[index], let size = sizes.map({ $0[index] }) ?? 0 else {
                    throw .cut("a table passes the end of the file")
                }
                guard source.holds(size, at: place) else {
                    throw .cut("data passes the end of the file")
                }
            }
        }
        return hasData
    }
}

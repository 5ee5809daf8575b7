internal import CPNG

/// Decodes the pixels of a bitmap to 8-bit rows of grey, RGB, or RGB and alpha.
struct BMPDecoding {
    private let source: UnsafeRawBufferPointer
    private let file: BMPFile
    private let palette: [UInt8]
    /// Samples per pixel: 1, 3 or 4.
    private let channels: Int
    private let note: WarningNote

    /// `note` receives faults that lose no pixel.
    ///
    /// - Throws: `corrupt` for a palette that is cut.
    init(
        _ source: UnsafeRawBufferPointer, _ file: BMPFile, _ note: WarningNote
    ) throws(CodecError) {
        self.note = note
        let palette = file.isIndexed ? try file.palette(in: source) : []
        var isGrey = file.isIndexed
        for entry in 0..<palette.count / 3 {
            let colour = palette[3 * entry..<3 * entry + 3]
            if colour.contains(where: { $0 != palette[3 * entry] }) { isGrey = false }
        }
        self.source = source
        self.file = file
        self.palette = palette
        channels = isGrey ? 1 : file.hasAlpha ? 4 : 3
    }

    func verify(_ interruption: Interruption) throws(CodecError) {
        switch file.compression {
        case .runs:
            try checkIndex(0)
            try decodeRuns(interruption, into: nil)
        case .none, .masks:
            try checkLength()
            try checkIndices(interruption)
        }
    }

    private func checkIndices(_ interruption: Interruption) throws(CodecError) {
        guard file.isIndexed, file.countedEntries < 1 << file.bitsPerPixel else { return }
        for y in 0..<file.height {
            try interruption.check(after: file.width)
            let start = file.pixelOffset + y * fileStride
            for x in 0..<file.width {
                try checkIndex(index(x, ofRowAt: start))
            }
        }
    }

    private func checkIndex(_ index: Int) throws(CodecError) {
        guard 3 * index < palette.count else {
            throw .broken("a pixel of a colour that the palette does not have")
        }
        if index >= file.countedEntries { note.note(BMPDecoding.uncounted) }
    }

    private func index(_ x: Int, ofRowAt start: Int) -> Int {
        let bits = file.bitsPerPixel
        return Int(source[start + x * bits / 8]) >> (8 - bits - x * bits % 8) & (1 << bits - 1)
    }

    func raster(_ interruption: Interruption) throws(CodecError) -> Raster {
        if case .runs = file.compression {
            // Skipped pixels have the first colour.
            try checkIndex(0)
        } else {
            try checkLength()
            try checkIndices(interruption)
        }
        let raster = try Raster(
            width: file.width, height: file.height, channels: channels, interruption)
        let (first, stride) = (raster.firstSample, raster.stride)
        switch file.compression {
        case .runs:
            for index in 0..<file.width * file.height {
                let (y, x) = index.quotientAndRemainder(dividingBy: file.width)
                if x == 0 { try interruption.check(after: stride) }
                put(0, at: first + y * stride + x * channels)
            }
            try decodeRuns(interruption, into: first)
        case .none, .masks:
            for y in 0..<file.height {
                try interruption.check(after: stride)
                decodeRow(y, into: first + y * stride)
            }
        }
        return raster
    }

    /// Checks that all rows are present. Rows are padded to 32 bits; the last may lack its padding.
    private func checkLength() throws(CodecError) {
        let whole = ByteEstimate(fileStride) * ByteEstimate(file.height - 1)
        let last = ByteEstimate((file.width * file.bitsPerPixel + 7) / 8)
        guard (whole + last + ByteEstimate(file.pixelOffset)).count <= source.count else {
            throw .cutImage
        }
    }

    private var fileStride: Int { (file.width * file.bitsPerPixel + 31) / 32 * 4 }

    private func put(_ index: Int, at output: UnsafeMutablePointer<UInt8>) {
        for channel in 0..<channels { output[channel] = palette[3 * index + channel] }
    }

    /// - Precondition: the data is long enough.
    private func decodeRow(_ y: Int, into output: UnsafeMutablePointer<UInt8>) {
        let row = file.isTopDown ? y : file.height - 1 - y
        let bits = file.bitsPerPixel
        let offset = file.pixelOffset + row * fileStride
        let bytes = UnsafeRawBufferPointer(
            rebasing: source[offset..<offset + (file.width * bits + 7) / 8])
        switch (file.compression, bits) {
        case (.masks(let red, let green, let blue, let alpha), _):
            for x in 0..<file.width {
                var pixel: UInt32 = 0
                for byte in 0..<bits / 8 {
                    pixel |= UInt32(bytes[x * bits / 8 + byte]) << UInt32(8 * byte)
                }
                let target = output + x * channels
                target[0] = red.sample(of: pixel)
                target[1] = green.sample(of: pixel)
                target[2] = blue.sample(of: pixel)
                if let alpha { target[3] = alpha.sample(of: pixel) }
            }
        case (_, 16):
            for x in 0..<file.width {
                let pixel = bytes.littleEndian16(at: 2 * x)
                for channel in 0..<3 {
                    let sample = pixel >> (10 - 5 * channel) & 31
                    output[3 * x + channel] = UInt8(truncatingIfNeeded: (sample * 255 + 15) / 31)
                }
            }
        case (_, 24), (_, 32):
            // Without a mask, the fourth byte has no meaning.
            for x in 0..<file.width {
                let place = x * (bits / 8)
                output[3 * x] = bytes[place + 2]
                output[3 * x + 1] = bytes[place + 1]
                output[3 * x + 2] = bytes[place]
            }
        default:
            for x in 0..<file.width {
                put(index(x, ofRowAt: offset), at: output + x * channels)
            }
        }
    }

    /// Decodes the runs row by row, without storing pixels if `first` is nil. The format has no
    /// runs from the top, but readers show them.
    ///
    /// A run is a count and a value, or 0 and one of:
    ///
    /// - 0: end of the row,
    /// - 1: end of the image,
    /// - 2: a step to the right and to further rows,
    /// - more: the number of literal pixels that follow, padded to 16 bits.
    ///
    /// Skipped pixels keep the first colour, with which the rows are filled. Pixels beyond their
    /// row are dropped, as in browsers.
    private func decodeRuns(
        _ interruption: Interruption, into first: UnsafeMutablePointer<UInt8>?
    ) throws(CodecError) {
        let isOfFourBits = file.bitsPerPixel == 4
        let stride = file.width * channels + 1
        if file.isTopDown { note.note(BMPDecoding.fromTheTop) }
        var (offset, x, y) = (file.pixelOffset, 0, 0)
        func put(_ count: Int, _ value: (Int) -> UInt8) throws(CodecError) {
            guard y < file.height else { throw .broken("a run behind the last row") }
            try interruption.check(after: count)
            let shown = min(count, file.width - x)
            if shown < count { note.note(BMPDecoding.clipped) }
            for pixel in 0..<shown {
                let byte = Int(value(pixel))
                let index = !isOfFourBits ? byte : pixel % 2 == 0 ? byte >> 4 : byte & 15
                try checkIndex(index)
                if let first {
                    let row = first + (file.isTopDown ? y : file.height - 1 - y) * stride
                    self.put(index, at: row + (x + pixel) * channels)
                }
            }
            x += shown
        }
        while source.count - offset >= 2 {
            let (first, second) = (Int(source[offset]), Int(source[offset + 1]))
            offset += 2
            switch (first, second) {
            case (0, 0):
                try interruption.check(after: 1)
                (x, y) = (0, y + 1)
                guard y <= file.height else { throw .broken("more rows than the image has") }
            case (0, 1):
                // A cut file looks like whole rows without pixels.
                guard hasAllRows(x, y) else { throw .cutImage }
                return
            case (0, 2):
                guard source.count - offset >= 2 else { break }
                (x, y) = (x + Int(source[offset]), y + Int(source[offset + 1]))
                offset += 2
                guard x <= file.width, y <= file.height else {
                    throw .broken("a step beyond the image")
                }
            case (0, _):
                let bytes = isOfFourBits ? (second + 1) / 2 : second
                guard source.count - offset >= bytes else { throw .cutImage }
                let begin = offset
                try put(second) { source[begin + (isOfFourBits ? $0 / 2 : $0)] }
                offset += bytes + bytes % 2
            default:
                let value = UInt8(truncatingIfNeeded: second)
                try put(first) { _ in value }
            }
        }
        // Some files with all rows lack the end of the image.
        guard hasAllRows(x, y) else { throw .cutImage }
        note.note(BMPDecoding.noEnd)
    }

    /// Whether runs that end at this place have reached the end of the last row.
    private func hasAllRows(_ x: Int, _ y: Int) -> Bool {
        y == file.height || y == file.height - 1 && x == file.width
    }

    private static let uncounted = ImageWarning(
        text: "pixels of a colour beyond the count of colours are black")
    private static let fromTheTop = ImageWarning(text: "runs of pixels begin at the top")
    private static let clipped = ImageWarning(
        text: "runs that pass the end of their row are clipped")
    private static let noEnd = ImageWarning(text: "the mark behind the last row is missing")
}

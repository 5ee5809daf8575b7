internal import CPNG
package import PrefetchModel

// Trials of the libraries: whether each decodes a tiny picture, and makes one.
extension CodecLibraries {
    /// The decoders that fail, by library version, with the reason: `png/1.6.48: out of place`.
    package static func failingDecoders(
        among formats: [ImageFormat] = ImageFormat.allCases
    ) -> [String] {
        formats.compactMap { format in
            guard let codec = format.codec, let bytes = tinyPicture(format) else { return nil }
            return trialFailure(of: bytes, codec).map { "\(codec.decoder()): \($0)" }
        }
    }

    /// The formats with an encoder that fails.
    package static func failingEncoders(among formats: [ImageFormat]) -> [ImageFormat] {
        formats.filter { format in
            guard format.codec != nil, let encoding = Recipe.Encoding(rawValue: format.rawValue)
            else { return false }
            var recipe = Recipe(encoding: encoding)
            recipe.transformations = [.resize(.fit(width: 2, height: 2))]
            return tinyPicture(.bmp)?.withUnsafeBytes { bytes in
                let entry = (try? Codecs.header(of: bytes)).flatMap {
                    try? ImageProcessor.process(bytes, header: $0, recipes: [recipe])
                }
                guard case .success? = entry?.results.first else { return true }
                return false
            } ?? true
        }
    }

    private static func tinyPicture(_ format: ImageFormat) -> [UInt8]? {
        tinyPicture(of: format).flatMap { text in
            Array(text.utf8).withUnsafeBytes { [UInt8](base64: $0) }
        }
    }

    /// The reason why a decoder does not make the picture's colour; nil if it does.
    static func trialFailure(of picture: [UInt8], _ codec: ImageCodec) -> String? {
        do {
            return try picture.withUnsafeBytes { bytes in
                let interruption = Interruption(CodecLimits(), nil)
                let header = try codec.source.header(of: bytes)
                let source = try codec.open(bytes, header, CodecLimits())
                try source.check(.structure, memoryBytes: 1 << 24, interruption)
                let raster = try source.raster(at: .full, interruption)
                    .plain(hasColour: true, interruption)
                guard let rows = raster.rows.rows else { return "no pixels" }
                let sample = (1...3).map { Int(rows[$0]) }
                // Within the loss of a lossy format.
                let isRight = zip(sample, colour).allSatisfy { abs($0 - $1) < 12 }
                return isRight ? nil : "a wrong colour: \(sample) instead of \(colour)"
            }
        } catch {
            return "\(error)"
        }
    }

    private static let colour = [200, 100, 50]

    /// Four by four pixels of one colour, in base64; nil for a format that no build decodes.
    static func tinyPicture(of format: ImageFormat) -> String? {
        switch format {
        case .jpeg:
            """
            /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4n\
            ICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/2wBDAQkJCQwLDBgNDRgyIRwhMjIyMjIyMjIyMjIyMjIyMjIy\
            MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjL/wAARCAAEAAQDASIAAhEBAxEB/8QAFQABAQAAAAAA\
            AAAAAAAAAAAAAAP/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAABv/EABQRAQAA\
            AAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJgDRg//2Q==
            """
        case .png:
            """
            iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAFElEQVR4nGM8kWLEAANMDEgANwcARfYBZhhD\
            pbAAAAAASUVORK5CYII=
            """
        case .webp:
            """
            UklGRjgAAABXRUJQVlA4ICwAAADwAQCdASoEAAQAAgA0JaACdLoB+AAEyAAA/pcX/yC5YXXI1/5xKiCTeYAA\
            AA==
            """
        case .gif:
            """
            R0lGODdhBAAEAIEAAMhkMgAAAAAAAAAAACwAAAAABAAEAAAICQABCBxIsCCAgAA7
            """
        case .bmp:
            """
            Qk1mAAAAAAAAADYAAAAoAAAABAAAAAQAAAABABgAAAAAADAAAADEDgAAxA4AAAAAAAAAAAAAMmTIMmTIMmTI\
            MmTIMmTIMmTIMmTIMmTIMmTIMmTIMmTIMmTIMmTIMmTIMmTIMmTI
            """
        case .avif:
            """
            AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADrbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGlj\
            dAAAAAAAAAAAAAAAAAAAAAAOcGl0bQAAAAAAAQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAETAAAAJgAAAChp\
            aW5mAAAAAAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAAAABqaXBycAAAAEtpcGNvAAAAFGlzcGUAAAAA\
            AAAABAAAAAQAAAAQcGl4aQAAAAADCAgIAAAADGF2MUOBAAwAAAAAE2NvbHJuY2x4AAEADQAGgAAAABdpcG1h\
            AAAAAAAAAAEAAQQBAoMEAAAALm1kYXQSAAoIGAR9ogIaDQgyGBeHh4YhhJJJJlAAAABIVDZhJXPNawStJQ==
            """
        case .icon:
            """
            AAABAAEABAQAAAAAGABoAAAAFgAAACgAAAAEAAAACAAAAAEAGAAAAAAAMAAAAMQOAADEDgAAAAAAAAAAAAAy\
            ZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgyZMgAAAAAAAAAAAAAAAAAAAAA
            """
        default: sandboxedTinyPicture(of: format)
        }
    }
}

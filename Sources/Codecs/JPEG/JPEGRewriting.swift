internal import CJPEG
internal import PrefetchModel

/// Rewrites a JPEG as a JPEG from its coefficients. Only coarser quantisation loses quality.
struct JPEGRewriting {
    let jpeg: JPEGSource
    let recipe: Recipe
    let interruption: Interruption
    private var source: UnsafeRawBufferPointer { jpeg.source }
    private var file: JPEGFile { jpeg.file }

    /// Applies the orientation if whole blocks allow it, and quantises more coarsely if quality or
    /// size limit require it. Falls back to the source's own data.
    func requantised() throws(CodecError) -> ProcessedImage {
        let profile = keptProfile
        let malformed = recipe.stripping == .none ? file.malformedSegments : []
        let segments = keptSegments(profile, without: malformed)
        // Where nothing can be written, the source's data is used. It has been decoded to its end,
        // or requantising could not have begun.
        let written = try requantised(quality: recipe.quality, maximumBytes: mostBytes, segments)
        var result = if let written { written } else { try jpeg.verified(interruption) }
        let stripped =
            recipe.stripping == .none
            ? file.whole(without: file.hasManifest ? [] : malformed)
            : file.stripped(end: result.source_end, keepsProfile: profile != nil)
        var encoded = result.bytes.map { ImageBytes(owning: $0, count: result.length) }
        // A rotated result is smaller than the source, though perhaps not than the stripped source
        // with an orientation tag. Data after the image, such as further pictures, is found by file
        // offset, so it must not move.
        if recipe.stripping == .none, result.source_end < source.count {
            return image(.source, result)
        }
        jpeg.note.noteMalformed(malformed.map(JPEGFile.name), "segment")
        if let made = encoded, !recipe.keepsLarger, !result.was_turned,
            made.count >= stripped.byteCount
        {
            encoded = nil
        }
        if let most = recipe.maximumStoredBytes, encoded?.count ?? stripped.byteCount > most {
            encoded =
                try fitting(
                    most, segments, below: encoded?.count ?? stripped.byteCount, &result) ?? encoded
        }
        if encoded == nil, result.has_foreign_bytes {
            let most = recipe.keepsLarger ? .max / 4 : stripped.byteCount + 1
            encoded = try withoutForeignBytes(segments, most, &result)
        }
        if let encoded { return image(.encoded(encoded), result) }
        return image(try .init(joining: stripped, of: source), result)
    }

    /// Encodes at the best quality that fits `maximumBytes`; if none fits, at the lowest, if that
    /// is smaller than `present`. Replaces `result` on success, and adds the time of all trials.
    private func fitting(
        _ maximumBytes: Int, _ segments: [UInt8], below present: Int, _ result: inout cjpeg_result
    ) throws(CodecError) -> ImageBytes? {
        var spent = (decode: result.decode_nanoseconds, encode: result.encode_nanoseconds)
        func trial(_ quality: Int, _ most: Int) throws(CodecError) -> (ImageBytes, cjpeg_result)? {
            guard let trial = try requantised(quality: quality, maximumBytes: most, segments)
            else { return nil }
            spent.decode += trial.decode_nanoseconds
            spent.encode += trial.encode_nanoseconds
            return trial.bytes.map { (ImageBytes(owning: $0, count: trial.length), trial) }
        }
        var found = try QualitySearch.best(below: recipe.quality) { quality throws(CodecError) in
            try trial(quality, maximumBytes + 1)
        }
        if found == nil, recipe.quality > QualitySearch.floor {
            found = try trial(QualitySearch.floor, present)
        }
        if let found { result = found.1 }
        result.decode_nanoseconds = spent.decode
        result.encode_nanoseconds = spent.encode
        return found?.0
    }

    /// Writes the coefficients even if nothing else changes, since the place where the foreign
    /// bytes begin is known only to the decoder. Nil if they cannot be written, or in no fewer
    /// than `maximumBytes`.
    private func withoutForeignBytes(
        _ segments: [UInt8], _ maximumBytes: Int, _ result: inout cjpeg_result
    ) throws(CodecError) -> ImageBytes? {
        let made = try requantised(
            quality: recipe.quality, maximumBytes: maximumBytes, segments, isUnconditional: true)
        guard var written = made, let bytes = written.bytes else { return nil }
        written.decode_nanoseconds += result.decode_nanoseconds
        written.encode_nanoseconds += result.encode_nanoseconds
        result = written
        return ImageBytes(owning: bytes, count: written.length)
    }

    /// The size from which a result is rejected.
    private var mostBytes: Int { recipe.keepsLarger ? Int.max / 4 : source.count }

    /// Nil for a source that is readable, but has coefficients or tables that must not be written.
    /// In the result, `bytes` stays nil if nothing would change or the size would reach
    /// `maximumBytes`.
    private func requantised(
        quality: Int, maximumBytes: Int, _ segments: [UInt8], isUnconditional: Bool = false
    ) throws(CodecError) -> cjpeg_result? {
        let keepsAll = recipe.stripping == .none
        let orientation = keepsAll ? ExifOrientation.upright : file.orientation
        let tag =
            orientation == ExifOrientation.upright
            ? [] : JPEGFile.orientationSegment(orientation)
        do throws(CodecError) {
            return try jpeg.called(interruption) { limits, result, message in
                segments.withUnsafeBufferPointer { segments in
                    tag.withUnsafeBufferPointer { tag in
                        var rewriting = cjpeg_rewriting(
                            quality: Int32(quality), segments: segments.baseAddress,
                            segments_length: segments.count, orientation: Int32(orientation),
                            orientation_segment: tag.baseAddress,
                            orientation_segment_length: tag.count, writes_own_segments: !keepsAll,
                            takes_coefficients: false, may_halve_chroma: true,
                            is_unconditional: isUnconditional,
                            maximum_output: maximumBytes)
                        return cjpeg_requantise(
                            jpeg.bytes, source.count, limits, &rewriting, result, message)
                    }
                }
            }
        } catch .encodingFailed {
            return nil
        }
    }

    /// The profile to keep. An sRGB profile is dropped, since pixels without one are sRGB.
    private var keptProfile: [UInt8]? {
        guard recipe.stripping != .all, let profile = file.profile
        else { return nil }
        return recipe.stripping == .none || !ICCProfile.isSRGB(profile) ? profile : nil
    }

    /// Returns the metadata that the recipe keeps, apart from the orientation, as marker segments.
    private func keptSegments(
        _ profile: [UInt8]?, without malformed: [JPEGFile.Segment]
    ) -> [UInt8] {
        if recipe.stripping == .none { return file.metadata(without: malformed) }
        return profile.map(JPEGFile.profileSegments) ?? []
    }

    private func image(_ output: ProcessedImage.Output, _ result: cjpeg_result) -> ProcessedImage {
        let (width, height) = jpeg.header.displayedSize
        return ProcessedImage(
            output: output, format: .jpeg, widthInPixels: width, heightInPixels: height,
            orientation: result.was_turned ? ExifOrientation.upright : file.orientation,
            decodeDuration: result.decodeDuration, encodeDuration: result.encodeDuration)
    }
}

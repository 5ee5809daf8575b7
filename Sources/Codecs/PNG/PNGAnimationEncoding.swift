internal import CPNG
internal import CPixels
internal import PrefetchModel

extension AnimationEncoder {
    static let png = AnimationEncoder(
        format: .png, sideLimit: .none,
        // Four samples a pixel instead of an index.
        growth: 4, memory: { $0.encoding(.encoded(.png)).peak + 12 * $0.pixels },
        encode: { animation, metadata, recipe, interruption throws(CodecError) in
            try PNGAnimationEncoding(animation, metadata, recipe, interruption).encoded()
        })
}

/// Makes animated PNGs (PNG third edition, section 11.3.6).
///
/// All frames have 8-bit red, green and blue, with alpha unless the animation is opaque. Each is
/// cut to the part that differs from the last one, and replaces its pixels.
struct PNGAnimationEncoding: ~Copyable {
    private let animation: TransformedAnimation
    private let interruption: Interruption
    private let metadata: CarriedMetadata
    private let profile: [UInt8]?
    private let encoding: PNGEncoding
    private var file: [UInt8] = []
    private var sequenceNumber: UInt32 = 0
    private var last: Raster?

    init(
        _ animation: TransformedAnimation, _ metadata: CarriedMetadata, _ recipe: Recipe,
        _ interruption: Interruption
    ) {
        self.animation = animation
        self.interruption = interruption
        self.metadata = metadata
        profile = animation.profile
        encoding = PNGEncoding(
            effort: recipe.effort, changesKind: false, interruption: interruption)
    }

    consuming func encoded() throws(CodecError) -> ImageBytes {
        try animation.forEachFrame { picture, delay throws(CodecError) in
            try add(picture, delay)
            guard file.count <= animation.mostBytes else { throw .tooLargeAnimation(animation) }
        }
        file += PNGFile.chunk(.IEND, [])
        return try ImageBytes(
            joining: [.made(file)], of: UnsafeRawBufferPointer(start: nil, count: 0))
    }

    private mutating func add(_ picture: borrowing Raster, _ delay: FrameDelay) throws(CodecError) {
        let isFirst = sequenceNumber == 0
        let part = try changedPart(of: picture)
        var cut = try picture.cropped(
            x: Int(part.x), y: Int(part.y),
            to: TransformationPlan.Size(width: Int(part.width), height: Int(part.height)),
            interruption)
        guard let still = try encoding.encoded(&cut.rows, chunks: [], maximumBytes: .max / 4)
        else { throw .encodingFailed("the PNG is too large") }
        last = try picture.copy()
        try still.withUnsafeBytes { (still) throws(CodecError) in
            let chunks = try PNGFile(still).chunks
            if isFirst { begin(UnsafeRawBufferPointer(rebasing: still[..<33])) }
            file += PNGFile.chunk(.fcTL, control(part, delay))
            for chunk in chunks where chunk.type == .IDAT {
                let data = [UInt8](still[chunk.data])
                file +=
                    isFirst
                    ? PNGFile.chunk(.IDAT, data) : PNGFile.chunk(.fdAT, nextNumber() + data)
            }
        }
    }

    /// Writes everything before the first frame. `start` has the signature and the header.
    private mutating func begin(_ start: UnsafeRawBufferPointer) {
        file += start
        if let profile { file += PNGFile.profileChunk(profile) }
        file += PNGFile.chunks(of: metadata)
        file += PNGFile.chunk(
            .acTL,
            bytes(UInt32(animation.description.frames))
                + bytes(UInt32(min(animation.description.plays, 0x7FFF_FFFF))))
    }

    /// The part of a picture to write; a single pixel if nothing has changed.
    private mutating func changedPart(of picture: borrowing Raster) throws(CodecError)
        -> cpixels_rectangle
    {
        guard var now = picture.picture else { throw .outOfMemory("no pixels") }
        guard let last = last.take(), var before = last.picture else {
            return cpixels_rectangle(x: 0, y: 0, width: now.width, height: now.height)
        }
        var part = cpixels_rectangle(x: 0, y: 0, width: 1, height: 1)
        withExtendedLifetime(last) { _ = cpixels_difference(&before, &now, &part) }
        try interruption.check(after: 2 * picture.heightInPixels * picture.stride)
        return part
    }

    /// The data of `fcTL`: number, size, place, delay, no disposal, no blending.
    private mutating func control(_ part: cpixels_rectangle, _ delay: FrameDelay) -> [UInt8] {
        // Both have 16 bits.
        let fits = delay.numerator <= 65_535 && delay.denominator <= 65_535
        let perSecond =
            fits
            ? delay.denominator
            : [1_000, 100, 10].first { delay.units(perSecond: $0) <= 65_535 } ?? 1
        let units = fits ? delay.numerator : min(delay.units(perSecond: perSecond), 65_535)
        return nextNumber() + bytes(part.width) + bytes(part.height) + bytes(part.x)
            + bytes(part.y) + bytes(UInt32(units)).suffix(2) + bytes(UInt32(perSecond)).suffix(2)
            + [0, 0]
    }

    private mutating func nextNumber() -> [UInt8] {
        defer { sequenceNumber += 1 }
        return bytes(sequenceNumber)
    }

    private func bytes(_ value: UInt32) -> [UInt8] { value.bigEndianBytes }
}

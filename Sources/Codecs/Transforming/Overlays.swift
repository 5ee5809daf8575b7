internal import CPNG
internal import CPixels
package import PrefetchModel

/// The pictures of `overlay` steps, by the digests of their files.
package struct Overlays: Sendable {
    /// Every picture stays in memory for the whole run.
    package static let maximumPixels = 16_000_000

    private var pictures: [ContentDigest: OverlayPicture] = [:]

    package init() {}

    /// Decodes the first frame of a file.
    ///
    /// - Throws: Its damage, `tooManyPixels`, or the error of a format that is not decoded.
    package mutating func add(
        _ file: UnsafeRawBufferPointer, _ digest: ContentDigest
    ) throws(CodecError) {
        guard pictures[digest] == nil else { return }
        pictures[digest] = try OverlayPicture(file)
    }

    /// The pictures, for another process.
    package var samples: [(digest: ContentDigest, picture: OverlayPicture)] {
        pictures.map { ($0.key, $0.value) }
    }

    package mutating func add(_ picture: OverlayPicture, _ digest: ContentDigest) {
        pictures[digest] = picture
    }

    /// - Throws: `unsupported` for a digest of no file of this run.
    func picture(_ digest: ContentDigest) throws(CodecError) -> OverlayPicture {
        guard let picture = pictures[digest] else {
            throw .unsupported("no --transform or --variant names the file of its overlay")
        }
        return picture
    }

    func check(_ recipe: Recipe) throws(CodecError) {
        for case .overlay(let digest, _) in recipe.transformations { _ = try picture(digest) }
    }
}

/// 8-bit red, green, blue and alpha in sRGB, EXIF orientation applied.
package struct OverlayPicture: Sendable {
    package let widthInPixels: Int
    package let heightInPixels: Int
    package let samples: [UInt8]

    package init(widthInPixels: Int, heightInPixels: Int, samples: [UInt8]) {
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.samples = samples
    }

    fileprivate init(_ file: UnsafeRawBufferPointer) throws(CodecError) {
        var limits = CodecLimits()
        limits.maximumPixels = Overlays.maximumPixels
        let header = try header(of: file, limits: limits)
        guard let codec = header.codec else {
            throw .unsupported("\(header.format.rawValue) is not decoded")
        }
        let interruption = Interruption(limits, nil)
        let source = try codec.open(file, header, limits)
        try source.check(.ignoredByDecoder, memoryBytes: 0, interruption)
        var recipe = Recipe(encoding: .png)
        recipe.stripping = .all
        let handling = try ColourHandling(
            of: source.colours,
            in: ColourTarget(recipe, as: .encoded(.png), of: header, after: nil))
        var raster = try source.raster(at: .full, interruption)
        if let conversion = handling.conversion {
            raster = try raster.converted(by: conversion, interruption)
        }
        raster = try raster.plain(hasColour: true, hasAlpha: true, interruption)
        try raster.turn(interruption)
        (widthInPixels, heightInPixels) = (raster.widthInPixels, raster.heightInPixels)
        var samples: [UInt8] = []
        samples.reserveCapacity(4 * widthInPixels * heightInPixels)
        if let rows = raster.rows.rows {
            for y in 0..<heightInPixels {
                samples += UnsafeBufferPointer(
                    start: rows + y * raster.stride + 1, count: raster.bytesPerRow)
            }
        }
        self.samples = samples
    }

    func withPicture(_ body: (UnsafePointer<ccodec_picture>) -> Void) {
        samples.withUnsafeBufferPointer { samples in
            guard let base = samples.baseAddress else { return }
            // Only read.
            var picture = ccodec_picture(
                pixels: UnsafeMutablePointer(mutating: base), stride: 4 * widthInPixels,
                width: UInt32(widthInPixels), height: UInt32(heightInPixels), channels: 4)
            body(&picture)
        }
    }
}

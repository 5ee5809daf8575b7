import CInterruption
import CResample
import Foundation
import SeededRandom
import Testing

/// Samples of 8 or 16 bits as numbers, to resize with the C boundary or with plain arithmetic.
struct ResampledPicture: Equatable {
    typealias Size = (width: Int, height: Int)

    let width: Int
    let height: Int
    let channels: Int
    let bitDepth: Int
    var samples: [Int]

    var most: Int { 1 << bitDepth - 1 }
    var hasAlpha: Bool { channels % 2 == 0 }
    /// The whole picture.
    var rectangle: cresample_rectangle {
        cresample_rectangle(x: 0, y: 0, width: Double(width), height: Double(height))
    }

    init(
        _ width: Int, _ height: Int, channels: Int, bitDepth: Int = 8,
        sample: (_ x: Int, _ y: Int, _ channel: Int) -> Int
    ) {
        (self.width, self.height) = (width, height)
        (self.channels, self.bitDepth) = (channels, bitDepth)
        samples = []
        samples.reserveCapacity(width * height * channels)
        for y in 0..<height {
            for x in 0..<width {
                for channel in 0..<channels { samples.append(sample(x, y, channel)) }
            }
        }
    }

    /// Hard and soft edges with noise; alpha includes both extremes.
    init(noise seed: UInt64, _ width: Int, _ height: Int, channels: Int, bitDepth: Int = 8) {
        var numbers = SplitMix(seed: seed)
        let most = 1 << bitDepth - 1
        self.init(width, height, channels: channels, bitDepth: bitDepth) { x, y, channel in
            let noise = Int.random(in: 0...most, using: &numbers)
            switch (x / 13 + y / 11 + channel) % 4 {
            case 0: return noise
            case 1: return noise % 2 * most
            case 2: return most * (x + y) / (width + height)
            default: return (most + noise / 8) * 8 / 9
            }
        }
    }

    /// Like a photograph: hard edges between soft areas, with a little noise; partly transparent.
    init(photograph seed: UInt64, _ width: Int, _ height: Int, channels: Int, bitDepth: Int = 8) {
        var numbers = SplitMix(seed: seed)
        let most = Double(1 << bitDepth - 1)
        self.init(width, height, channels: channels, bitDepth: bitDepth) { x, y, channel in
            let (across, down) = (Double(x) / Double(width), Double(y) / Double(height))
            let object = (2 * across + down * Double(channel + 1)).truncatingRemainder(
                dividingBy: 1)
            let soft = 0.5 + 0.2 * sin(12 * across + Double(channel)) * cos(7 * down)
            let noise = Double.random(in: -0.05...0.05, using: &numbers)
            return Int(most * (soft + (object < 0.4 ? 0.2 : -0.15) + noise))
        }
    }

    subscript(x: Int, y: Int) -> [Int] {
        let start = (y * width + x) * channels
        return Array(samples[start..<start + channels])
    }

    /// Resizes with the C boundary. Like rasters, rows begin with a spare byte, which must not
    /// change.
    func resized(
        to size: Size, from rectangle: cresample_rectangle? = nil,
        filter: cresample_filter = CRESAMPLE_AUTOMATIC, isLinear: Bool = false,
        path: cresample_path = CRESAMPLE_FASTEST
    ) throws -> ResampledPicture {
        let options = cresample_options(
            filter: filter, is_linear: isLinear, path: path, interruption: nil)
        let (status, picture) = resize(to: size, from: rectangle ?? self.rectangle, options)
        try #require(status == CCODEC_OK)
        return try #require(picture)
    }

    func resize(
        to size: Size, from rectangle: cresample_rectangle,
        _ options: cresample_options
    ) -> (status: ccodec_status, picture: ResampledPicture?) {
        let bytes = bitDepth / 8
        var rows: [UInt8] = []
        for y in 0..<height {
            rows.append(0xA5)
            for sample in samples[y * width * channels..<(y + 1) * width * channels] {
                if bytes == 2 { rows.append(UInt8(sample >> 8)) }
                rows.append(UInt8(sample & 255))
            }
        }
        let stride = size.width * channels * bytes + 1
        var made = [UInt8](repeating: 0xA5, count: size.height * stride)
        let status = rows.withUnsafeBufferPointer { rows in
            made.withUnsafeMutableBufferPointer { made in
                guard let from = rows.baseAddress, let to = made.baseAddress else {
                    return CCODEC_OUT_OF_MEMORY
                }
                var source = cresample_source(
                    pixels: from + 1, stride: rows.count / height, width: UInt32(width),
                    height: UInt32(height), channels: Int32(channels), bit_depth: Int32(bitDepth))
                var target = cresample_target(
                    pixels: to + 1, stride: stride, width: UInt32(size.width),
                    height: UInt32(size.height))
                var (rectangle, options) = (rectangle, options)
                return cresample_resize(&source, &rectangle, &options, &target)
            }
        }
        let isIntact = (0..<size.height).allSatisfy { made[$0 * stride] == 0xA5 }
        guard status == CCODEC_OK, isIntact else { return (status, nil) }
        let result = ResampledPicture(
            size.width, size.height, channels: channels, bitDepth: bitDepth
        ) { x, y, channel in
            let place = y * stride + 1 + (x * channels + channel) * bytes
            return bytes == 2 ? Int(made[place]) << 8 | Int(made[place + 1]) : Int(made[place])
        }
        return (status, result)
    }
}

// MARK: - Reference

extension ResampledPicture {
    /// Lanczos 3 by its definition, in double precision, separately for each axis. Samples are
    /// clamped but not rounded. Colours with zero alpha are 0.
    func reference(
        to size: Size, from rectangle: cresample_rectangle? = nil,
        isLinear: Bool = false
    ) -> [Double] {
        let rectangle = rectangle ?? self.rectangle
        let across = ResampledPicture.weights(
            pixels: width, start: rectangle.x, length: rectangle.width, target: size.width)
        let down = ResampledPicture.weights(
            pixels: height, start: rectangle.y, length: rectangle.height, target: size.height)
        let amounts = amounts(isLinear: isLinear)
        var narrow = [Double](repeating: 0, count: size.width * height * channels)
        for y in 0..<height {
            for x in 0..<size.width {
                for (pixel, weight) in across[x] {
                    for channel in 0..<channels {
                        narrow[(y * size.width + x) * channels + channel] +=
                            weight * amounts[(y * width + pixel) * channels + channel]
                    }
                }
            }
        }
        var result: [Double] = []
        for y in 0..<size.height {
            for x in 0..<size.width {
                var pixel = [Double](repeating: 0, count: channels)
                for (row, weight) in down[y] {
                    for channel in 0..<channels {
                        pixel[channel] +=
                            weight * narrow[(row * size.width + x) * channels + channel]
                    }
                }
                result += encoded(pixel, isLinear: isLinear)
            }
        }
        return result
    }

    private static func lanczos(_ x: Double) -> Double {
        if x == 0 { return 1 }
        guard abs(x) < 3 else { return 0 }
        return sin(.pi * x) / (.pi * x) * sin(.pi * x / 3) / (.pi * x / 3)
    }

    private static func weights(
        pixels: Int, start: Double, length: Double, target: Int
    ) -> [[(pixel: Int, weight: Double)]] {
        let scale = length / Double(target)
        return (0..<target).map { index in
            let centre = start + (Double(index) + 0.5) * scale
            let all = (0..<pixels).map { lanczos((Double($0) + 0.5 - centre) / max(scale, 1)) }
            let sum = all.reduce(0, +)
            return all.enumerated().filter { $0.1 != 0 }.map { ($0.0, $0.1 / sum) }
        }
    }

    /// Samples from 0 to 1, premultiplied by alpha.
    private func amounts(isLinear: Bool) -> [Double] {
        samples.indices.map { index in
            let channel = index % channels
            let value = Double(samples[index]) / Double(most)
            guard hasAlpha else { return isLinear ? light(value) : value }
            guard channel < channels - 1 else { return value }
            let alpha = Double(samples[index - channel + channels - 1]) / Double(most)
            return (isLinear ? light(value) : value) * alpha
        }
    }

    private func encoded(_ pixel: [Double], isLinear: Bool) -> [Double] {
        let alpha = hasAlpha ? pixel[channels - 1] : 1
        return pixel.enumerated().map { channel, amount in
            if hasAlpha, channel == channels - 1 {
                return min(max(amount, 0), 1) * Double(most)
            }
            guard alpha > 0 else { return 0 }
            let colour = min(max(amount / alpha, 0), 1)
            return (isLinear ? encoding(colour) : colour) * Double(most)
        }
    }

    private func light(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    private func encoding(_ light: Double) -> Double {
        light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }
}

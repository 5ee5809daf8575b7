internal import PrefetchModel

extension JPEGFile {
    /// Follows the markers from the first scan's header to the end of the image (ITU-T T.81, annex
    /// B.2.1). Like the decoder, it ignores bytes after the end.
    ///
    /// - Returns: A warning if a progressive picture ends before its last scans.
    func checkScans(_ limits: CodecLimits) throws(CodecError) -> ImageWarning? {
        guard let frame, let first = segments.last else { throw .broken("no frame") }
        var coverage = ScanCoverage(of: frame)
        var scans = 1
        try coverage.add(UnsafeRawBufferPointer(rebasing: source[first.payload]))
        var offset = first.range.upperBound
        var dataStart: Int? = offset
        while let start = nextMarker(from: offset) {
            let marker = source[start + 1]
            // Restart markers are part of a scan's data.
            if (0xD0...0xD7).contains(marker) || marker == 0x01 {
                offset = start + 2
                continue
            }
            if dataStart == start { throw .broken("a scan without data") }
            dataStart = nil
            if marker == 0xD9 {
                guard coverage.hasAllComponents else {
                    throw .broken("a colour component has no data")
                }
                return coverage.isComplete ? nil : JPEGFile.lacksScans
            }
            guard let segment = segment(at: start) else { break }
            offset = segment.range.upperBound
            switch marker {
            case 0xDA:
                scans += 1
                guard scans <= limits.maximumScans else {
                    throw .limitExceeded("more scans than allowed")
                }
                try coverage.add(UnsafeRawBufferPointer(rebasing: source[segment.payload]))
                dataStart = offset
            case 0xD8, 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                throw .broken("two frames")
            default: break
            }
        }
        throw .cutImage
    }

    private static let lacksScans = ImageWarning(
        text: "the last scans of a progressive JPEG are missing, so it shows fewer details")
}

/// The coefficients that the scans of a picture have brought so far.
private struct ScanCoverage {
    private let frame: JPEGFile.FrameHeader
    /// For each component, the lowest bit of each frequency; nil before any.
    private var lowestBits: [UInt8: [Int?]] = [:]

    init(of frame: JPEGFile.FrameHeader) {
        self.frame = frame
        for component in frame.components {
            lowestBits[component] = Array(repeating: nil, count: 64)
        }
    }

    /// Whether each component has its lowest frequency. Other scans refine, and the picture is
    /// without gaps.
    var hasAllComponents: Bool { lowestBits.values.allSatisfy { $0[0] != nil } }

    var isComplete: Bool { lowestBits.values.allSatisfy { $0.allSatisfy { $0 == 0 } } }

    /// Adds a scan by the payload of its header.
    mutating func add(_ payload: UnsafeRawBufferPointer) throws(CodecError) {
        guard let count = payload.first.map(Int.init), (1...4).contains(count),
            payload.count == 4 + 2 * count
        else { throw .broken("bad scan header") }
        // A sequential scan has everything, whatever its header says.
        let end = payload.count
        let (first, last, bits) =
            frame.isProgressive
            ? (Int(payload[end - 3]), Int(payload[end - 2]), payload[end - 1]) : (0, 63, 0)
        for index in 0..<count {
            let component = payload[1 + 2 * index]
            guard frame.components.contains(component) else {
                throw .broken("a scan of a component that is not there")
            }
            for frequency in first..<max(first, min(last, 63) + 1) {
                // A refinement of nothing brings nothing.
                guard bits >> 4 == 0 || lowestBits[component]?[frequency] != nil else { continue }
                lowestBits[component]?[frequency] = Int(bits & 0x0F)
            }
        }
    }
}

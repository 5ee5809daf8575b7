internal import PrefetchModel

extension JPEGFile {
    /// Follows the markers from the first scan's header to the end of the image (ITU-T T.81, annex
    /// B.2.1). Like the decoder, it ignores bytes after the end.
    func checkScans(_ limits: CodecLimits) throws(CodecError) {
        guard let frame, let first = segments.last else { throw .broken("no frame") }
        var missing = Set(frame.components)
        var scans = 1
        try note(first, of: frame, missing: &missing)
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
                guard missing.isEmpty else { throw .broken("a colour component has no data") }
                return
            }
            guard let segment = segment(at: start) else { break }
            offset = segment.range.upperBound
            switch marker {
            case 0xDA:
                scans += 1
                guard scans <= limits.maximumScans else {
                    throw .limitExceeded("more scans than allowed")
                }
                try note(segment, of: frame, missing: &missing)
                dataStart = offset
            case 0xD8, 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                throw .broken("two frames")
            default: break
            }
        }
        throw .cutImage
    }

    /// Removes from `missing` the components with their lowest frequency in this scan. Other scans
    /// refine, and the picture is complete without them.
    private func note(
        _ scan: Segment, of frame: FrameHeader, missing: inout Set<UInt8>
    ) throws(CodecError) {
        let payload = UnsafeRawBufferPointer(rebasing: source[scan.payload])
        guard let count = payload.first.map(Int.init), (1...4).contains(count),
            payload.count == 4 + 2 * count
        else { throw .broken("bad scan header") }
        // The scan starts above the lowest frequency, or adds bits to an earlier scan.
        let isRefinement =
            frame.isProgressive
            && (payload[1 + 2 * count] != 0 || payload[3 + 2 * count] & 0xF0 != 0)
        for index in 0..<count {
            let component = payload[1 + 2 * index]
            guard frame.components.contains(component) else {
                throw .broken("a scan of a component that is not there")
            }
            if !isRefinement { missing.remove(component) }
        }
    }
}

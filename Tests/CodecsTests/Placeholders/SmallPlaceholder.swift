import CPlaceholder

/// The placeholder of a picture of at most 48 pixels a side, which is not reduced. `rgba` has rows
/// from the top without gaps, straight alpha.
func smallPlaceholder(
    _ rgba: [UInt8], _ width: Int, _ height: Int
) -> (hash: [UInt8], colour: [UInt8]?) {
    rgba.withUnsafeBufferPointer { bytes in
        guard let pixels = bytes.baseAddress else { return ([], nil) }
        var rows = cplaceholder_rows(
            pixels: pixels, stride: 4 * width, width: UInt32(width), height: UInt32(height),
            color_type: 6, bit_depth: 8, palette: nil, key: nil, plane_bytes: 0, last_column: 1,
            last_row: 1)
        var made = cplaceholder()
        cplaceholder_make(&rows, 1, &made)
        let (red, green, blue) = made.colour
        return (
            withUnsafeBytes(of: made.hash) { Array($0.prefix(Int(made.hash_length))) },
            made.has_colour ? [red, green, blue] : nil
        )
    }
}

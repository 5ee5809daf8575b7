/// The header of a binary 8-bit PGM or PPM.
struct PortablePixmap {
    let width: UInt32
    let height: UInt32
    /// 1 or 3.
    let channels: Int
    /// The offset of the samples.
    let start: Int

    /// Returns nil for any other kind of file.
    init?(_ file: [UInt8]) {
        guard file.count > 2, file[0] == UInt8(ascii: "P"), [0x35, 0x36].contains(file[1]) else {
            return nil
        }
        // Width, height and the largest sample, with one space after the last.
        var (numbers, position) = ([UInt32](), 2)
        while numbers.count < 3 {
            while position < file.count, file[position] <= 32 { position += 1 }
            let digits = file[position...].prefix { (0x30...0x39).contains($0) }
            guard let number = UInt32(String(decoding: digits, as: UTF8.self)), number > 0 else {
                return nil
            }
            numbers.append(number)
            position = digits.endIndex
        }
        let channels = file[1] == 0x36 ? 3 : 1
        guard numbers[2] == 255,
            file.count - position - 1 == Int(numbers[0]) * Int(numbers[1]) * channels
        else { return nil }
        (width, height) = (numbers[0], numbers[1])
        self.channels = channels
        start = position + 1
    }
}

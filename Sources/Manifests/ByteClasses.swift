/// What each byte may be part of, as one table of 256 sets.
///
/// The table lives as long as its owner, so that a look-up is one load; a global one would be
/// checked for initialisation at each use.
final class ByteClasses {
    /// Letters, digits, `-._~` (RFC 3986 §2.3).
    static let unreserved: UInt8 = 1
    /// Bytes of a host that libcurl passes on as they are: lower-case letters, digits, `-._~`.
    static let host: UInt8 = 2
    /// Unreserved bytes, sub-delimiters, and `:@/[]`. Brackets have no place in a path by RFC 3986,
    /// yet are sent as they are by libcurl and browsers, and their escapes would mean other data.
    static let path: UInt8 = 4
    /// Those of a path and `?`.
    static let query: UInt8 = 8
    /// Unreserved bytes and sub-delimiters (RFC 3986 §3.2.1, without the colon).
    static let userInformation: UInt8 = 16
    /// Those of a path but the full stop, which may begin a dot segment.
    static let pathWithoutStop: UInt8 = 32
    /// What a line may not hold: 0x00…0x1F but the tab, and 0x7F.
    static let control: UInt8 = 64

    let table: UnsafePointer<UInt8>

    init() {
        let table = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
        table.initialize(repeating: 0, count: 256)
        func add(_ classes: UInt8, _ bytes: some Sequence<UInt8>) {
            for byte in bytes { table[Int(byte)] |= classes }
        }
        let text = ByteClasses.path | ByteClasses.query | ByteClasses.pathWithoutStop
        let unreserved = ByteClasses.unreserved | ByteClasses.userInformation | text
        add(unreserved | ByteClasses.host, UInt8(ascii: "a")...UInt8(ascii: "z"))
        add(unreserved | ByteClasses.host, UInt8(ascii: "0")...UInt8(ascii: "9"))
        add(unreserved | ByteClasses.host, "-_~".utf8)
        add((unreserved | ByteClasses.host) & ~ByteClasses.pathWithoutStop, ".".utf8)
        add(unreserved, UInt8(ascii: "A")...UInt8(ascii: "Z"))
        add(ByteClasses.userInformation | text, "!$&'()*+,;=".utf8)
        add(text, ":@/[]".utf8)
        add(ByteClasses.query, "?".utf8)
        add(ByteClasses.control, 0...8)
        add(ByteClasses.control, 10...31)
        add(ByteClasses.control, CollectionOfOne(127))
        self.table = UnsafePointer(table)
    }

    deinit {
        UnsafeMutablePointer(mutating: table).deallocate()
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit of either case, or nil.
    var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    var isDecimalDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    var isLetter: Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
    }

    var lowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}

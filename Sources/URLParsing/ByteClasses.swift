/// The parts of a URL that each byte is allowed in, as a table of 256 sets.
///
/// The table lives as long as its owner, so that a look-up is one load; a global table would be
/// checked for initialisation at each use.
final class ByteClasses {
    /// Letters, digits, `-._~` (RFC 3986 §2.3).
    static let unreserved: UInt8 = 1
    /// Bytes of a host that libcurl leaves unchanged: lower-case letters, digits, `-._~`.
    static let host: UInt8 = 2
    /// Unreserved bytes, sub-delimiters, and `:@/[]`. RFC 3986 allows no brackets in a path, but
    /// libcurl and browsers send them unescaped, and their escapes would mean other data.
    static let path: UInt8 = 4
    /// The bytes of a path, and `?`.
    static let query: UInt8 = 8
    /// Unreserved bytes and sub-delimiters (RFC 3986 §3.2.1, without the colon).
    static let userInformation: UInt8 = 16
    /// The bytes of a path except the full stop, which may begin a dot segment.
    static let pathWithoutStop: UInt8 = 32

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
        self.table = UnsafePointer(table)
    }

    deinit {
        UnsafeMutablePointer(mutating: table).deallocate()
    }
}

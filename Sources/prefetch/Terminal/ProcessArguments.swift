internal import CStart

/// The process's arguments without the program's name, in place of `CommandLine`.
enum ProcessArguments {
    /// U+FFFD replaces bytes that are not UTF-8.
    static var all: [String] { map { String(cString: $0) } }

    /// Whether every argument is UTF-8.
    static var areText: Bool { map { String(validatingCString: $0) != nil }.allSatisfy(\.self) }

    private static func map<Value>(_ transform: (UnsafePointer<CChar>) -> Value) -> [Value] {
        (1..<max(1, cstart_argument_count())).map { transform(cstart_argument($0)) }
    }
}

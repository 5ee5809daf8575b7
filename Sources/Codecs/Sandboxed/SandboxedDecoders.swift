internal import Synchronization

/// The place where the process decodes formats that are too risky without walls: TIFF, HEIF,
/// JPEG XL and JPEG 2000.
///
/// Set before images are decoded. Until then such formats are recognised, and stored unchanged.
package enum SandboxedDecoders {
    /// Sets of libraries, as raw values.
    private static let here = Atomic(0)
    private static let workers = Atomic(0)

    /// Lets this process decode by these libraries: behind its walls, or with `--sandbox off`.
    package static func allow(_ libraries: CodecLibrarySet) {
        here.store(libraries.rawValue, ordering: .relaxed)
    }

    /// States which libraries decode in this process's workers.
    package static func leaveToWorkers(_ libraries: CodecLibrarySet) {
        workers.store(libraries.rawValue, ordering: .relaxed)
    }

    /// Whether this process may call the library.
    static func allows(_ library: CodecLibrarySet) -> Bool {
        here.load(ordering: .relaxed) & library.rawValue != 0
    }

    /// Whether workers call the library.
    static func areInWorkers(_ library: CodecLibrarySet) -> Bool {
        workers.load(ordering: .relaxed) & library.rawValue != 0
    }

    /// The libraries that decode here or in workers, if the system has them.
    package static var inUse: CodecLibrarySet {
        CodecLibrarySet(
            rawValue: here.load(ordering: .relaxed) | workers.load(ordering: .relaxed))
    }
}

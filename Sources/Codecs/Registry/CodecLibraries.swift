internal import CDeflate
internal import CJPEG
internal import CLoader
internal import CPNG
internal import CXML
package import PrefetchModel
internal import Synchronization

/// The libraries behind the codecs.
package enum CodecLibraries {
    /// As it is loaded.
    package static var libpng: String { String(cString: cpng_library_version()) }
    /// As the program was built with it: the loaded one does not say.
    package static var libjpegTurbo: String { String(cString: cjpeg_library_version()) }
    /// The decoded formats and the versions of their decoders: `jpeg/2.1.5,png/1.6.39`.
    package static var decoders: String {
        let inUse = SandboxedDecoders.inUse.intersection(.sandboxed)
        let known = knownDecoders.withLock { $0[inUse] }
        if let known { return known }
        let text =
            (own
            + ImageFormat.allCases.filter(isInUse)
            .compactMap { $0.sandboxedCodec?.decoder() }).joined(separator: ",")
        knownDecoders.withLock { $0[inUse] = text }
        return text
    }
    private static let knownDecoders = Mutex<[CodecLibrarySet: String]>([:])
    /// The same of the formats that decode anywhere.
    package static let own = ImageFormat.allCases.filter { !isSandboxed($0) }
        .compactMap { $0.codec?.decoder() }
    /// Whether a format is decoded in workers only, or with `--sandbox off`.
    package static func isSandboxed(_ format: ImageFormat) -> Bool {
        !sandboxedLibrary(of: format).isEmpty
    }
    private static func sandboxedLibrary(of format: ImageFormat) -> CodecLibrarySet {
        CodecLibrarySet(decoding: format).intersection(.sandboxed)
    }
    /// Whether workers of this process decode the format. False in a worker.
    static func isLeftToWorkers(_ format: ImageFormat) -> Bool {
        SandboxedDecoders.areInWorkers(sandboxedLibrary(of: format))
            && format.sandboxedLibrary?.installedVersion != nil
    }
    private static func isInUse(_ format: ImageFormat) -> Bool {
        !sandboxedLibrary(of: format).isDisjoint(with: SandboxedDecoders.inUse)
    }
    /// The version of the library that applies profiles: `colours/2.14`. Different without it, so
    /// that its failures are retried once it is installed.
    package static let colours = "colours/\(LittleCMS.version ?? "missing")"
    /// The meaning of `same` for each format that some build decodes.
    package static let sameRules: SameRules = Dictionary(
        uniqueKeysWithValues: ImageFormat.allCases.compactMap { format in
            format.sameRule.map { (format.rawValue, $0) }
        })
    /// Whether the format is decoded: by this build, which its traits decide, and if it takes a
    /// worker, by a library that is there.
    package static func decodes(_ format: ImageFormat) -> Bool {
        guard isSandboxed(format) else { return format.codec != nil }
        return isInUse(format) && format.sandboxedLibrary?.installedVersion != nil
    }
    /// The value of `Accept` for the formats that this build decodes anywhere.
    package static let accept =
        (ImageFormat.allCases.filter { !isSandboxed($0) && decodes($0) }.map(\.mediaType)
        + ["image/*;q=0.5", "*/*;q=0.1"]).joined(separator: ", ")
    /// The optional libraries with the versions as loaded, or why they cannot be loaded: `libwebp
    /// 1.2.4`.
    package static var optional: [String] {
        var lines: [String] = []
        #if WebP
            lines.append("libwebp \(WebPSource.version)")
        #endif
        #if AVIF
            if let missing = LibAVIF.missing {
                lines.append("libavif cannot be loaded: \(missing)")
            } else {
                lines.append("libavif \(LibAVIF.versions.joined(separator: " with dav1d "))")
            }
        #endif
        #if GIF
            lines.append("giflib \(GIFSource.version) (built with)")
        #endif
        lines.append(
            LittleCMS.version.map { "liblcms2 \($0)" }
                ?? "liblcms2 cannot be loaded: \(LittleCMS.missing ?? "")")
        return lines
    }
    /// The same of libraries for workers, by the names of their files: `libtiff 6.0.0`.
    package static var sandboxed: [String] {
        ImageFormat.allCases.compactMap(\.sandboxedLibrary).map {
            "\($0.name) \($0.installedVersion ?? "is not installed")"
        }
    }
    /// Loads the libraries that are otherwise loaded on first use.
    ///
    /// - Returns: The libraries that were loaded.
    package static func load(_ libraries: CodecLibrarySet) -> CodecLibrarySet {
        _ = LittleCMS.missing
        var loaded: CodecLibrarySet = []
        #if AVIF
            if libraries.contains(.avif), LibAVIF.missing == nil { loaded.insert(.avif) }
        #endif
        for format in ImageFormat.allCases {
            let library = sandboxedLibrary(of: format)
            guard !library.isEmpty, libraries.contains(library),
                format.sandboxedLibrary?.missing == nil
            else { continue }
            loaded.formUnion(library)
        }
        return loaded
    }

    /// The files of all libraries that were loaded on first use, of other modules too.
    package static var loadedFiles: [String] {
        Array(
            sequence(state: 0) { index in
                defer { index += 1 }
                return cloader_path(index).map { String(cString: $0) }
            })
    }
    /// The loaded version, without its name: `2.5.0`.
    package static var expat: String {
        String(String(cString: cxml_library_version()).drop { $0 != "_" }.dropFirst())
    }

    /// As the program was built with it: the loaded one does not say.
    package static var libdeflate: String { String(cString: cdeflate_library_version()) }
}

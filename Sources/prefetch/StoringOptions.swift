import ArgumentParser
import CacheStorage
import Pipeline
import PrefetchModel

extension Recipe.Encoding: ExpressibleByArgument {}
extension Recipe.Stripping: ExpressibleByArgument {}
extension PNGEffort: ExpressibleByArgument {}
extension MetadataWriter.Durability: ExpressibleByArgument {}
extension SourceCheck: ExpressibleByArgument {}

/// Flags of `run` about what the cache holds afterwards.
struct StoringOptions: ParsableArguments {
    @Option(help: "Stored format; `same` keeps JPEG as JPEG and PNG as PNG.")
    var encode: Recipe.Encoding = .same

    @Option(help: ArgumentHelp("JPEG quality, 1 to 100.", valueName: "n"))
    var quality = Recipe.defaultQuality

    @Flag(
        name: .customLong("keep-larger"),
        help: """
            Keep a re-encoding that is not smaller than its source; without it the source's own bytes \
            are stored, metadata stripped.
            """)
    var keepsLarger = false

    @Option(
        name: .customLong("png-effort"),
        help: "How much time is given to making a PNG small; its pixels are the same.")
    var pngEffort: PNGEffort = .balanced

    @Option(
        name: .customLong("max-stored-bytes"),
        help: ArgumentHelp(
            """
            The size that JPEGs give up quality for, down to 30; what stays larger is stored and \
            reported.
            """, valueName: "size"))
    var maximumStoredSize: SizeArgument?

    @Option(
        help: ArgumentHelp(
            """
            What beside pixels is dropped: safe keeps what changes their look, all nothing, none drops nothing, not \
            even positions.
            """, valueName: "what"))
    var strip: Recipe.Stripping = .safe

    @Option(
        help: ArgumentHelp(
            """
            What shows through transparent pixels in a JPEG: #rgb, #rrggbb or a basic colour name of \
            CSS.
            """, valueName: "colour"))
    var background = ColourArgument(.white)

    @Option(
        help: ArgumentHelp(
            """
            How --encode original makes sure that images are whole: decode them, or follow their \
            structure, which costs a fraction of that but overlooks flipped bits in JPEG data.
            """, valueName: "how"))
    var check: SourceCheck = .decode

    @Flag(
        name: .customLong("file-attributes"),
        help: """
            Give content files the extended attributes user.xdg.origin.url and user.mime_type, which \
            take a block of each file on many file systems.
            """)
    var fileAttributes = false

    @Option(
        help: ArgumentHelp(
            """
            What a power cut may cost: normal (the last seconds), full (nothing that was \
            reported), off (images of this run may be torn).
            """, valueName: "how"))
    var sync: MetadataWriter.Durability = .normal

    func validate() throws {
        guard (1...100).contains(quality) else {
            throw ValidationError("--quality is within 1 and 100")
        }
        if let size = maximumStoredSize?.size, size.bytes < 1 {
            throw ValidationError("--max-stored-bytes is at least 1")
        }
        if check == .structure, encode != .original {
            throw ValidationError("--check structure goes with --encode original only")
        }
        if strip == .all, encode == .original {
            throw ValidationError("--encode original strips nothing, so --strip all excludes it")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        var recipe = Recipe(encoding: encode, quality: quality, keepsLarger: keepsLarger)
        recipe.stripping = strip
        recipe.background = background.colour
        recipe.pngEffort = pngEffort
        recipe.maximumStoredBytes = maximumStoredSize?.size.bytes
        configuration.recipe = recipe
        configuration.check = check
        configuration.writesFileAttributes = fileAttributes
        configuration.durability = sync
    }
}

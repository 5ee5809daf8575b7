import ConfigurationFiles
import Pipeline
import PrefetchModel

// Encoding

extension RunFlags {
    private static let recipe = Recipe()

    static let encode = RunFlag<Recipe.Encoding>(
        "encode", .encoding, value: "format", default: recipe.encoding,
        help: """
            Stored format. same keeps the source's format (BMP and icons become PNG), auto takes \
            the smallest of --allow-formats, original stores the downloaded bytes.
            """, brief: "stored format: same, jpeg, png, webp, avif, …")

    static let allowFormats = RunFlag<AllowedFormats>(
        "allow-formats", .encoding, value: "formats",
        default: AllowedFormats(formats: recipe.allowedFormats),
        help: "Formats that --encode auto picks from, comma-separated: jpeg, png, webp, avif.")

    static let quality = RunFlag<Int>(
        "quality", .encoding, value: "n", default: recipe.quality,
        help: """
            Quality of JPEG, WebP and AVIF, 1 to 100, on one scale. A JPEG made from a JPEG never \
            gets a higher quality than its source.
            """, brief: "quality of jpeg, webp and avif, 1 to 100")

    static let keepLarger = RunFlag<Bool>(
        "keep-larger", .encoding,
        help: """
            Keep re-encodings that are not smaller than their source. Otherwise the source is \
            stored, without its metadata.
            """)

    static let effort = RunFlag<EncodingEffort>(
        "effort", .encoding, value: "effort", default: recipe.effort,
        help: """
            Processor time to spend on smaller PNG, WebP and AVIF files. PNG stays lossless.
            """)

    static let maximumStoredBytes = RunFlag<SizeArgument?>(
        "max-stored-bytes", .encoding, value: "size",
        help: """
            Lower the quality of JPEG, WebP and AVIF, to 30 at least, to fit this size. A file \
            that stays larger is stored and marked in the report; PNG and auto are not reduced.
            """)

    static let strip = RunFlag<Recipe.Stripping>(
        "strip", .encoding, value: "what", default: recipe.stripping,
        help: """
            Metadata to remove: safe keeps colour information, all removes everything, none keeps \
            everything, including GPS positions.
            """)

    static let background = RunFlag<ColourArgument>(
        "background", .encoding, value: "colour", default: ColourArgument(recipe.background),
        help: "Colour behind transparent pixels in a JPEG: #rgb, #rrggbb or a basic CSS colour.")

    static let animated = RunFlag<Recipe.Animation>(
        "animated", .encoding, value: "what", default: recipe.animation,
        help: """
            Animations: keep stores all frames, first stores the first frame, refuse fails them.
            """)

    static let resize = RunFlag<String?>(
        "resize", .encoding, value: "size",
        help: """
            Size in pixels: 800x600 fits within, 800 and x600 fit one side, 800x600^ covers and \
            crops, 800x600~#fff pads, 800x600! is exact, 50% halves each side. Only ! enlarges.
            """)

    static let transform = RunFlag<String?>(
        "transform", .encoding, value: "steps",
        help: """
            Steps before --resize, in this order and comma-separated: crop=WxH+X+Y or \
            crop=WxH:north, rotate=90, flip=h, blur=2, tint=#rrggbbaa, grey, border=4,#rrggbb, \
            round=8, circle, overlay=FILE@south-east, resize=SIZE.
            """, inProjects: .refusedWithOverlays)

    static let scaleDownPixels = RunFlag<Int?>(
        "scale-down-pixels", .encoding, value: "n",
        help: "Scale larger images down to this many pixels, before every other step.")

    static let linear = RunFlag<Bool>(
        "linear", .encoding,
        help: "Resize in linear light: slower, and more accurate along sharp contrasts.")

    static let variant = RunFlag<[String]>(
        repeatable: "variant", .encoding, value: "name=spec",
        help: """
            Also store each image in this form; repeatable. SPEC is a list like jpeg,q=60 of: a \
            size like 256x256, same, jpeg, png, webp, avif, auto or original, q=, strip=, \
            allow-formats=, background=, max-bytes=, effort=, animated=, keep-larger, linear, and \
            the steps of --transform. The rest has the flags' defaults. The plain flags make the \
            variant main.
            """, brief: "also store each image in this form, like web=jpeg,q=60",
        inProjects: .refusedWithOverlays)

    static let storeOriginal = RunFlag<Bool>(
        "store-original", .encoding,
        help: """
            Also store the downloaded bytes as the variant original. Other variants can then be \
            made later without a download.
            """)

    static let check = RunFlag<SourceCheck>(
        "check", .encoding, value: "how", default: defaults.images.check,
        help: """
            How --encode original checks images: decode them, or parse their structure, which is \
            much faster but misses flipped bits in JPEG data.
            """)

    static let otherFormats = RunFlag<OtherFormats>(
        "other-formats", .encoding, value: "what", default: defaults.images.otherFormats,
        help: """
            Formats that are recognised but not decoded (SVG, HEIC, JPEG XL, TIFF, …): fail them, \
            store complete files unchanged for every variant, or skip (exclude) them.
            """)

    static let noPlaceholders = RunFlag<Bool>(
        "no-placeholders", .encoding,
        help: """
            Make no placeholders (the attributes prefetch.thumbhash and prefetch.color), which \
            every decoded image gets otherwise.
            """)
}

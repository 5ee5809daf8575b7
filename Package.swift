// swift-tools-version:6.3
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

// The codecs are optimised in debug builds too: they hold the loops over pixels, and the tests
// decode thousands of images.
let codecs =
    strict + [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]
// Callbacks of libraries have parameters that they don't need. Newer headers deprecate functions that
// the oldest ones have no replacement for.
let boundary: [CSetting] = [
    .unsafeFlags([
        "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-deprecated-declarations",
        "-Werror",
    ])
]

// The toolchain's lld can also pack relocations, for the deb (Scripts/package). Scripts/linking makes
// it use the static C++ library, because most symbol look-ups at a start are in the shared one.
// Swift's exported symbols are not needed.
let quickStart = LinkerSetting.unsafeFlags(
    [
        "-use-ld=lld", "-Xlinker", "--no-export-dynamic", "-Xclang-linker", "-static-libgcc",
        "-L", Context.packageDirectory + "/Scripts/linking",
    ],
    .when(configuration: .release))

let package = Package(
    name: "prefetch",
    products: [
        .executable(name: "prefetch", targets: ["prefetch"]),
        // Preloaded by tests of decoder crashes.
        .library(name: "FaultyJPEG", type: .dynamic, targets: ["FaultyJPEG"]),
        // Preloaded by tests of caches on network file systems.
        .library(name: "NetworkFileSystem", type: .dynamic, targets: ["NetworkFileSystem"]),
        // Preloaded by Scripts/torture/run.
        .library(name: "StopAtStart", type: .dynamic, targets: ["StopAtStart"]),
    ],
    // Optional decoders: `swift build --disable-default-traits --traits WebP,GIF`.
    traits: [
        .trait(name: "WebP", description: "Decodes WebP, by libwebp."),
        .trait(name: "AVIF", description: "Decodes AVIF, by libavif and dav1d."),
        .trait(name: "GIF", description: "Decodes GIF, by giflib."),
        .trait(name: "TIFF", description: "Decodes TIFF, by libtiff."),
        .trait(name: "HEIF", description: "Decodes HEIF, by libheif and libde265."),
        .trait(name: "JPEGXL", description: "Decodes JPEG XL, by libjxl."),
        .trait(name: "JPEG2000", description: "Decodes JPEG 2000, by openjpeg."),
        .default(
            enabledTraits: ["WebP", "AVIF", "GIF", "TIFF", "HEIF", "JPEGXL", "JPEG2000"]),
    ],
    // Exact versions for reproducible builds, since Package.resolved is not in the repository. The
    // command's dependencies have none of their own; NIO is for tests only.
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", exact: "1.46.0"),
    ],
    targets: [
        .executableTarget(
            name: "prefetch",
            dependencies: [
                "BuildRecord", "Buckets", "CExit", "CLinux", "CStart", "CacheStorage",
                "ConfigurationFiles", "Decoding", "Exporting", "FileOutput", "Hashing", "Manifests",
                "Pages",
                "Pipeline", "PrefetchModel", "Reporting", "Sharding", "Threading", "URLParsing",
                "Upkeep",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict, linkerSettings: [quickStart]),
        .target(
            name: "Pipeline",
            dependencies: [
                "CZlib", "CacheStorage", "Codecs", "Decoding", "EntryLifecycle", "EntryQueue",
                "HTTPSemantics", "Hashing", "PrefetchModel", "Scheduling", "Threading", "Transfers",
                "URLParsing",
            ],
            swiftSettings: strict),
        .target(
            name: "Upkeep",
            dependencies: [
                "CacheStorage", "Codecs", "Decoding", "HTTPSemantics", "Hashing", "Pipeline",
                "PrefetchModel",
                "Scheduling", "Threading", "Transfers", "URLParsing",
            ],
            swiftSettings: strict),
        // Cached images in the layouts of other programs.
        .target(
            name: "Exporting",
            dependencies: [
                "CArchive", "CCSV", "CLinux", "CacheStorage", "Hashing", "PrefetchModel",
                "Reporting",
                "SQLite", "Threading",
            ],
            swiftSettings: strict),
        .target(
            name: "Manifests",
            dependencies: [
                "CCSV", "CJSON", "CXML", "CZlib", "PrefetchModel", "URLParsing",
            ],
            swiftSettings: strict),
        // The distribution of lists over machines; pure.
        .target(
            name: "Sharding",
            dependencies: [
                "CPSL", "Hashing", "PrefetchModel", "Reporting",
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: strict),
        // Configuration files; pure.
        .target(
            name: "ConfigurationFiles", dependencies: ["CTOML", "PrefetchModel"],
            swiftSettings: strict),
        .target(
            name: "Scheduling",
            dependencies: [
                "PrefetchModel", .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: strict),
        .target(
            name: "HTTPSemantics", dependencies: ["PrefetchModel"], swiftSettings: strict),
        .target(
            name: "Transfers",
            dependencies: [
                "CCurl", "CJSON", "CLinux", "CXML", "CZlib", "FileOutput", "PrefetchModel",
                "Threading", "URLParsing",
            ],
            swiftSettings: strict),
        .target(
            name: "URLParsing", dependencies: ["CCurl", "PrefetchModel"], swiftSettings: strict),
        .target(
            name: "Codecs",
            dependencies: [
                "CColour", "CDeflate", "CInterruption", "CJPEG", "CLoader", "CPNG", "CPixels",
                "CPlaceholder", "CResample", "CXML", "PrefetchModel",
                .target(name: "CAVIF", condition: .when(traits: ["AVIF"])),
                .target(name: "CGIF", condition: .when(traits: ["GIF"])),
                .target(name: "CHEIF", condition: .when(traits: ["HEIF"])),
                .target(name: "CJXL", condition: .when(traits: ["JPEGXL"])),
                .target(name: "COpenJPEG", condition: .when(traits: ["JPEG2000"])),
                .target(name: "CTIFF", condition: .when(traits: ["TIFF"])),
                .target(name: "CWebP", condition: .when(traits: ["WebP"])),
            ],
            swiftSettings: codecs),
        // Decoding in processes behind walls.
        .target(
            name: "Decoding",
            dependencies: [
                "CLinux", "CSandbox", "CStart", "Codecs", "PrefetchModel", "Threading",
            ],
            swiftSettings: strict),
        .target(
            name: "CacheStorage",
            dependencies: [
                "CLinux", "CZlib", "Hashing", "PrefetchModel", "SQLite", "Threading",
            ],
            swiftSettings: strict),
        .target(name: "SQLite", dependencies: ["CSQLite"], swiftSettings: strict),
        .target(
            name: "Hashing", dependencies: ["CCrypto", "PrefetchModel"], swiftSettings: strict),
        .target(
            name: "Reporting",
            dependencies: ["CJSON", "FileOutput", "PrefetchModel", "Threading"],
            swiftSettings: strict),
        // Caches in buckets of S3-compatible services.
        .target(
            name: "Buckets",
            dependencies: [
                "CXML", "CacheStorage", "HTTPSemantics", "Hashing", "PrefetchModel", "Reporting",
                "Scheduling", "Threading", "Transfers", "URLParsing",
            ],
            swiftSettings: strict),
        // HTML pages about runs and caches; pure.
        .target(
            name: "Pages",
            dependencies: ["CacheStorage", "Hashing", "PrefetchModel", "Reporting"],
            swiftSettings: strict),
        // Files that are written or replaced outside of the cache.
        .target(
            name: "FileOutput", dependencies: ["CLinux", "PrefetchModel"], swiftSettings: strict),
        .target(name: "PrefetchModel", swiftSettings: strict),
        .target(
            name: "Threading", dependencies: ["CLinux", "PrefetchModel"], swiftSettings: strict),
        // The state machine of an entry; pure.
        .target(
            name: "EntryLifecycle", dependencies: ["HTTPSemantics", "PrefetchModel", "Scheduling"],
            swiftSettings: strict),
        // Waiting entries, in memory and in the spill file.
        .target(
            name: "EntryQueue",
            dependencies: [
                "CLinux", "CZlib", "EntryLifecycle", "Hashing", "PrefetchModel", "Scheduling",
            ],
            swiftSettings: strict),
        // The commit that `prefetch --version` prints.
        .target(name: "BuildRecord", swiftSettings: strict, plugins: ["CommitRecorder"]),
        .plugin(name: "CommitRecorder", capability: .buildTool()),

        .testTarget(
            name: "CacheStorageTests",
            dependencies: [
                "CacheStorage", "Hashing", "PrefetchModel", "SQLite", "SeededRandom", "Threading",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "CodecsTests",
            dependencies: [
                "CAllocations", "CColour", "CCrypto", "CDeflate", "CInterruption", "CJPEG", "CPNG",
                "CPixels", "CPlaceholder", "CReferenceDecoders", "CResample", "CXML",
                "CodecFuzzing", "Codecs", "PrefetchModel", "SeededRandom", "Threading",
            ],
            exclude: [
                "Colours/tone-mapping.tsv", "Placeholders/ThumbHashVectors.tsv",
                "Placeholders/thumbhash-vectors.py",
            ],
            swiftSettings: codecs),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "ConfigurationFiles", "Hashing", "Pipeline", "PrefetchModel", "SeededRandom",
                "TestSupport", "Threading", "prefetch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: [
                "Export/readers.py", "Formats/differing-verdicts.tsv", "Formats/pixel-digests.py",
                "Formats/thumbhash.py", "Install/ci-samples.py", "Install/terminal.py",
                "Scale/merge-model.py", "Security/filtered.py",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BucketsTests",
            dependencies: [
                "Buckets", "Hashing", "PrefetchModel", "TestSupport", "Threading", "Transfers",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConfigurationFilesTests",
            dependencies: ["ConfigurationFiles", "PrefetchModel", "SeededRandom"],
            swiftSettings: strict),
        .testTarget(
            name: "DecodingTests",
            dependencies: [
                "CSandbox", "Codecs", "Decoding", "PrefetchModel", "SeededRandom", "TestSupport",
                "Threading",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "EntryLifecycleTests",
            dependencies: [
                "EntryLifecycle", "HTTPSemantics", "PrefetchModel", "Scheduling", "SeededRandom",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "EntryQueueTests",
            dependencies: [
                "EntryLifecycle", "EntryQueue", "Hashing", "PrefetchModel", "Scheduling",
                "SeededRandom",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ExportingTests",
            dependencies: [
                "CacheStorage", "Exporting", "PrefetchModel", "Reporting", "SeededRandom",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPSemanticsTests", dependencies: ["HTTPSemantics", "PrefetchModel"],
            swiftSettings: strict),
        .testTarget(
            name: "ManifestsTests",
            dependencies: ["CZlib", "Manifests", "PrefetchModel", "SeededRandom"],
            swiftSettings: strict),
        .testTarget(
            name: "PagesTests",
            dependencies: ["Pages", "PrefetchModel", "Reporting", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "PipelineTests",
            dependencies: [
                "CacheStorage", "Codecs", "Decoding", "EntryLifecycle", "EntryQueue", "Hashing",
                "Pipeline",
                "PrefetchModel", "Scheduling", "SeededRandom", "Threading", "Transfers",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "PrefetchModelTests", dependencies: ["PrefetchModel", "SeededRandom"],
            swiftSettings: strict),
        .testTarget(
            name: "ReportingTests",
            dependencies: [
                "FileOutput", "PrefetchModel", "Reporting", "SeededRandom", "TestSupport",
                "Threading",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SQLiteTests", dependencies: ["SQLite"], swiftSettings: strict),
        .testTarget(
            name: "SchedulingTests", dependencies: ["PrefetchModel", "Scheduling", "SeededRandom"],
            swiftSettings: strict),
        .testTarget(
            name: "prefetchTests",
            dependencies: [
                "ConfigurationFiles", "Manifests", "Pipeline", "PrefetchModel", "TestSupport",
                "Threading", "prefetch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TestSupportTests", dependencies: ["TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "TransfersTests",
            dependencies: [
                "CCurl", "PrefetchModel", "TestSupport", "Threading", "Transfers", "URLParsing",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ShardingTests",
            dependencies: ["Hashing", "PrefetchModel", "SeededRandom", "Sharding", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "UpkeepTests",
            dependencies: ["CacheStorage", "Pipeline", "PrefetchModel", "Upkeep"],
            swiftSettings: strict),
        .testTarget(
            name: "URLParsingTests", dependencies: ["PrefetchModel", "SeededRandom", "URLParsing"],
            swiftSettings: strict),

        // The scriptable origin, the runner of the built command and the judge of its cache.
        .target(
            name: "TestSupport",
            dependencies: [
                "CTLS", "CTestSupport", "CZlib", "PrefetchModel", "Threading",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
            ],
            path: "Tests/TestSupport",
            exclude: [
                "Commands/everywhere.py", "Fixtures", "Judging/judge.py", "Judging/junit-10.xsd",
                "Judging/page.py", "Judging/serve.py",
            ],
            swiftSettings: strict),
        // For the tests of the walls around decoders: what they let through, and a hostile worker.
        .executableTarget(
            name: "sandbox-probe", dependencies: ["CSandbox"], path: "Tests/sandbox-probe",
            cSettings: boundary),
        // For Scripts/bench/run only.
        .executableTarget(
            name: "scheduler-bench", dependencies: ["EntryQueue", "PrefetchModel", "Scheduling"],
            path: "Tests/scheduler-bench", swiftSettings: strict),
        .executableTarget(
            name: "codec-bench",
            dependencies: [
                "CCodecLibraries", "CJPEG", "CPNG", "CPixels", "CResample", "Codecs",
                "PrefetchModel", "Threading",
                .target(name: "CAVIF", condition: .when(traits: ["AVIF"])),
                .target(name: "CWebP", condition: .when(traits: ["WebP"])),
            ],
            path: "Tests/codec-bench", swiftSettings: strict),
        // For the peers of codec-bench.
        .systemLibrary(
            name: "CCodecLibraries", path: "Tests/CCodecLibraries",
            providers: [.apt(["libjpeg62-turbo-dev", "libpng-dev"])]),
        .target(name: "FaultyJPEG", path: "Tests/FaultyJPEG", cSettings: boundary),
        .target(
            name: "NetworkFileSystem", path: "Tests/NetworkFileSystem", cSettings: boundary),
        .target(name: "StopAtStart", path: "Tests/StopAtStart", cSettings: boundary),
        .target(
            name: "SeededRandom", dependencies: ["PrefetchModel"], path: "Tests/SeededRandom",
            swiftSettings: strict),
        .target(name: "CTestSupport", path: "Tests/CTestSupport", cSettings: boundary),
        // Counts allocations, by functions in place of glibc's.
        .target(name: "CAllocations", path: "Tests/CAllocations", cSettings: boundary),
        // The server side of TLS for test origins.
        .target(
            name: "CTLS", path: "Tests/CTLS", cSettings: boundary,
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        // Invariants of the codecs, for their tests and fuzzers.
        .target(
            name: "CodecFuzzing",
            dependencies: [
                "CDeflate", "CJPEG", "CPNG", "CReferenceDecoders", "Codecs", "PrefetchModel",
                "SeededRandom",
            ],
            path: "Tests/CodecFuzzing", swiftSettings: codecs),
        .target(
            name: "CReferenceDecoders", path: "Tests/CReferenceDecoders", cSettings: boundary,
            linkerSettings: [.linkedLibrary("jpeg"), .linkedLibrary("png")]),

        .target(name: "CLoader", cSettings: boundary),
        // libcurl is loaded on first use instead of linked.
        .target(name: "CCurl", dependencies: ["CLoader"], cSettings: boundary),
        .target(name: "CExit", cSettings: boundary),
        .target(name: "CSandbox", cSettings: boundary),
        .target(name: "CStart", cSettings: boundary),
        // libarchive is loaded on first use, too.
        .target(name: "CArchive", dependencies: ["CLoader"], cSettings: boundary),
        .target(name: "CPSL", dependencies: ["CLoader"], cSettings: boundary),
        // Little CMS is loaded on first use, too.
        .target(name: "CColour", dependencies: ["CLoader"], cSettings: boundary),
        .target(name: "CInterruption", cSettings: boundary),
        .target(
            name: "CDeflate", dependencies: ["CInterruption"], cSettings: boundary,
            linkerSettings: [.linkedLibrary("deflate"), .linkedLibrary("z")]),
        .target(
            name: "CJPEG", dependencies: ["CInterruption"],
            cSettings: boundary + [
                .headerSearchPath("Boundary"), .headerSearchPath("Entropy"),
                .headerSearchPath("Preview"), .headerSearchPath("Scales"),
                .headerSearchPath("Transcoder"),
            ],
            linkerSettings: [.linkedLibrary("jpeg")]),
        .target(
            name: "CPixels", dependencies: ["CInterruption"], cSettings: boundary,
            linkerSettings: [.linkedLibrary("m")]),
        .target(
            name: "CPNG", dependencies: ["CDeflate", "CInterruption"], cSettings: boundary,
            linkerSettings: [
                .linkedLibrary("png"), .linkedLibrary("deflate"), .linkedLibrary("z"),
            ]),
        .target(name: "CResample", dependencies: ["CInterruption"], cSettings: boundary),
        // libavif is loaded on first use, too. The program must export one function (cavif_quiet.c)
        // to the libraries that libavif loads.
        .target(
            name: "CAVIF", dependencies: ["CInterruption", "CLoader"], cSettings: boundary,
            linkerSettings: [
                .unsafeFlags(
                    ["-Xlinker", "--export-dynamic-symbol=dav1d_default_settings"],
                    .when(traits: ["AVIF"]))
            ]),
        // So are these, in a worker. The program must export one function (cheif_single.c) to the
        // libraries that libheif loads.
        .target(
            name: "CHEIF", dependencies: ["CInterruption", "CLoader"], cSettings: boundary,
            linkerSettings: [
                .unsafeFlags(
                    ["-Xlinker", "--export-dynamic-symbol=de265_start_worker_threads"],
                    .when(traits: ["HEIF"]))
            ]),
        .target(name: "CJXL", dependencies: ["CInterruption", "CLoader"], cSettings: boundary),
        .target(
            name: "COpenJPEG", dependencies: ["CInterruption", "CLoader"], cSettings: boundary),
        .target(
            name: "CTIFF", dependencies: ["CInterruption", "CLoader"], cSettings: boundary,
            linkerSettings: [.linkedLibrary("m")]),
        .target(
            name: "CGIF", dependencies: ["CInterruption"], cSettings: boundary,
            linkerSettings: [.linkedLibrary("gif", .when(traits: ["GIF"]))]),
        .target(
            name: "CWebP", dependencies: ["CInterruption"], cSettings: boundary,
            linkerSettings: [
                .linkedLibrary("webpmux", .when(traits: ["WebP"])),
                .linkedLibrary("webp", .when(traits: ["WebP"])),
            ]),
        .target(
            name: "CXML", dependencies: ["CInterruption"], cSettings: boundary,
            linkerSettings: [.linkedLibrary("expat")]),
        .target(name: "CPlaceholder", cSettings: boundary),
        // The static library: one more file to find and relocate would slow every start.
        .target(
            name: "CCSV", cSettings: boundary,
            linkerSettings: [.unsafeFlags(["-Xlinker", "-l:libcsv.a"])]),
        // Of headers alone.
        .target(
            name: "CJSON",
            cxxSettings: [.unsafeFlags(["-O3", "-Wall", "-Wextra", "-Werror"])]),
        .target(
            name: "CTOML",
            cxxSettings: [.unsafeFlags(["-O2", "-Wall", "-Wextra", "-Werror"])]),
        .systemLibrary(name: "CCrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)

// For Scripts/fuzz: the instrumented codecs and readers with their fuzzers, without other packages. UBSan
// covers C only.
if Context.environment["PREFETCH_FUZZ"] != nil {
    let fuzzed: Set = [
        "CAVIF", "CColour", "CDeflate", "CGIF", "CHEIF", "CInterruption", "CJPEG", "CJXL",
        "CLoader", "COpenJPEG", "CPNG", "CPixels", "CPlaceholder", "CResample", "CTIFF", "CWebP",
        "CXML", "Codecs", "CCSV", "CJSON", "CTOML",
        "ConfigurationFiles", "Manifests", "URLParsing",
    ]
    let helpers: Set = [
        "CCurl", "CReferenceDecoders", "CZlib", "CodecFuzzing", "PrefetchModel", "SeededRandom",
    ]
    package.dependencies = []
    package.products = []
    package.targets.removeAll { !fuzzed.union(helpers).contains($0.name) }
    for target in package.targets where fuzzed.contains(target.name) {
        target.swiftSettings?.append(.unsafeFlags(["-sanitize=fuzzer"]))
        target.cSettings?.append(
            .unsafeFlags([
                "-fsanitize=undefined", "-fno-sanitize-recover=undefined",
                // Without tracing of comparisons, which pixel loops are full of.
                "-fsanitize-coverage=inline-8bit-counters,pc-table",
            ]))
    }
    package.targets += [
        .executableTarget(
            name: "codec-fuzz",
            dependencies: ["CLibFuzzer", "CodecFuzzing", "Codecs", "PrefetchModel"],
            path: "Tests/codec-fuzz",
            exclude: ["containers.dict", "extract-profiles", "jpeg.dict"],
            swiftSettings: strict),
        .executableTarget(
            name: "list-fuzz",
            dependencies: ["CLibFuzzer", "ConfigurationFiles", "Manifests", "PrefetchModel"],
            path: "Tests/list-fuzz", exclude: ["lists.dict", "seeds"], swiftSettings: strict),
        .systemLibrary(name: "CLibFuzzer", path: "Tests/CLibFuzzer"),
    ]
}

// For `Scripts/check address`: undefined behaviour in C also fails a test. Not in libraries that
// tests preload, which lack the sanitizer's runtime.
if Context.environment["PREFETCH_SANITIZER"] == "address" {
    for target in package.targets where target.path == nil {
        target.cSettings?.append(
            .unsafeFlags(["-fsanitize=undefined", "-fno-sanitize-recover=undefined"]))
    }
}

// For `Scripts/test --only`: one test target with its dependencies, without other packages. The
// codecs and their tests need no packages.
if let wanted = Context.environment["PREFETCH_ONLY"] {
    var targets: Set = [wanted]
    var packages: Set<String> = []
    var isComplete = false
    while !isComplete {
        isComplete = true
        for target in package.targets where targets.contains(target.name) {
            for dependency in target.dependencies {
                switch dependency {
                case .targetItem(let name, _), .byNameItem(let name, _):
                    if targets.insert(name).inserted { isComplete = false }
                case .productItem(_, let package, _, _):
                    if let package { packages.insert(package) }
                @unknown default: break
                }
            }
            for case .plugin(let name, _) in target.plugins ?? [] {
                if targets.insert(name).inserted { isComplete = false }
            }
        }
    }
    package.products = []
    package.targets.removeAll { !targets.contains($0.name) }
    package.dependencies.removeAll { dependency in
        guard case .sourceControl(_, let location, _) = dependency.kind else { return false }
        return !packages.contains { location.hasSuffix("/" + $0) }
    }
}

import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting

struct AttrCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attr",
        abstract: "Read and write extended attributes of cached images.",
        discussion: """
            An attribute has a name of 1 to 255 bytes and a value of up to 64 KiB of any bytes. It is \
            kept when its image is refreshed and removed with the image. Manifests set attributes \
            with the field attr.NAME=VALUE. Names that begin with `prefetch.` are reserved.

            Examples:
              prefetch attr set https://example.com/hero.jpg licence CC-BY-4.0
              prefetch attr list https://example.com/hero.jpg

            Exit status: 0 done, 1 the image or the attribute is not in the cache, 2 the cache \
            cannot be used, 64 wrong usage, 75 another process holds the cache.
            """,
        subcommands: [
            GetAttribute.self, SetAttribute.self, ListAttributes.self, RemoveAttributes.self,
        ])

    struct GetAttribute: SearchingCommand {
        static let configuration = CommandConfiguration(
            commandName: "get",
            abstract: "Write an attribute's value to standard output, byte for byte.",
            discussion: """
                Example:
                  prefetch attr get https://example.com/hero.jpg thumbhash > hash.bin
                """)

        @Argument(help: .value("url", "The image's URL, or its cache key."))
        var image: ImageName

        @Argument(help: .value("name", "The attribute's name."))
        var name: String

        @OptionGroup var keys: Flags<KeyFlags>
        @OptionGroup var cache: CacheOptions

        func run() throws {
            let catalog = try cache.catalog()
            let resource = try image.leavingOut(keys).found(
                catalog.resource, keyOfURL: catalog.key(ofURL:))
            guard let value = try catalog.attribute(name, of: resource) else {
                throw AttrCommand.isMissing(name, of: image)
            }
            try OutputFile.standardOutput().write(value)
        }
    }

    struct SetAttribute: SearchingCommand {
        static let configuration = CommandConfiguration(
            commandName: "set",
            abstract: "Set an attribute.",
            discussion: """
                The value is given as an argument or read with --file. Put `--` before a name or a \
                value that begins with a hyphen.

                Examples:
                  prefetch attr set https://example.com/hero.jpg licence CC-BY-4.0
                  prefetch attr set https://example.com/hero.jpg thumbhash --file hash.bin
                  prefetch attr set https://example.com/hero.jpg offset -- -5
                """)

        @Argument(help: .value("url", "The image's URL, or its cache key."))
        var image: ImageName

        @Argument(help: .value("name", "The attribute's name."))
        var name: String

        @Argument(help: .value("value", "The attribute's value, UTF-8."))
        var value: String?

        @Option(
            help: .value(
                "file", "Read the value from a file, byte for byte; `-` is standard input."),
            completion: .file())
        var file: String?

        @OptionGroup var keys: Flags<KeyFlags>
        @OptionGroup var options: ChangeOptions

        func validate() throws {
            guard (value == nil) != (file == nil) else {
                throw ValidationError("give the value once, as an argument or with --file")
            }
        }

        func run() throws {
            // Checks the name before waiting for standard input.
            _ = try AttrCommand.attribute(name, [])
            let attribute = try AttrCommand.attribute(name, readValue())
            try options.change { cache in
                _ = try image.leavingOut(keys).found(
                    { try cache.attributes.set(attribute, key: $0) ? true : nil },
                    keyOfURL: CacheCatalog(cache).key(ofURL:))
            }
        }

        /// Reads at most one byte more than the limit, which is enough to refuse the value.
        private func readValue() throws -> [UInt8] {
            if let value { return Array(value.utf8) }
            return try InputFile(file ?? "-").read(limit: EntryAttribute.maximumValueBytes + 1)
        }
    }

    struct ListAttributes: SearchingCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the attributes of an image.",
            discussion: """
                One line per attribute, sorted by name: the name, a tab, and the value with control \
                characters escaped, or `<N bytes>` if it is not UTF-8. `attr get` writes the exact \
                value.

                Example:
                  prefetch attr list https://example.com/hero.jpg --json
                """)

        @Argument(help: .value("url", "The image's URL, or its cache key."))
        var image: ImageName

        @OptionGroup var keys: Flags<KeyFlags>
        @OptionGroup var cache: CacheOptions

        @Flag(
            help: """
                Print a JSON object. A value that is not UTF-8 becomes an object with the member \
                base64.
                """)
        var json = false

        func run() throws {
            let catalog = try cache.catalog()
            let resource = try image.leavingOut(keys).found(
                catalog.resource, keyOfURL: catalog.key(ofURL:))
            let attributes = try catalog.attributes(of: resource)
            if json {
                var object = JSONObject()
                object.add("key", resource.key)
                object.add("url", resource.url)
                object.add("attributes", JSONObject(attributes))
                try LineWriter.print(object)
            } else {
                try LineWriter.print(
                    attributes.map { attribute in
                        let value =
                            attribute.text.map(printable) ?? "<\(attribute.value.count) bytes>"
                        return "\(printable(attribute.name))\t\(value)"
                    })
            }
        }
    }

    struct RemoveAttributes: SearchingCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm",
            abstract: "Remove attributes.",
            discussion: """
                Exit status 1 if the image lacks one of them; the others are removed anyway.

                Example:
                  prefetch attr rm https://example.com/hero.jpg licence
                """)

        @Argument(help: .value("url", "The image's URL, or its cache key."))
        var image: ImageName

        @Argument(help: .value("name", "The attributes' names."))
        var names: [String]

        @OptionGroup var keys: Flags<KeyFlags>
        @OptionGroup var options: ChangeOptions

        func run() throws {
            for name in names { _ = try AttrCommand.attribute(name, []) }
            try options.change { cache in
                var missing: [String] = []
                for name in names {
                    let wasThere = try image.leavingOut(keys).found(
                        { try cache.attributes.remove(name, key: $0) },
                        keyOfURL: CacheCatalog(cache).key(ofURL:))
                    if !wasThere { missing.append(name) }
                }
                if !missing.isEmpty {
                    throw AttrCommand.isMissing(missing.joined(separator: ", "), of: image)
                }
            }
        }
    }

    /// Makes an attribute. Swift alters arguments that aren't UTF-8, so they are refused.
    static func attribute(_ name: String, _ value: [UInt8]) throws -> EntryAttribute {
        guard ProcessArguments.areText else {
            throw UserError(
                .usage, "the arguments are not valid UTF-8",
                hint: "--file sets a value of any bytes")
        }
        return try EntryAttribute(name: name, value: value)
    }

    private static func isMissing(_ name: String, of image: ImageName) -> UserError {
        UserError(.incomplete, "\(image.shown): no attribute \(name)")
    }
}

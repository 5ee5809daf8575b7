import PrefetchModel
import Testing

@testable import Manifests

/// Columns with the names of fields, which are everyday words.
@Suite(.timeLimit(.minutes(15)))
struct NamedFieldsTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let formats: [ManifestFormat] = [.csv, .tsv, .jsonl]
    private static let names = EntryFields.names + ["attr.a"]
    /// Values that no field takes, except for `key` and `attr.a`.
    private static let wrong = ["red shoes", "1/5", "N/A"]
    private static let right = [
        "priority": "5", "key": "0", "ttl": "5m", "header": "A: b", "url": "https://m.example/",
        "sha256": String(repeating: "a", count: 64), "encode": "png", "quality": "80",
        "resize": "800", "crop": "3x2", "transform": "flip=h", "animated": "first",
        "variant": "web=jpeg", "variants": "main", "attr.a": "x",
    ]

    /// A list with a URL and one more column.
    private static func list(_ format: ManifestFormat, _ name: String, _ values: [String]) -> String
    {
        let tab = format == .tsv ? "\t" : ","
        let rows = values.enumerated().map { number, value in
            let url = "https://a.example/\(number)"
            let object = "{\"image_url\":\"\(url)\",\"\(name)\":\"\(value)\"}\n"
            return format == .jsonl ? object : "\(url)\(tab)\(value)\n"
        }
        return (format == .jsonl ? "" : "image_url\(tab)\(name)\n") + rows.joined()
    }

    private func reader(
        _ text: String, _ format: ManifestFormat, _ rules: ColumnRules = ColumnRules(),
        in variants: VariantSet? = nil, readBytes: Int = 128 << 10
    ) throws -> ManifestReader {
        try ManifestReader(
            path: folder.file("list", text.utf8),
            options: ManifestOptions(
                format: format, columns: rules, keepsColumns: true, variants: variants,
                readBytes: readBytes))
    }

    @Test(arguments: formats, names)
    func aWrongValueMakesTheColumnAnotherOne(format: ManifestFormat, name: String) throws {
        let right = try #require(NamedFieldsTests.right[name])
        let isTaken = !["key", "url", "attr.a"].contains(name)
        for wrong in NamedFieldsTests.wrong {
            for values in [[wrong, right], [right, wrong]] {
                let reader = try reader(NamedFieldsTests.list(format, name, values), format)
                let (entries, error) = reader.readAll()
                #expect(error == nil && entries.map(\.problem) == [nil, nil], "\(entries)")
                #expect(entries.allSatisfy { $0.key == $0.url && $0.priority == 0 })
                guard name != "attr.a" else { continue }
                // The rows before the wrong one, too.
                #expect(entries.map(\.columns) == values.map { "{\"\(name)\":\"\($0)\"}" })
                for entry in entries {
                    var extras = entry.extras
                    extras?.columns = nil
                    #expect(extras == .empty, "\(entry)")
                }
                #expect(reader.notes.count == (isTaken ? 1 : 0), "\(reader.notes)")
                guard let note = reader.notes.first else { continue }
                let line = (values[0] == wrong ? 1 : 2) + (format == .jsonl ? 0 : 1)
                let text = "the column '\(name)' is an ordinary one: line \(line): "
                #expect(note.text.hasPrefix(text), "\(note)")
                #expect(note.remedy.hasPrefix("--column \(name)= "), "\(note)")
            }
        }
    }

    @Test(arguments: formats, names)
    func theUsersColumnIsStrict(format: ManifestFormat, name: String) throws {
        let right = try #require(NamedFieldsTests.right[name])
        let wrong = name == "key" ? String(repeating: "k", count: 3000) : "red\u{7F}shoes"
        let rules = ColumnRules(columns: [name: "c"])
        let reader = try reader(NamedFieldsTests.list(format, "c", [right, wrong]), format, rules)
        let (entries, _) = reader.readAll()
        // A mirror that cannot be requested is passed over.
        let isLenient = ["attr.a", "url"].contains(name)
        #expect(entries.map { $0.problem == nil } == [true, isLenient], "\(entries)")
        #expect(reader.notes.isEmpty)
        let first = try #require(entries.first)
        switch name {
        case "key": #expect(first.key == "0")
        case "priority": #expect(first.priority == 5)
        // Without a run it selects nothing.
        case "variants": break
        default: #expect(first.extras != nil && first.extras != .empty)
        }
    }

    /// JSON has values of other kinds.
    @Test(
        arguments: names.filter { !["key", "url"].contains($0) },
        ["true", "{\"a\":1}", "[[1]]"])
    func aValueOfAnotherKindDoesToo(name: String, value: String) throws {
        // An object has header fields.
        let value = name == "header" && value.hasPrefix("{") ? "{\"a\":[1]}" : value
        let reader = try reader(
            "{\"url\":\"https://a.example/\",\"\(name)\":\(value)}\n", .jsonl)
        let (entries, _) = reader.readAll()
        #expect(entries.map(\.problem) == [nil], "\(entries)")
        #expect(entries.first?.columns == "{\"\(name)\":\(value)}")
        #expect(reader.notes.count == 1)
    }

    /// Such a list is not read twice, so the earlier rows have the field, and the note says it.
    @Test(arguments: formats)
    func aWrongValueLateInTheListIsNamed(format: ManifestFormat) throws {
        let count = 12_000
        let values = (0..<count).map { $0 == count - 2 ? "0.83" : "80" }
        let reader = try reader(NamedFieldsTests.list(format, "quality", values), format)
        let (entries, error) = reader.readAll()
        #expect(error == nil && entries.allSatisfy { $0.problem == nil })
        #expect(entries.map { $0.extras?.main.quality == 80 } == (0..<count).map { $0 < count - 2 })
        #expect(entries.last?.columns == "{\"quality\":\"80\"}")
        let line = count - 1 + (format == .jsonl ? 0 : 1)
        #expect(
            reader.notes.map(\.text) == [
                "the column 'quality' is an ordinary one from line \(line) on, and a field before: "
                    + "line \(line): field 'quality' takes 1 to 100, not '0.83'"
            ])
    }

    /// Values that are right by themselves, and wrong for the run.
    @Test(
        arguments: formats,
        [("variants", "main", "red"), ("variant", "own=jpeg", "web=jpeg")])
    func aValueThatTheRunLacksDoesToo(
        format: ManifestFormat, field: (name: String, right: String, wrong: String)
    ) throws {
        let variants = try VariantSet(
            ["main", "web"].map {
                RequestedVariant(
                    name: try #require(VariantName($0)), recipe: Recipe(encoding: .jpeg))
            })
        let list = NamedFieldsTests.list(format, field.name, [field.right, field.wrong])
        let reader = try reader(list, format, in: variants)
        let (entries, _) = reader.readAll()
        #expect(entries.map(\.problem) == [nil, nil], "\(entries)")
        #expect(reader.notes.count == 1, "\(reader.notes)")
    }

    @Test(arguments: [1, 7, 128 << 10])
    func severalColumnsAreJudgedEachByItself(readBytes: Int) throws {
        let text = """
            url,quality,priority,ttl,key
            https://a.example/1,80,0.8,5m,0
            https://a.example/2,90,0.5,never,1
            """
        let reader = try reader(text, .csv, readBytes: readBytes)
        let (entries, _) = reader.readAll()
        #expect(entries.map { $0.extras?.main.quality } == [80, 90])
        #expect(entries.map { $0.extras?.timeToLive } == [nil, nil])
        #expect(
            entries.map(\.columns) == [
                #"{"priority":"0.8","ttl":"5m","key":"0"}"#,
                #"{"priority":"0.5","ttl":"never","key":"1"}"#,
            ])
        #expect(reader.notes.count == 2)
    }

    /// A row without a URL names an image by its key.
    @Test func anAssignedKeyNamesAnImage() throws {
        let rules = ColumnRules(columns: ["key": "key"])
        let reader = try reader("url,key\n,k\n", .csv, rules)
        _ = reader.readAll()
        #expect(reader.gap != nil)
    }

    // MARK: The column of URLs

    private static let pictures = [
        "image", "image_url", "image-src", "src", "thumbnail", "image_link", "photo", "IMAGE URL",
        "Image Src", "imageUrl", "img", "img-src", "photo_url", "picture", "Thumbnail-URL",
    ]

    @Test(arguments: formats, pictures)
    func namesOfPicturesPrecedeURL(format: ManifestFormat, name: String) throws {
        for other in ["url", "URL", "link", "href", "loc", "uri"] {
            for isFirst in [true, false] {
                let (page, picture) = ("https://a.example/page", "https://a.example/1.jpg")
                let columns = [(name, picture), (other, page)]
                let order = isFirst ? columns : columns.reversed()
                let tab = format == .tsv ? "\t" : ","
                let rows = [order.map(\.0), order.map(\.1)].map { $0.joined(separator: tab) }
                let members = order.map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",")
                let text = format == .jsonl ? "{\(members)}\n" : "\(rows[0])\n\(rows[1])\n"
                let (entries, _) = try reader(text, format).readAll()
                #expect(entries.map(\.url) == [picture], "\(text)")
                #expect(entries.first?.columns == "{\"\(other)\":\"\(page)\"}")
            }
        }
    }

    /// Data sets have the bytes or the names of pictures in `image`.
    @Test(arguments: [
        "\"cat.jpg\"", "{\"bytes\":null,\"path\":\"cat.jpg\"}", "17", "[1,2]", "[\"cat.jpg\"]",
    ])
    func aPictureThatIsNoURLDoesNotPrecedeOne(value: String) throws {
        let url = "https://a.example/1.jpg"
        let members = ["\"image\":\(value)", "\"url\":\"\(url)\""]
        for order in [members, members.reversed()] {
            let text = "{\(order.joined(separator: ","))}\n"
            let (entries, _) = try reader(text, .jsonl).readAll()
            #expect(entries.map(\.url) == [url])
            #expect(entries.first?.columns == "{\"image\":\(value)}")
        }
        let quoted = "\"\(value.replacing("\"", with: "\"\""))\""
        for text in ["image,url\n\(quoted),\(url)\n", "url,image\n\(url),\(quoted)\n"] {
            #expect(try reader(text, .csv).readAll().entries.map(\.url) == [url])
        }
    }

    /// A base makes a name a URL; an empty one is a row without a picture.
    @Test func aRelativeOrMissingPictureIsNoOtherColumn() throws {
        let text = "image,url\n1.jpg,https://a.example/page\n"
        var options = ManifestOptions(format: .csv, baseURL: "https://b.example/")
        options.keepsColumns = true
        let based = try ManifestReader(path: folder.file("list", text.utf8), options: options)
        #expect(based.readAll().entries.map(\.url) == ["https://b.example/1.jpg"])
        let rows = "image,url\n,https://a.example/page\nhttps://a.example/1.jpg,x\n"
        let (entries, _) = try reader(rows, .csv).readAll()
        #expect(entries.map(\.url) == ["https://a.example/1.jpg"])
    }

    /// Values in a picture's column that cannot be requested.
    private static let noURLs = ["", "null", "data:image/gif;base64,AA", "N/A", "about:blank"]

    /// A list of pictures beside pages, one of each a row.
    private static func pictures(
        _ format: ManifestFormat, _ name: String, _ values: [String]
    ) -> String {
        let tab = format == .tsv ? "\t" : ","
        let rows = values.enumerated().map { number, value in
            let page = "https://a.example/page\(number)"
            let member = value == "null" ? value : "\"\(value)\""
            let cell = value.contains(",") ? "\"\(value)\"" : value
            return format == .jsonl
                ? "{\"url\":\"\(page)\",\"\(name)\":\(member)}\n" : "\(page)\(tab)\(cell)\n"
        }
        return (format == .jsonl ? "" : "url\(tab)\(name)\n") + rows.joined()
    }

    @Test(arguments: formats, noURLs)
    func theRowsTriedShowTheColumnOfURLs(format: ManifestFormat, value: String) throws {
        let value = format == .csv ? value : value.replacing(",", with: "")
        for name in ["image", "thumbnail", "Photo URL"] {
            let unused = NamedFieldsTests.pictures(format, name, [value, value, value])
            let (rows, _) = try reader(unused, format).readAll()
            let pages = (0..<3).map { "https://a.example/page\($0)" }
            #expect(rows.map(\.url) == pages, "\(unused)")
            #expect(rows.allSatisfy { $0.problem == nil }, "\(unused)")
            let picture = "https://a.example/1.jpg"
            for values in [[value, value, picture], [picture, value]] {
                let list = NamedFieldsTests.pictures(format, name, values)
                let (entries, _) = try reader(list, format).readAll()
                let own = entries.filter { $0.problem == nil }
                #expect(own.map(\.url) == [picture], "\(list)")
                #expect(entries.allSatisfy { !$0.url.contains("page") }, "\(entries)")
            }
        }
    }

    /// Texts without a scheme are URLs then.
    @Test(arguments: formats, ["", "null", "data:image/gif;base64"])
    func aBaseMakesNoURLOfThese(format: ManifestFormat, value: String) throws {
        guard format == .jsonl || value != "null" else { return }
        let list = NamedFieldsTests.pictures(format, "image", [value, value])
        let options = ManifestOptions(format: format, baseURL: "https://b.example/")
        let reader = try ManifestReader(path: folder.file("list", list.utf8), options: options)
        let pages = (0..<2).map { "https://a.example/page\($0)" }
        #expect(reader.readAll().entries.map(\.url) == pages)
    }

    /// Rows beyond those tried do not move the column of URLs.
    @Test(arguments: formats)
    func aLatePictureMovesNoColumn(format: ManifestFormat) throws {
        let values = (0..<12_000).map { $0 < 11_990 ? "" : "https://a.example/\($0).jpg" }
        let (entries, _) = try reader(
            NamedFieldsTests.pictures(format, "image", values), format
        ).readAll()
        #expect(entries.count == 12_000 && entries.allSatisfy { $0.url.contains("page") })
    }
}

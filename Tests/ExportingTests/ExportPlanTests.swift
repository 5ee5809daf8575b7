import PrefetchModel
import Reporting
import Testing

@testable import Exporting

@Suite(.timeLimit(.minutes(15))) struct ExportPlanTests {
    private func plan(
        _ rules: ExportRules, _ images: [ExportedImage]
    ) -> (plan: ExportPlan, collisions: [String]) {
        var plan = ExportPlan(rules, at: Timestamp(seconds: 9))
        var collisions: [String] = []
        for image in images {
            if let path = try? plan.path(of: image), let other = plan.add(image, as: path) {
                collisions.append("\(image.url) \(other.url) \(path)")
            }
        }
        collisions += plan.settle().map { "\($0.image.url) \($0.other.url) \($0.path)" }
        return (plan, collisions)
    }

    @Test func firstOfTwoImagesWithOneNameIsExported() {
        let (plan, collisions) = plan(
            ExportRules(layout: .mirror),
            [
                .fixture("http://h/a?x=a%26b", stored: .fixture(1)),
                .fixture("http://h/a?x=a&b", stored: .fixture(2)),
            ])
        #expect(plan.rows.map(\.path) == ["h/a?x=a&b"])
        #expect(collisions == ["http://h/a?x=a&b http://h/a?x=a%26b h/a?x=a&b"])
    }

    @Test func twoSpellingsOfAnImageShareItsFile() {
        let (plan, collisions) = plan(
            ExportRules(layout: .mirror),
            [.fixture("http://h/a%20b"), .fixture("http://h/a b")])
        #expect(plan.rows.map(\.path) == ["h/a b", "h/a b"])
        #expect(plan.files().map(\.path) == ["h/a b"])
        #expect(collisions.isEmpty)
    }

    @Test(arguments: [false, true]) func caseMattersUnlessItDoesNot(_ isCaseInsensitive: Bool) {
        let (plan, collisions) = plan(
            .fixture(.mirror) { $0.isCaseInsensitive = isCaseInsensitive },
            [
                .fixture("http://h/A.jpg", stored: .fixture(1)),
                .fixture("http://h/a.jpg", stored: .fixture(2)),
                // Composed and decomposed.
                .fixture("http://h/%C3%A9", stored: .fixture(3)),
                .fixture("http://h/e%CC%81", stored: .fixture(4)),
            ])
        #expect(plan.rows.count == (isCaseInsensitive ? 2 : 4))
        #expect(collisions.count == (isCaseInsensitive ? 2 : 0))
    }

    /// In any order of the list.
    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
    func fileWithTheNameOfAFolderGetsAnother(_ order: [Int]) {
        let images = [
            ExportedImage.fixture("http://h/a", stored: .fixture(1)),
            .fixture("http://h/a/b", stored: .fixture(2)),
            .fixture("http://h/a/b/c", stored: .fixture(3)),
        ]
        let (plan, collisions) = plan(ExportRules(layout: .mirror), order.map { images[$0] })
        #expect(plan.files().map(\.path) == ["h/a/b/c", "h/a/b~file", "h/a~file"])
        #expect(collisions.isEmpty)
    }

    @Test(arguments: ExportLayout.allCases)
    func namesOfURLsMayBelieAnotherFormat(_ layout: ExportLayout) throws {
        let images = [
            ("a.jpg", ImageFormat.avif), ("b.JPEG", .jpeg), ("c.png?w=1", .webp), ("d.webp", .webp),
            ("e.php", .png), ("f", .png), ("g.jpg", .jpeg),
        ].enumerated().map { index, image in
            ExportedImage.fixture(
                "http://h/\(image.0)", stored: .fixture(UInt8(index + 1), format: image.1))
        }
        let rules = try ExportRules.fixture(layout) {
            if layout == .pattern { $0.pattern = try NamePattern("{name}.{ext}") }
        }
        let misnamed = plan(rules, images).plan.misnamed.map(\.image.url)
        let expected = ["http://h/a.jpg", "http://h/c.png?w=1"]
        #expect(misnamed == ([.mirror, .workbox].contains(layout) ? expected : []))
    }

    @Test func newNameMayCollide() {
        let (plan, collisions) = plan(
            ExportRules(layout: .mirror),
            [
                .fixture("http://h/a~file", stored: .fixture(1)),
                .fixture("http://h/a", stored: .fixture(2)),
                .fixture("http://h/a/b", stored: .fixture(3)),
            ])
        #expect(plan.files().map(\.path) == ["h/a/b", "h/a~file"])
        #expect(collisions == ["http://h/a http://h/a~file h/a~file"])
    }

    @Test func shardsKeepTheNumbersOfTheList() throws {
        var plan = ExportPlan(
            .fixture(.webdataset) { $0.shardSize = 2 }, at: Timestamp(seconds: 0))
        for number in [1, 2, 4] {
            try plan.add(
                .fixture(
                    "http://h/\(number)", number: number,
                    columns: number == 4 ? #"{"caption":"four","x":[1]}"# : nil))
        }
        var gone = MissingEntry(number: 3, url: "http://h/3", reason: "HTTP 404")
        gone.columns = Array(#"{"caption":"three"}"#.utf8)
        plan.addMissing(gone)
        var broken = MissingEntry(number: 5, url: "http://h/5", reason: "corrupt-image")
        broken.isUnusable = true
        plan.addMissing(broken)
        _ = plan.settle()
        #expect(
            plan.rows.map(\.path) == [
                "00000.tar/000000000.jpg", "00000.tar/000000001.jpg", "00001.tar/000010001.jpg",
            ])
        let files = plan.files()
        #expect(
            files.map(\.path) == [
                "00000.tar", "00000_stats.json", "00001.tar", "00001_failed.jsonl",
                "00001_stats.json", "00002_failed.jsonl", "00002_stats.json",
            ])
        guard case .archive(let members) = files[2].content else {
            Issue.record("wrong contents")
            return
        }
        #expect(
            members.map(\.name) == ["000010001.jpg", "000010001.json", "000010001.txt"])
        #expect(
            texts(of: files)["00001_failed.jsonl"] == """
                {"url":"http://h/3","caption":"three","key":"000010000",\
                "status":"failed_to_download","error_message":"HTTP 404","width":null,\
                "height":null,"original_width":null,"original_height":null,"sha256":null,"x":""}

                """)
        #expect(
            texts(of: files)["00001_stats.json"] == """
                {"count":2,"successes":1,"failed_to_download":1,"failed_to_resize":0,\
                "status_dict":{"success":1,"HTTP 404":1}}

                """)
        #expect(
            texts(of: files)["00002_stats.json"] == """
                {"count":1,"successes":0,"failed_to_download":0,"failed_to_resize":1,\
                "status_dict":{"corrupt-image":1}}

                """)
    }

    /// Rows of one URL, and further images of it: other variants, or by another key.
    @Test func eachRowIsOneOfTheDataSet() throws {
        let url = "http://h/a.png"
        let images = [
            ExportedImage.fixture(url, number: 1, columns: #"{"n":1}"#),
            .fixture(url, number: 2, columns: #"{"n":2}"#),
            .fixture(url, number: 2, variant: "small", stored: .fixture(2), columns: #"{"n":2}"#),
            .fixture(url, number: 3, key: "k", stored: .fixture(3), columns: #"{"n":3}"#),
            .fixture(url, number: 4, variant: "small", stored: .fixture(2), columns: #"{"n":4}"#),
        ]
        let (plan, collisions) = plan(ExportRules(layout: .imagefolder), images)
        #expect(collisions.isEmpty)
        let files = plan.files()
        #expect(files.count == 4)
        let lines = texts(of: files)["train/metadata.jsonl"]?.split(separator: "\n") ?? []
        let rows = lines.map { JSONMember.members(of: Array($0.utf8)) ?? [] }
        #expect(rows.map { $0.text(of: "n") } == ["1", "2", "2", "3", "4"])
        #expect(
            rows.map { $0.text(of: "variant") } == ["main", "main", "small", "main", "small"])
        let names = rows.map { $0.text(of: "file_name") ?? "" }
        #expect(names[0] == names[1] && names[2] == names[4] && Set(names).count == 3)
        #expect(
            Set(files.map(\.path)) == Set(names.map { "train/\($0)" } + ["train/metadata.jsonl"]))
    }

    /// The contents of files that are no images, and of an archive's members by their names.
    private func texts(of files: [PlannedFile]) -> [String: String] {
        var texts: [String: String] = [:]
        for file in files {
            if case .bytes(let bytes) = file.content {
                texts[file.path] = String(decoding: bytes, as: UTF8.self)
            }
            guard case .archive(let members) = file.content else { continue }
            for member in members {
                guard case .bytes(let bytes) = member.content else { continue }
                texts[member.name] = String(decoding: bytes, as: UTF8.self)
            }
        }
        return texts
    }

    /// Readers find images by one name of members, and formats in the bytes.
    @Test(arguments: [
        ([ImageFormat.png], ["png"]), ([.png, .png], ["png", "png"]),
        ([.png, .webp], ["jpg", "jpg"]), ([.jpeg, .avif, .gif], ["jpg", "jpg", "jpg"]),
    ]) func samplesShareTheNameOfTheirImages(_ formats: [ImageFormat], _ endings: [String]) {
        let (plan, _) = plan(
            ExportRules(layout: .webdataset),
            formats.enumerated().map { index, format in
                .fixture(
                    "http://h/\(index)", number: index + 1,
                    stored: .fixture(UInt8(index + 1), format: format))
            })
        let names = plan.rows.map { String($0.path.split(separator: ".").last ?? "") }
        #expect(names == endings)
        guard case .archive(let members)? = plan.files().first?.content else {
            Issue.record("no archive")
            return
        }
        let images = members.map(\.name).filter { !$0.hasSuffix(".json") }
        #expect(images == plan.rows.map { String($0.path.drop { $0 != "/" }.dropFirst()) })
        #expect(plan.hiddenFormats.count == (Set(formats).count > 1 ? Set(formats).count : 0))
    }

    /// No file that others can read has a signature; the names of files neither.
    @Test(arguments: ExportLayout.allCases)
    func keepsSignaturesFromOthers(_ layout: ExportLayout) throws {
        let secret = "SECRET0123456789"
        let rules = try ExportRules.fixture(layout) {
            if layout == .pattern {
                $0.pattern = try NamePattern("{n}-{key}-{query}-{name}")
            }
        }
        let urls = [
            "https://h/a.jpg?w=1&X-Amz-Signature=\(secret)", "https://u:\(secret)@h/b.jpg",
            "https://h/c.jpg?token=\(secret)&w=2#part",
        ]
        var (plan, _) = plan(
            rules,
            urls.enumerated().map { index, url in
                let requested = url.replacing("u:\(secret)@", with: "")
                var image = ExportedImage.fixture(
                    url, number: index + 1, key: requested,
                    stored: .fixture(UInt8(index + 1)),
                    attributes: [
                        EntryAttribute(storedName: "page", value: Array("see \(url) or".utf8))
                    ],
                    columns: #"{"large":"\#(url)","all":["\#(url)","x"],"mail":"a=b@h"}"#)
                image.source = nil
                return image
            })
        plan.addMissing(MissingEntry(number: 4, url: urls[0], reason: "HTTP 403"))
        let files = plan.files()
        #expect(files.allSatisfy { !$0.path.contains(secret) })
        for file in files {
            let texts = texts(of: [file]).values
            #expect(file.isPrivate == texts.contains { $0.contains(secret) }, "\(file.path)")
            if layout == .webdataset || layout == .imagefolder {
                #expect(texts.allSatisfy { !$0.contains("x\"]") || $0.contains("a=b@h") })
            }
        }
        // Their readers need URLs whole.
        let privates = files.filter(\.isPrivate).map(\.path)
        switch layout {
        case .workbox: #expect(privates == ["precache-manifest.json"])
        case .flutter: #expect(privates.count == 2)
        default: #expect(privates.isEmpty)
        }
        #expect(Set(files.map(\.path)).count == files.count)
    }

    @Test func workboxKeysHaveNoFragments() {
        let (plan, _) = plan(
            ExportRules(layout: .workbox),
            [.fixture("http://h/a.svg#x"), .fixture("http://h/a.svg#y"), .fixture("HTTP://h/b?c#")]
        )
        let manifest = texts(of: plan.files())["precache-manifest.json"] ?? ""
        let urls = manifest.split(separator: "\"").filter { $0.lowercased().hasPrefix("http:") }
        #expect(urls == ["http://h/a.svg", "HTTP://h/b?c"])
    }

    /// An independent reader, written from the format's description.
    @Test(arguments: [ExportLayout.coil3, .glide]) func journalNamesEachFile(
        _ layout: ExportLayout
    ) throws {
        let (plan, _) = plan(
            ExportRules(layout: layout),
            [
                .fixture("http://h/new", fetchedAt: Timestamp(seconds: 30)),
                .fixture("http://h/old", fetchedAt: Timestamp(seconds: 20)),
                .fixture("http://h/old", fetchedAt: Timestamp(seconds: 20)),
            ])
        let files = Dictionary(
            uniqueKeysWithValues: plan.files().map { ($0.path, $0.content) })
        guard case .bytes(let journal)? = files["journal"] else {
            Issue.record("no journal")
            return
        }
        let lines = String(decoding: journal, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        let head =
            layout == .coil3
            ? ["libcore.io.DiskLruCache", "1", "3", "2", ""]
            : ["libcore.io.DiskLruCache", "1", "1", "1", ""]
        #expect(lines.prefix(5).map(String.init) == head)
        #expect(lines.last?.isEmpty == true)
        let entries = lines.dropFirst(5).dropLast().map { $0.split(separator: " ") }
        #expect(entries.count == 2)
        let old = try #require(
            ExportPlan.path(of: .fixture("http://h/old"), ExportRules(layout: layout)))
        #expect(entries.first?[1] == old.dropLast(2))
        for entry in entries {
            #expect(entry[0] == "CLEAN")
            #expect(entry[1].allSatisfy { $0.isHexDigit && !$0.isUppercase })
            #expect(entry[1].count == 64)
            for (index, length) in entry.dropFirst(2).enumerated() {
                let content = try #require(files["\(entry[1]).\(index)"])
                let size =
                    switch content {
                    case .stored(let image): image.size.bytes
                    case .bytes(let bytes): bytes.count
                    case .archive: 0
                    }
                #expect(String(size) == length)
            }
        }
        #expect(files.count == 1 + (layout == .coil3 ? 4 : 2))
    }

    @Test func stateSurvives() {
        var state = ExportState(layout: .mirror)
        let entry = ExportState.Entry(
            identity: ContentIdentity(of: [1]), time: "-", size: 3, modifiedAt: -5)
        state.append(entry, for: "a/b c\nd")
        state.append(
            ExportState.Entry(
                identity: ContentIdentity(of: []), time: "99", size: 0,
                modifiedAt: 1_700_000_000_123_456_789), for: "é")
        #expect(ExportState(state.bytes)?.records == state.records)
        #expect(state["a/b c\nd"] == entry)
        #expect(state["a"] == nil && state["é"]?.time == "99" && state["z"] == nil)
        #expect(ExportState(state.bytes)?.layout == "mirror")
        for count in 0..<state.bytes.count {
            // A cut state is none, or that of fewer files.
            let cut = ExportState(Array(state.bytes.prefix(count)))
            #expect((cut?.records.count ?? 0) < 2)
        }
        #expect(ExportState(Array("prefetch export 2 mirror\0".utf8)) == nil)
    }
}

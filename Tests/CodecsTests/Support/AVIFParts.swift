import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

#if AVIF
    /// A still AVIF taken apart, to be put together in another way.
    struct AVIFParts {
        /// The data of an item, in one or more extents.
        struct Part {
            enum Place { case data, idat, end }

            let item: Int
            var extents: [[UInt8]]
            var place = Place.data
            /// Whether the data ends where its place does.
            var isOpenEnded = false
        }

        /// The form of the box `iloc`: its version, and the lengths of numbers.
        struct Form {
            var version = 1
            var offset = 4
            var length = 4
            var base = 0
            var index = 0
        }

        var beginning: [UInt8]
        var entries: [[UInt8]]
        var references: [[UInt8]]
        var properties: [UInt8]
        var parts: [Part]
        var form = Form()
        /// Bytes at the end of `idat` that no item has.
        var unclaimed: [UInt8] = []
        /// More boxes in `meta`, and behind the data.
        var described: [UInt8] = []
        var behind: [UInt8] = []

        private let handlerAndMain: [UInt8]

        init(_ name: String) throws {
            let file = try FormatSample.named(name, .avif)
            func children(_ box: Box?, after head: Int) throws -> [Box] {
                guard let box else { return [] }
                return try file.withUnsafeBytes { bytes in
                    var walk = BoxWalk(bytes, in: box.payload.dropFirst(head))
                    var boxes: [Box] = []
                    while let box = try walk.box() { boxes.append(box) }
                    return boxes
                }
            }
            func whole(_ box: Box) -> [UInt8] { Array(file[box.start..<box.payload.upperBound]) }
            let meta = try file.withUnsafeBytes { try Box.first("meta", of: $0) }
            let boxes = try children(meta, after: 4)
            func first(_ type: StaticString) -> Box? { boxes.first { $0.isA(type) } }
            beginning = Array(file[..<(meta?.start ?? 0)])
            handlerAndMain = boxes.filter { $0.isA("hdlr") || $0.isA("pitm") }.flatMap(whole)
            entries = try children(first("iinf"), after: 6).map(whole)
            references = try children(first("iref"), after: 4).map(whole)
            properties = first("iprp").map(whole) ?? []
            parts = []
            guard let iloc = first("iloc") else { return }
            // libavif writes version 0 with numbers of four bytes.
            let payload = iloc.payload
            parts = stride(from: payload.lowerBound + 8, to: payload.upperBound, by: 14).map {
                place in
                func number(_ place: Int, _ bytes: Int) -> Int {
                    file[place..<place + bytes].reduce(0) { $0 << 8 | Int($1) }
                }
                let start = number(place + 6, 4)
                let data = Array(file[start..<start + number(place + 10, 4)])
                return Part(item: number(place, 2), extents: [data])
            }
        }

        /// Adds an item; `describes` names the item that it describes.
        mutating func add(
            _ type: String, content: String? = nil, encoding: String? = nil, flags: UInt8 = 0,
            describes: Int? = 1, _ part: Part
        ) {
            let item = UInt16(part.item).bigEndianBytes
            var entry: [UInt8] = [2, 0, 0, flags] + item + [0, 0] + Array(type.utf8) + [0]
            for name in [content, encoding] {
                if let name { entry += Array(name.utf8) + [0] }
            }
            entries.append(HandmadeContainer.box("infe", entry))
            if let describes {
                let target = UInt16(describes).bigEndianBytes
                references.append(HandmadeContainer.box("cdsc", item + [0, 1] + target))
            }
            parts.append(part)
        }

        /// Adds a property of the first item, by the boxes `ipco` and `ipma` of libavif.
        mutating func add(property type: String, _ payload: [UInt8], isEssential: Bool) {
            let boxes = properties.withUnsafeBytes { bytes in
                var walk = BoxWalk(bytes, in: 8..<bytes.count)
                var boxes: [Box] = []
                while let box = try? walk.box() { boxes.append(box) }
                return boxes
            }
            let content = Array(properties[boxes[0].payload])
            let count = content.withUnsafeBytes { bytes in
                var walk = BoxWalk(bytes, in: 0..<bytes.count)
                var count: UInt8 = 0
                while (try? walk.box()) != nil { count += 1 }
                return count
            }
            var associations = Array(properties[boxes[1].payload])
            let end = 11 + Int(associations[10])
            associations[10] += 1
            associations.insert(count + (isEssential ? 0x81 : 1), at: end)
            let added = content + HandmadeContainer.box(type, payload)
            properties = HandmadeContainer.box(
                "iprp",
                HandmadeContainer.box("ipco", added) + HandmadeContainer.box("ipma", associations))
        }

        var bytes: [UInt8] {
            let (data, end) = (data(in: .data), data(in: .end))
            let start = beginning.count + meta(data: 0, end: 0).count + 8
            let meta = meta(data: start, end: start + data.count + behind.count)
            let ending = end.dropLast()
            return beginning + meta + HandmadeContainer.box("mdat", data) + behind + ending
        }

        /// A byte follows each extent.
        private func data(in place: Part.Place) -> [UInt8] {
            let extents = parts.filter { $0.place == place }.flatMap(\.extents)
            return Array(extents.joined(separator: [0])) + (extents.isEmpty ? [] : [0])
        }

        private func meta(data: Int, end: Int) -> [UInt8] {
            let idat = self.data(in: .idat) + unclaimed
            let count = UInt16(entries.count).bigEndianBytes
            func box(_ type: String, _ head: [UInt8], _ parts: [[UInt8]]) -> [UInt8] {
                parts.isEmpty ? [] : HandmadeContainer.box(type, head + parts.joined())
            }
            var boxes = handlerAndMain + iloc(data: data, end: end)
            boxes += box("iinf", [0, 0, 0, 0] + count, entries)
            boxes += box("iref", [0, 0, 0, 0], references)
            boxes += properties + box("idat", [], idat.isEmpty ? [] : [idat])
            return HandmadeContainer.box("meta", [0, 0, 0, 0] + boxes + described)
        }

        private func iloc(data: Int, end: Int) -> [UInt8] {
            func number(_ value: Int, _ bytes: Int) -> [UInt8] {
                UInt64(value).bigEndianBytes.suffix(bytes)
            }
            let nameBytes = form.version < 2 ? 2 : 4
            var payload: [UInt8] = [UInt8(form.version), 0, 0, 0]
            payload += [
                UInt8(form.offset << 4 | form.length), UInt8(form.base << 4 | form.index),
            ]
            payload += number(parts.count, nameBytes)
            var places: [Part.Place: Int] = [.data: data, .idat: 0, .end: end]
            for part in parts {
                payload += number(part.item, nameBytes)
                if form.version > 0 { payload += [0, part.place == .idat ? 1 : 0] }
                let base = form.base > 0 ? places[part.place, default: 0] : 0
                payload += [0, 0] + number(base, form.base) + number(part.extents.count, 2)
                for extent in part.extents {
                    let place = places[part.place, default: 0]
                    payload += number(1, form.index) + number(place - base, form.offset)
                    payload += number(part.isOpenEnded ? 0 : extent.count, form.length)
                    places[part.place] = place + extent.count + 1
                }
            }
            return HandmadeContainer.box("iloc", payload)
        }
    }

    // MARK: - Sequences

    extension AVIFParts {
        /// The sample with more bytes at the end of the box of this path, or of the file without
        /// one, and at the end of the file.
        static func sequence(
            adding added: [UInt8], in path: [StaticString], end: [UInt8] = []
        ) throws -> [UInt8] {
            var file = try FormatSample.named("sequence", .avif)
            let boxes = try file.withUnsafeBytes { bytes in
                var boxes: [Box] = []
                for type in path {
                    let outer = boxes.last.map {
                        $0.payload.dropFirst($0.isA("stsd") ? 8 : $0.isA("av01") ? 78 : 0)
                    }
                    boxes.append(try #require(try Box.first(type, of: bytes, in: outer)))
                }
                return boxes
            }
            guard let place = boxes.last?.payload.upperBound else { return file + added + end }
            // The places of data behind the box: one chunk for each track, and two items.
            for index in file.indices.dropLast(4) where file[index...].starts(with: "stco".utf8) {
                grow(&file, at: index + 12, by: added.count)
            }
            let items =
                try #require(
                    file.indices.first { file[$0...].starts(with: "iloc".utf8) }) + 12
            for index in 0..<2 { grow(&file, at: items + 14 * index + 6, by: added.count) }
            for box in boxes { grow(&file, at: box.start, by: added.count) }
            file.insert(contentsOf: added, at: place)
            return file + end
        }

        private static func grow(_ file: inout [UInt8], at place: Int, by count: Int) {
            let number = file[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
            file.replaceSubrange(place..<place + 4, with: HandmadeContainer.big(number + count))
        }
    }
#endif

#if AVIF || HEIF
    /// The items of a HEIF (ISO/IEC 23008-12): its pictures and metadata, and of an AVIF the
    /// properties with which libavif 0.11 would show a wrong picture.
    ///
    /// Read from the box `meta`: `pitm` names the main item, `iinf` the types, `iref` the tiles of
    /// a grid (`dimg`) and the item that an auxiliary one belongs to (`auxl`) or that one describes
    /// (`cdsc`), `iloc` the data, `iprp` the sizes.
    struct HEIFItems {
        private enum AuxiliaryKind {
            case alpha
            /// Brightens another picture, in photographs of Apple.
            case gainMap
        }

        private struct HEIFItem {
            var type: UInt32 = 0
            var tiles: [Int] = []
            var auxiliaryFor: [Int] = []
            /// The items that this one describes.
            var describes: [Int] = []
            /// Whether it is XMP that is not packed.
            var isXMP = false
            /// By the first box `ispe`.
            var size = (width: 0, height: 0)
            var auxiliary: AuxiliaryKind?
            /// Whether the picture is one of several layers.
            var isLayered = false
            /// The boxes `irot`, `imir` and `clap`, without their lengths.
            var transforms: [[UInt8]] = []
            /// The brightest light by the first box `clli`, cd/m²; 0 for unknown.
            var peak: Int?
            var extents: [Range<Int>] = []
            /// Whether an extent has no length, so it ends where its place does, or is in an item.
            var isOpenEnded = false

            var isAlpha: Bool { auxiliary == .alpha }

            /// The first bytes of the data.
            var data: Range<Int>? { extents.first }

            /// Whether it is such a picture, or is derived from others.
            var isPicture: Bool {
                let isText = [Box.code("Exif"), Box.code("mime"), Box.code("uri ")].contains(type)
                return HEIFItems.coded.contains(type) || !tiles.isEmpty && !isText
            }
        }

        /// The types of pictures that are decoded: AV1, HEVC, and its layers.
        private static let coded = Box.codes("av01 hvc1 lhv1")

        private let source: UnsafeRawBufferPointer
        private var main: Int?
        private var items: [Int: HEIFItem] = [:]
        /// The items in the order of their first mention, in which libavif 0.11 places tiles.
        private var order: [Int: Int] = [:]
        /// The boxes `ipma`.
        private(set) var associationBoxes = 0
        /// The targets of all references.
        private var referenceCount = 0

        /// Reads the items; nil for a sequence, and as long as their box is incomplete.
        ///
        /// - Throws: `limitExceeded` for more items than are recorded; `corrupt` for places that
        ///   only libavif before 1.1 reads.
        init?(_ source: UnsafeRawBufferPointer) throws(CodecError) {
            self.source = source
            // libavif takes the tracks of a file with this main brand.
            guard !source.holds("avis", at: 8) else { return nil }
            var walk = BoxWalk(source)
            while let box = try? walk.box() {
                guard box.isA("meta") else { continue }
                try read(box)
                return
            }
            return nil
        }

        /// Reads the items of a box `meta`, wherever it is.
        ///
        /// - Throws: As ``init(_:)``.
        init(of meta: Box, in source: UnsafeRawBufferPointer) throws(CodecError) {
            self.source = source
            try read(meta)
        }

        // MARK: Findings

        /// The kind of picture that libavif 0.11 would refuse or show wrongly; nil for others.
        var refusal: String? {
            guard let main, let item = items[main] else { return nil }
            guard item.type == Box.code("av01") || item.type == Box.code("grid") else {
                guard item.type != 0 else { return nil }
                return "a main picture that is neither AV1 nor a grid of it"
            }
            // Up to 1.3 libavif turns alpha like the picture.
            let isAlphaTurned = items.values.contains {
                $0.isAlpha && $0.auxiliaryFor.contains(main) && !$0.transforms.isEmpty
                    && $0.transforms != item.transforms
            }
            if isAlphaTurned { return "alpha that is turned or cut unlike its picture" }
            guard item.type == Box.code("grid") else { return nil }
            let places = item.tiles.compactMap { order[$0] }
            if places != places.sorted() { return "tiles that are not in the order of its items" }
            if Set(item.tiles).count < item.tiles.count { return "a tile that is shown twice" }
            let tiles = Set(item.tiles)
            let hasAlpha = items.values.contains { $0.isAlpha && $0.auxiliaryFor.contains(main) }
            let tilesHaveAlpha = items.values.contains {
                $0.isAlpha && $0.auxiliaryFor.contains(where: tiles.contains)
            }
            return tilesHaveAlpha && !hasAlpha ? "alpha for each tile of a grid" : nil
        }

        /// Whether the data of a decoded item has another size than its property `ispe`. libavif
        /// scales such a picture.
        var contradictsSizes: Bool {
            guard let main, let item = items[main] else { return false }
            let shown = Set([main] + item.tiles)
            return items.contains { name, item in
                let isDecoded =
                    shown.contains(name) || item.isAlpha && item.auxiliaryFor.contains(main)
                guard isDecoded, item.type == Box.code("av01"), item.size.width > 0,
                    let data = item.data, let coded = AV1Headers(source, in: data)
                else { return false }
                return item.isLayered
                    ? item.size.width > coded.width || item.size.height > coded.height
                    : item.size != (coded.width, coded.height)
            }
        }

        /// Whether the picture can be brightened by another one (ISO 21496-1, or Apple's).
        var hasGainMap: Bool {
            items.values.contains { $0.type == Box.code("tmap") || $0.auxiliary == .gainMap }
        }

        /// The brightest light of the main picture in cd/m² (ISO/IEC 14496-12, 12.1.6); nil where
        /// it is unknown.
        var peak: Double? {
            let stated = main.flatMap { items[$0]?.peak } ?? 0
            return stated > 0 ? Double(stated) : nil
        }

        /// The quantiser of the main picture or of its first tile, `base_q_idx` of AV1; nil for
        /// layers, for a picture with a gain map, and where it is unknown.
        var quantizer: Int? {
            guard let main, let item = items[main], !item.isLayered, !hasGainMap else {
                return nil
            }
            let shown =
                item.type == Box.code("grid") ? item.tiles.first.flatMap { items[$0] } : item
            return shown?.data.flatMap { AV1Headers(source, in: $0)?.quantizer }
        }

        // MARK: Places

        var count: Int { items.count }

        /// Whether all extents of pictures are known.
        var arePlacesKnown: Bool { !items.values.contains { $0.isPicture && $0.isOpenEnded } }

        /// The extents of pictures.
        var pictures: [Range<Int>] {
            items.values.filter { $0.isPicture && !$0.isOpenEnded }.flatMap(\.extents)
        }

        /// The other items, which hold metadata, by type and extents.
        var others: [(type: UInt32, extents: [Range<Int>])] {
            items.sorted { $0.key < $1.key }.map(\.value).filter { !$0.isPicture }.map {
                ($0.type, $0.extents)
            }
        }

        /// Returns the extents of the first EXIF or XMP that describes the main item, or any one.
        func extents(of kind: CarriedMetadata.MetadataKind, ofAny: Bool) -> [Range<Int>]? {
            items.filter { _, item in
                let describes = ofAny || main.map(item.describes.contains) == true
                let isKind = kind == .exif ? item.type == Box.code("Exif") : item.isXMP
                return describes && isKind && !item.extents.isEmpty
            }.min { $0.key < $1.key }?.value.extents
        }

        // MARK: Reading

        private mutating func read(_ meta: Box) throws(CodecError) {
            guard meta.payload.count >= 4 else { return }
            var idat: Box?
            var locations: Box?
            var walk = BoxWalk(source, in: meta.payload.dropFirst(4), allowsOpenEnds: true)
            while let box = try? walk.box() {
                switch box.type {
                case Box.code("pitm"): main = FieldReader.mainItem(in: box, of: source)
                case Box.code("iinf"): try readTypes(box)
                case Box.code("iref"): try readReferences(box)
                case Box.code("iprp"): try readProperties(box)
                case Box.code("iloc"):
                    locations = box
                    // For the order alone.
                    try readLocations(box, idat: nil)
                case Box.code("idat"): idat = box
                default: break
                }
            }
            if let locations, idat != nil { try readLocations(locations, idat: idat) }
        }

        private mutating func change(
            _ name: Int, _ change: (inout HEIFItem) -> Void
        ) throws(CodecError) {
            if items[name] == nil {
                guard items.count < CodecLimits.maximumPieces else {
                    throw .limitExceeded("more than \(CodecLimits.maximumPieces) items")
                }
                order[name] = order.count
            }
            change(&items[name, default: HEIFItem()])
        }

        private mutating func readTypes(_ box: Box) throws(CodecError) {
            guard let version = source.number(at: box.payload.lowerBound, bytes: 1) else { return }
            let skipped = version == 0 ? 6 : 8
            guard box.payload.count >= skipped else { return }
            var walk = BoxWalk(source, in: box.payload.dropFirst(skipped))
            while let entry = try? walk.box() {
                var fields = FieldReader(source, entry.payload)
                guard entry.isA("infe"), let version = fields.next(4).map({ $0 >> 24 }),
                    version >= 2, let name = fields.next(version == 2 ? 2 : 4),
                    fields.next(2) != nil, let type = fields.next(4)
                else { continue }
                let isXMP = type == Int(Box.code("mime")) && namesXMP(&fields)
                try change(name) {
                    $0.type = UInt32(type)
                    $0.isXMP = isXMP
                }
            }
        }

        /// Whether the rest of a box `infe` is a name, the content type of XMP, and no encoding.
        private func namesXMP(_ fields: inout FieldReader) -> Bool {
            func next() -> [UInt8] {
                var text: [UInt8] = []
                while let byte = fields.next(1), byte != 0 { text.append(UInt8(byte)) }
                return text
            }
            _ = next()
            let type = next().prefix { $0 != UInt8(ascii: ";") }
            return type.elementsEqual("application/rdf+xml".utf8) && next().isEmpty
        }

        private mutating func readReferences(_ box: Box) throws(CodecError) {
            guard box.payload.count >= 4 else { return }
            let bytes = source[box.payload.lowerBound] == 0 ? 2 : 4
            var walk = BoxWalk(source, in: box.payload.dropFirst(4))
            while let reference = try? walk.box() {
                var fields = FieldReader(source, reference.payload)
                guard let from = fields.next(bytes), let count = fields.next(2) else { continue }
                var targets: [Int] = []
                for _ in 0..<count {
                    guard let target = fields.next(bytes) else { break }
                    targets.append(target)
                }
                referenceCount += targets.count
                guard referenceCount <= CodecLimits.maximumPieces else {
                    throw .limitExceeded("more than \(CodecLimits.maximumPieces) references")
                }
                try change(from) {
                    if reference.isA("dimg") { $0.tiles += targets }
                    if reference.isA("auxl") { $0.auxiliaryFor += targets }
                    if reference.isA("cdsc") { $0.describes += targets }
                }
                for target in targets { try change(target) { _ in } }
            }
        }

        private mutating func readProperties(_ box: Box) throws(CodecError) {
            var properties: [Box] = []
            var walk = BoxWalk(source, in: box.payload)
            while let part = try? walk.box() {
                if part.isA("ipco") {
                    var walk = BoxWalk(source, in: part.payload)
                    while let property = try? walk.box() {
                        guard properties.count < CodecLimits.maximumPieces else { return }
                        properties.append(property)
                    }
                }
            }
            let associations = ItemAssociations(of: box, in: source)
            associationBoxes += associations.kinds.count
            let source = source
            for entry in associations.entries {
                try change(entry.item) { item in
                    for (index, _) in associations.properties(of: entry)
                    where properties.indices.contains(index) {
                        HEIFItems.note(properties[index], of: source, &item)
                    }
                }
            }
        }

        private static func note(
            _ property: Box, of source: UnsafeRawBufferPointer, _ item: inout HEIFItem
        ) {
            let start = property.payload.lowerBound
            switch property.type {
            case Box.code("ispe") where property.payload.count >= 12 && item.size.width == 0:
                item.size = (source.bigEndian32(at: start + 4), source.bigEndian32(at: start + 8))
            case Box.code("clli") where item.peak == nil:
                item.peak = FieldReader.peak(in: property, of: source)
            case Box.code("auxC"):
                if namesAlpha(UnsafeRawBufferPointer(rebasing: source[start...])) {
                    item.auxiliary = .alpha
                } else if source.holds("urn:com:apple:photo:2020:aux:hdrgainmap\0", at: start + 4) {
                    item.auxiliary = .gainMap
                } else {
                    item.auxiliary = nil
                }
            case Box.code("a1lx"), Box.code("a1op"), Box.code("lsel"): item.isLayered = true
            case Box.code("irot"), Box.code("imir"), Box.code("clap"):
                // No item has more; the longest has 32 bytes.
                guard item.transforms.count < 3 else { break }
                item.transforms.append(
                    [UInt8](source[property.start + 4..<property.payload.upperBound].prefix(36)))
            default: break
            }
        }

        /// Whether the payload of `auxC` or `auxi` is that of alpha, after version and flags.
        static func namesAlpha(_ payload: UnsafeRawBufferPointer) -> Bool {
            payload.holds("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0", at: 4)
                || payload.holds("urn:mpeg:hevc:2015:auxid:1\0", at: 4)
        }

        private mutating func readLocations(_ box: Box, idat: Box?) throws(CodecError) {
            var fields = FieldReader(source, box.payload)
            guard let version = fields.next(4).map({ $0 >> 24 }), let sizes = fields.next(2),
                let count = fields.next(version < 2 ? 2 : 4)
            else { return }
            let (offsetBytes, lengthBytes) = (sizes >> 12, sizes >> 8 & 15)
            let (baseBytes, indexBytes) = (sizes >> 4 & 15, version > 0 ? sizes & 15 : 0)
            guard [offsetBytes, lengthBytes, baseBytes, indexBytes].allSatisfy([0, 4, 8].contains)
            else { throw .broken("places of items in numbers of another length than 0, 4 or 8") }
            var total = 0
            for _ in 0..<count {
                guard let name = fields.next(version < 2 ? 2 : 4),
                    let method = version > 0 ? fields.next(2).map({ $0 & 15 }) : 0,
                    fields.next(2) != nil, let base = fields.next(baseBytes),
                    let extents = fields.next(2)
                else { return }
                total += extents
                guard total <= CodecLimits.maximumPieces else {
                    throw .limitExceeded("more than \(CodecLimits.maximumPieces) parts of items")
                }
                let place = method == 0 ? 0..<source.count : method == 1 ? idat?.payload : nil
                var (found, isOpenEnded) = ([Range<Int>](), false)
                for _ in 0..<extents {
                    guard fields.next(indexBytes) != nil, let offset = fields.next(offsetBytes),
                        let length = fields.next(lengthBytes)
                    else { return }
                    isOpenEnded = isOpenEnded || length == 0 || method > 1
                    guard let place, base <= place.count, offset <= place.count - base else {
                        continue
                    }
                    let begin = place.lowerBound + base + offset
                    let rest = place.upperBound - begin
                    found.append(begin..<begin + (length == 0 ? rest : min(length, rest)))
                }
                try change(name) {
                    $0.extents = found
                    $0.isOpenEnded = isOpenEnded
                }
            }
        }
    }
#endif

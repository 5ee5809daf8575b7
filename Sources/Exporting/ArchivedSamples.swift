internal import CArchive
import Glibc
internal import Hashing
package import PrefetchModel
import Reporting

/// The samples of a shard: an image and its JSON object with the same name before the first dot.
package struct ArchivedSamples: ~Copyable {
    package struct Sample: Sendable {
        package let name: String
        /// As the metadata spells it; nil without it.
        package let url: String?
        package let image: [UInt8]
    }

    private let reader: OpaquePointer
    private let limit: Int
    /// A member that was read and belongs to the next sample.
    private var pending: Member?
    private var isAtEnd = false
    /// The damage behind the samples so far.
    private var problem: UserError?

    private struct Member {
        let name: String
        let bytes: [UInt8]

        /// The name before the first dot behind its folders, as webdataset reads it.
        var sample: Substring {
            let start = name.lastIndex(of: "/") ?? name.startIndex
            return name[..<(name[start...].firstIndex(of: ".") ?? name.endIndex)]
        }
        var ending: Substring { name[sample.endIndex...].dropFirst() }
        var isImage: Bool { imageEndings.contains(ending.lowercased()) }
        var isMetadata: Bool { ending == "json" }
    }

    private static let largestMetadata = 1 << 20
    fileprivate static let imageEndings = Set(
        ImageFormat.allCases.filter { $0 != .pdf }.map(\.fileExtension) + ["jpeg", "img"])

    /// Begins to read an open file, which must stay open; `limit` is the largest size of an image
    /// in bytes, and larger ones are cut after one more byte.
    package init(_ file: Int32, limit: Int) throws(UserError) {
        try ArchiveLibrary.load()
        var message = [CChar](repeating: 0, count: 256)
        guard let reader = carchive_reader_make(file, &message, message.count) else {
            throw ArchivedSamples.damage(
                String(
                    decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)),
                    as: UTF8.self))
        }
        self.reader = reader
        self.limit = limit
    }

    deinit { carchive_reader_free(reader) }

    private static func damage(_ message: String) -> UserError {
        UserError(.incomplete, "", message)
    }

    /// Returns the next sample with an image; nil at the end.
    ///
    /// - Throws: an error of kind `incomplete` at damage, after the samples before it.
    package mutating func next() throws(UserError) -> Sample? {
        if let problem { throw problem }
        while !isAtEnd || pending != nil {
            var members: [Member] = []
            if let pending { members.append(pending) }
            pending = nil
            while let member = try nextMember(isFirst: members.isEmpty) {
                guard members.isEmpty || members[0].sample == member.sample else {
                    pending = member
                    break
                }
                // A sample's first image counts.
                if !members.contains(where: {
                    $0.ending == member.ending || $0.isImage && member.isImage
                }) {
                    members.append(member)
                }
            }
            guard let image = members.first(where: \.isImage) else { continue }
            let metadata = members.first(where: \.isMetadata)
            return Sample(
                name: image.name,
                url: metadata.flatMap { JSONMember.members(of: $0.bytes)?.text(of: "url") },
                image: image.bytes)
        }
        if let problem { throw problem }
        return nil
    }

    /// Returns the next file; nil at the end, and at damage behind other members of the sample.
    private mutating func nextMember(isFirst: Bool) throws(UserError) -> Member? {
        do {
            return try readMember()
        } catch {
            isAtEnd = true
            problem = error
            if isFirst { throw error }
            return nil
        }
    }

    private mutating func readMember() throws(UserError) -> Member? {
        while !isAtEnd {
            var member = carchive_member()
            switch carchive_reader_next(reader, &member) {
            case CARCHIVE_END:
                isAtEnd = true
            case CARCHIVE_MEMBER:
                guard member.is_file, let name = member.name else { continue }
                let found = Member(name: String(cString: name), bytes: [])
                guard found.isImage || found.isMetadata else { continue }
                let most = found.isImage ? limit + 1 : ArchivedSamples.largestMetadata
                return Member(name: found.name, bytes: try read(most))
            default:
                throw ArchivedSamples.damage(String(cString: carchive_error_message(reader)))
            }
        }
        return nil
    }

    private func read(_ most: Int) throws(UserError) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < most {
            let (start, wanted) = (bytes.count, min(1 << 18, most - bytes.count))
            bytes.append(contentsOf: repeatElement(0, count: wanted))
            let count = bytes.withUnsafeMutableBytes {
                guard let base = $0.baseAddress else { return 0 }
                return carchive_reader_read(reader, base + start, wanted)
            }
            bytes.removeLast(wanted - max(0, count))
            guard count >= 0 else {
                throw ArchivedSamples.damage(String(cString: carchive_error_message(reader)))
            }
            if count == 0 { break }
        }
        return bytes
    }
}

/// The arrangement of files that earlier downloads left.
package enum ImportLayout: String, CaseIterable, Sendable {
    /// As `wget -x`, and `export --layout mirror`.
    case mirror
    case sdwebimage
    case webdataset
    /// As `curl -O`: the last part of the URL's path, in one folder.
    case curl

    /// Whether different URLs may have one name, so that the last download replaced the others.
    package var sharesNames: Bool { self == .curl }

    /// Returns the paths at which the file of a URL may be.
    ///
    /// - Parameters:
    ///   - url: as the list spells it.
    ///   - normalized: as it is requested.
    /// - Returns: the likeliest path first; none for `webdataset`: its shards name the URLs.
    package func paths(of url: String, normalized: String) -> [String] {
        let rules = PathRules(isCaseInsensitive: false)
        switch self {
        case .webdataset: return []
        case .curl:
            // curl keeps percent-encodings, and leaves out the query.
            let name = URLParts(normalized).path.split(separator: "/").last.map(String.init) ?? ""
            return ["", ".", ".."].contains(name) ? [] : [name]
        case .sdwebimage:
            let key = URLParts.foundationText(of: url, normalized: normalized)
            return [LoaderLayout.sdwebimage([:]).path(ofKey: key)]
        case .mirror:
            // The name of an export, else that of `wget -x`, which has signatures, too.
            let names = [URLParts.withoutSecrets(normalized), normalized]
            // A URL without a name in a mirror was not exported into one.
            return (names[0] == names[1] ? [normalized] : names).compactMap {
                try? MirrorName(rules: rules).path(of: $0)
            }.flatMap { [$0, ExportPlan.besideFolder($0, rules)] }
        }
    }
}

/// libarchive, which is loaded on first use.
package enum ArchiveLibrary {
    package static func load() throws(UserError) {
        guard let reason = carchive_load() else { return }
        throw UserError(
            .failed, "libarchive", "cannot be loaded: \(String(cString: reason))",
            hint: "install libarchive (Debian's package is libarchive13)")
    }
}

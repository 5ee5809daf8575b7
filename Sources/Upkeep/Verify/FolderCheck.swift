import CacheStorage
import Codecs
import Hashing
import PrefetchModel

/// Checks folders of content files, one after another; for one thread.
struct FolderCheck: ~Copyable {
    struct Problem: Sendable {
        var finding: CacheVerification.Finding
        /// The image of the rows, if any.
        var image: StoredImage?

        /// The image with rows to remove; nil for an unreadable file, which may be whole.
        var wrongImage: StoredImage? { finding.kind == .unreadable ? nil : image }
    }

    struct FolderResult: Sendable {
        var files = 0
        var filesRead = 0
        var bytes = 0
        var problems: [Problem] = []
        /// Files with another mode than the cache's, and the first one's path and mode.
        var otherModes = 0
        var otherMode: (path: String, mode: String)?
    }

    let inspection: CacheInspection
    let extent: CacheVerification.Extent
    let isHolder: Bool
    private let hasher = SHA256Hasher()
    /// As large as the largest file so far.
    private(set) var buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 1 << 20, alignment: 64)

    deinit { buffer.deallocate() }

    mutating func run(_ folder: UInt8) throws(StorageError) -> FolderResult {
        var found = FolderResult()
        // Rows are read first: later files are not orphans.
        let images = try inspection.images(inFolder: folder)
        let names: [String]
        do {
            names = try inspection.names(inFolder: folder)
        } catch {
            let path = CacheInspection.path(ofFolder: folder)
            found.problems.append(problem(.unreadable, path, error.message))
            names = []
        }
        for image in images {
            if let problem = try check(image, &found) { found.problems.append(problem) }
        }
        let named = Set(images.map(\.relativePath))
        for name in names {
            let path = "\(CacheInspection.path(ofFolder: folder))/\(name)"
            guard !named.contains(path) else { continue }
            if let problem = try check(unnamed: name, path) { found.problems.append(problem) }
        }
        return found
    }

    private mutating func check(
        _ image: StoredImage, _ found: inout FolderResult
    ) throws(StorageError) -> Problem? {
        found.files += 1
        var wrong: (kind: CacheVerification.Finding.FindingKind, message: String)?
        var isBlocked = false
        do {
            switch try inspection.state(of: image) {
            case .whole(let changedAt, let otherMode):
                if let otherMode {
                    found.otherModes += 1
                    found.otherMode = found.otherMode ?? (image.relativePath, otherMode)
                }
                guard includesBytes(changedAt: changedAt) else { break }
                found.filesRead += 1
                found.bytes += image.size.bytes
                wrong = try contents(of: image)
            case .missing: wrong = (.missing, "the file is missing")
            case .otherSize(let size):
                wrong = (
                    size < image.size.bytes ? .truncated : .damaged,
                    "the file has \(size) bytes; its row says \(image.size.bytes)"
                )
            case .noFile: wrong = (.missing, "is not a regular file")
            case .folder:
                wrong = (.missing, "is a folder, not a file")
                // It may hold other files, so it is not removed.
                isBlocked = true
            }
        } catch {
            wrong = (.unreadable, error.message)
        }
        guard let wrong else { return nil }
        // A run may have replaced it meanwhile.
        let keys = try inspection.keys(of: image)
        guard !keys.isEmpty else { return nil }
        var problem = problem(wrong.kind, image.relativePath, wrong.message, keys)
        problem.image = image
        problem.finding.isBlocked = isBlocked
        return problem
    }

    private func includesBytes(changedAt: Timestamp) -> Bool {
        if let since = extent.changedSince, changedAt < since { return false }
        return extent.sample >= 1 || Double.random(in: 0..<1) < extent.sample
    }

    private mutating func contents(
        of image: StoredImage
    ) throws(StorageError) -> (kind: CacheVerification.Finding.FindingKind, message: String)? {
        let size = image.size.bytes
        guard CacheInspection.canBeRead(image) else {
            return (.damaged, "it is larger than any file that is stored")
        }
        if buffer.count < size {
            buffer.deallocate()
            buffer = .allocate(byteCount: max(size, 2 * buffer.count), alignment: 64)
        }
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
        guard try inspection.read(image, into: room) else {
            return (.missing, "the file is missing")
        }
        let bytes = UnsafeRawBufferPointer(room)
        guard hasher.digest(of: bytes) == image.digest else {
            return (.damaged, "its bytes do not match its name")
        }
        return mismatch(of: bytes, image).map { (.mismatch, $0) }
    }

    /// Returns how the bytes differ from their row; nil also for a format that is not read.
    private func mismatch(of bytes: UnsafeRawBufferPointer, _ image: StoredImage) -> String? {
        guard image.isDecoded, image.format.isDecoded else { return nil }
        guard image.format.hasOwnReader else {
            let format = sniffed(bytes)
            return format == image.format
                ? nil
                : "it is \(format?.rawValue ?? "no image"); its row says \(image.format.rawValue)"
        }
        var limits = CodecLimits()
        limits.maximumPixels = .max
        let header: ImageHeader
        do {
            header = try Codecs.header(of: bytes, limits: limits)
        } catch {
            switch error {
            case .notAnImage, .corrupt: return "it cannot be read: \(error)"
            default: return nil
            }
        }
        guard header.format == image.format else {
            return "it is \(header.format.rawValue); its row says \(image.format.rawValue)"
        }
        let (width, height) = header.displayedSize
        return (width, height) == (image.widthInPixels, image.heightInPixels)
            ? nil
            : """
            it has \(width)x\(height) pixels; its row says \
            \(image.widthInPixels)x\(image.heightInPixels)
            """
    }

    private func check(unnamed name: String, _ path: String) throws(StorageError) -> Problem? {
        guard let digest = ContentDigest(contentFile: name), FolderCheck.isNameOfOurs(name) else {
            return problem(.unexpected, path, "is not a content file")
        }
        // The lock is checked first: a process that ends before has committed its row.
        guard isHolder || !inspection.isHeld, try !inspection.isNamed(digest) else { return nil }
        let size = inspection.size(ofFile: path)
        return problem(.orphan, path, "no row refers to this file (\(ByteCount(size)))")
    }

    /// Whether a name that begins with a digest has the form of a content file.
    private static func isNameOfOurs(_ name: String) -> Bool {
        let end = name.dropFirst(2 * ContentDigest.byteCount + 1)
        return ImageFormat.allCases.contains { $0.fileExtension == end }
    }

    private func problem(
        _ kind: CacheVerification.Finding.FindingKind, _ path: String, _ message: String,
        _ keys: [String] = []
    ) -> Problem {
        Problem(
            finding: CacheVerification.Finding(
                kind: kind, path: path, keys: keys, message: message))
    }
}

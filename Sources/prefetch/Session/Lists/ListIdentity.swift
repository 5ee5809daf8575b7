import Glibc
import Hashing
import PrefetchModel
import Sharding

extension ShardPlan.List.Identity {
    /// The hashed bytes at each end: reading all of a large list twice would take minutes.
    private static let endBytes = 64 << 10

    /// The identity of a list in a regular file; nil for other lists.
    init?(list path: String) throws {
        guard path != "-", path != EntryBatch.nameOfArguments, !ManifestSequence.isURL(path) else {
            return nil
        }
        func unreadable(_ code: Int32) -> UserError {
            UserError(path, "cannot read: \(String(cString: strerror(code)))")
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        let size = Int(status.st_size)
        var bytes: [UInt8] = []
        let end = max(ShardPlan.List.Identity.endBytes, size - ShardPlan.List.Identity.endBytes)
        for start in [0, end] where start < size {
            let length = min(ShardPlan.List.Identity.endBytes, size - start)
            var part = [UInt8](repeating: 0, count: length)
            let count = pread(descriptor, &part, length, off_t(start))
            guard count == length else { throw unreadable(count < 0 ? errno : EIO) }
            bytes += part
        }
        let digest = bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
        self.init(bytes: size, digest: digest.description)
    }
}

extension ShardPlan {
    /// Returns the name of a list that is not one of the plan's, or of a planned one that is not
    /// read; nil if the lists are the same. Only regular files are compared.
    func difference(from names: [String]) throws -> String? {
        let known = lists.compactMap(\.identity)
        var read: [List.Identity] = []
        for name in names {
            guard let identity = try List.Identity(list: name) else { continue }
            guard known.contains(identity) else { return name }
            read.append(identity)
        }
        return lists.first { list in list.identity.map { !read.contains($0) } ?? false }?.name
    }
}

import Glibc
import Hashing
import PrefetchModel
import Sharding

extension ShardPlan.List.Identity {
    /// The part of each end whose digest is taken: reading all of a large list twice would take
    /// minutes.
    private static let endBytes = 64 << 10

    /// The identity of a regular file; nil for anything else.
    init?(path: String) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        let size = Int(status.st_size)
        var bytes: [UInt8] = []
        let end = max(ShardPlan.List.Identity.endBytes, size - ShardPlan.List.Identity.endBytes)
        for start in [0, end] where start < size {
            let length = min(ShardPlan.List.Identity.endBytes, size - start)
            var part = [UInt8](repeating: 0, count: length)
            guard pread(descriptor, &part, length, off_t(start)) == length else { return nil }
            bytes += part
        }
        let digest = bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
        self.init(bytes: size, digest: digest.description)
    }
}

extension ShardPlan {
    /// Returns the name of a list that is not one of the plan's, or of a planned one that is not
    /// read; nil if the lists are the same. Lists that are no regular files are not compared.
    func difference(from names: [String]) -> String? {
        let known = lists.compactMap(\.identity)
        var read: [List.Identity] = []
        for name in names {
            guard let identity = List.Identity(path: name) else { continue }
            guard known.contains(identity) else { return name }
            read.append(identity)
        }
        return lists.first { list in list.identity.map { !read.contains($0) } ?? false }?.name
    }
}

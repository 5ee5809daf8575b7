import CLinux
import Glibc
import PrefetchModel

extension InputFile {
    /// The names of all files of a folder.
    static func names(in folder: String) throws(UserError) -> [String] {
        guard let listing = opendir(folder) else {
            throw UserError(folder, String(cString: strerror(errno)))
        }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    private static let openFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK

    /// Opens a regular file of a folder for reading, as ``openRegular(_:)``.
    ///
    /// - Throws: ``InputFileError/outside`` for links and `..` out of the folder.
    static func openRegular(_ path: String, in folder: String) throws(InputFileError) -> Int32 {
        let parent = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw .system(errno: errno) }
        defer { close(parent) }
        let found = clinux_open_beneath(parent, path, openFlags)
        if found >= 0 { return try checkRegular(found) }
        switch errno {
        case EXDEV: throw .outside
        // Old kernels and some containers, and folders that are renamed during the call.
        case ENOSYS, EPERM, EAGAIN: return try checkRegular(openWithoutLinks(path, in: parent))
        default: throw .system(errno: errno)
        }
    }

    /// Opens a file by one folder after the other, and follows no link.
    private static func openWithoutLinks(_ path: String, in folder: Int32) throws(InputFileError)
        -> Int32
    {
        let names = path.split(separator: "/").map(String.init)
        guard let file = names.last, !names.contains("..") else { throw .outside }
        func open(_ name: String, in folder: Int32, _ flags: Int32) throws(InputFileError) -> Int32
        {
            let found = openat(folder, name, openFlags | O_NOFOLLOW | flags)
            if found >= 0 { return found }
            var status = stat()
            let code = errno
            let isLink =
                fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0
                && status.st_mode & S_IFMT == S_IFLNK
            throw isLink ? .outside : .system(errno: code)
        }
        var current = folder
        defer { if current != folder { close(current) } }
        for name in names.dropLast() {
            let next = try open(name, in: current, O_DIRECTORY)
            if current != folder { close(current) }
            current = next
        }
        return try open(file, in: current, 0)
    }
}

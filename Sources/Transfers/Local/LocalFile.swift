internal import CLinux
import Glibc
package import PrefetchModel

/// The file of a `file:` URL, opened below the folder of `--files-below`.
///
/// Only regular files are opened. The name may have any bytes, percent-encoded.
package struct LocalFile: ~Copyable {
    let descriptor: Int32
    let size: Int
    /// Changes with the file: its inode, size, and the times of its data and of its attributes. A
    /// copy under the same name with the old time has another inode, or a later change.
    package let tag: String

    deinit { close(descriptor) }

    /// Opens the file of a URL; without `reads`, for its tag alone.
    ///
    /// - Throws: `refusedAddress` for a file that is not below the folder, else `invalidEntry`.
    package init(
        at url: RequestURL, below folder: String?, reads: Bool = false
    ) throws(Failure) {
        guard let folder else {
            throw Failure(.refusedAddress, "files are read only below --files-below DIR")
        }
        let (directory, name) = try LocalFile.place(of: url, below: folder)
        defer { close(directory) }
        // A named pipe has a reader, and a device may act, as soon as it is open.
        var file = LocalFile.open(name, in: directory, clinux_o_path)
        var status = stat()
        if file >= 0, fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, reads {
            close(file)
            file = LocalFile.open(name, in: directory, O_RDONLY | O_NONBLOCK | O_NOCTTY)
        }
        guard file >= 0 else { throw Failure(.invalidEntry, LocalFile.text(of: errno)) }
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(file)
            throw Failure(.invalidEntry, "not a regular file")
        }
        descriptor = file
        size = Int(status.st_size)
        let times = [status.st_mtim, status.st_ctim].map { "\($0.tv_sec).\($0.tv_nsec)" }
        tag = "\(status.st_ino)-\(size)-\(times.joined(separator: "-"))"
    }

    /// Returns the tag of a file that can be read; nil for others, and for another scheme.
    package static func tag(of url: RequestURL, below folder: String?) -> String? {
        guard url.isFile, folder != nil else { return nil }
        do {
            let file = try LocalFile(at: url, below: folder)
            return file.tag
        } catch {
            return nil
        }
    }

    /// The descriptor of the folder, which the caller closes, and the path in it, without links.
    private static func place(
        of url: RequestURL, below folder: String
    ) throws(Failure) -> (directory: Int32, name: [CChar]) {
        guard let top = real(Array(folder.utf8CString)) else {
            let cause = errno == ENOENT ? "no such folder" : text(of: errno)
            throw Failure(.refusedAddress, "--files-below \(folder): \(cause)")
        }
        let path = url.text.dropFirst("file://".utf8.count).percentDecoded
        guard !path.contains(0) else { throw Failure(.invalidEntry, "no path") }
        guard let place = real(path.map(CChar.init(bitPattern:)) + [0]) else {
            throw Failure(.invalidEntry, text(of: errno))
        }
        let slash = CChar(bitPattern: UInt8(ascii: "/"))
        let prefix = top.dropLast() + (top.count > 2 ? [slash] : [])
        guard place.starts(with: prefix) else {
            throw Failure(.refusedAddress, "not below --files-below (\(folder))")
        }
        // Nothing below the folder can be exchanged for a link that leaves it.
        let directory = Glibc.open(top, clinux_o_path | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else {
            throw Failure(.refusedAddress, "--files-below \(folder): \(text(of: errno))")
        }
        return (directory, Array(place.dropFirst(prefix.count)))
    }

    /// An absolute path without links, terminated; nil with `errno`.
    private static func real(_ path: [CChar]) -> [CChar]? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return Array(UnsafeBufferPointer(start: real, count: strlen(real) + 1))
    }

    private static func open(_ name: [CChar], in directory: Int32, _ flags: Int32) -> Int32 {
        let flags = flags | O_CLOEXEC
        let file = clinux_open_beneath(directory, name, flags)
        // An old kernel, or a container without the call.
        guard file < 0, errno == ENOSYS || errno == EPERM else { return file }
        return openat(directory, name, flags | O_NOFOLLOW)
    }

    private static func text(of code: Int32) -> String {
        code == ENOENT ? "no such file" : String(cString: strerror(code))
    }
}

internal import CLinux
package import Glibc
package import Hashing
package import PrefetchModel

extension CacheDirectory {
    package enum Handover: Sendable {
        case done
        /// The file is missing, or differs from its row or name.
        case damaged
        /// The file system cannot do it, for this file or for any.
        case impossible
    }

    /// Gives the content file of an image a second name in another folder. After ``Handover/done``,
    /// `status` is the file's. Compares its size with the row, not its digest. The path is for
    /// messages.
    ///
    /// - Throws: when neither the file nor the folder is the reason.
    package func link(
        _ image: StoredImage, as name: String, in folder: Int32, _ status: inout stat,
        path: @autoclosure () -> String
    ) throws(StorageError) -> Handover {
        guard linkat(handle.number, image.relativePath, folder, name, 0) == 0 else {
            switch errno {
            case ENOENT, ENOTDIR, ELOOP: return .damaged
            // Another device, no links, too many of them, or a file of another user.
            case EXDEV, EMLINK: return .impossible
            case let code where clinux_is_refusal(code) != 0: return .impossible
            default: throw .system("link", path())
            }
        }
        guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            throw .system("stat", path())
        }
        guard status.isFile, status.size == image.size.bytes else {
            unlinkat(folder, name, 0)
            return .damaged
        }
        return .done
    }

    /// Makes an open, empty file share the blocks of a content file of the row's size.
    package func clone(_ image: StoredImage, to file: Int32) -> Handover {
        guard let source = FileDescriptor.reading(image.relativePath, in: handle) else {
            return errno == EMFILE || errno == ENFILE ? .impossible : .damaged
        }
        guard let status = source.status, status.isFile, status.size == image.size.bytes else {
            return .damaged
        }
        return clinux_clone(file, source.number) == 0 ? .done : .impossible
    }

    /// Writes the content file of an image to an open file, after the comparison with its digest.
    package func copy(
        _ image: StoredImage, to file: Int32, hasher: borrowing SHA256Hasher,
        path: @autoclosure () -> String
    ) throws(StorageError) -> Handover {
        switch bytes(of: image, hasher: hasher) {
        case .damaged: return .damaged
        case .unreadable(let error): throw error
        case .whole(let bytes):
            try CacheDirectory.writeAll(bytes, to: file, path: path())
            return .done
        }
    }

    /// Writes all bytes; the path is for messages.
    package static func writeAll(
        _ bytes: [UInt8], to file: Int32, path: @autoclosure () -> String
    ) throws(StorageError) {
        try bytes.span.withUnsafeBytes { bytes throws(StorageError) in
            try FileDescriptor.write(bytes, to: file, path: path())
        }
    }
}

extension StorageError {
    /// An archive cannot be written or read; `code` is an `errno`.
    package static func archive(
        _ path: String, _ message: String, code: Int32 = EIO
    ) -> StorageError {
        StorageError(operation: "archive", subject: path, code: .system(code), message: message)
    }
}

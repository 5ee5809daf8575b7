internal import CLinux
internal import Glibc

package final class OutputFolder: Sendable {
    let number: Int32

    /// Opens a folder in another one, else `/` or the current folder; a symbolic link is an error.
    init(
        _ name: String, in parent: OutputFolder? = nil, _ path: String
    ) throws(OutputError) {
        let parent = parent?.number ?? AT_FDCWD
        let flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        var opened = openat(parent, name, O_RDONLY | flags)
        // A folder may be written and not listed.
        if opened < 0, errno == EACCES { opened = openat(parent, name, clinux_o_path | flags) }
        guard opened >= 0 else { throw .system("open", path, errno) }
        number = opened
    }

    deinit { close(number) }

    /// - Throws: ``OutputError/foreignLink(subject:owner:)``, see ``FilePlace``.
    func check(link: stat, _ path: String) throws(OutputError) {
        var own = stat()
        guard fstat(number, &own) == 0 else { throw .system("stat", path, errno) }
        let isShared = own.st_mode & (S_IWGRP | S_IWOTH) != 0
        let trusted = [0, geteuid()]
        guard trusted.contains(link.st_uid) || !isShared && trusted.contains(own.st_uid) else {
            throw .foreignLink(subject: path, owner: link.st_uid)
        }
    }

    func target(of link: String, _ path: String) throws(OutputError) -> String {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        guard readlinkat(number, link, &bytes, bytes.count - 1) > 0 else {
            throw .system("read", path, errno)
        }
        let target = bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        guard let text = String(validating: target, as: UTF8.self) else {
            throw .system("open", path, EILSEQ)
        }
        return text
    }

    // MARK: Synchronisation

    /// Puts a file's bytes on the disk, unless it is a pipe or the like.
    package static func synchronize(_ file: Int32, _ path: String) throws(OutputError) {
        while fsync(file) != 0 {
            guard errno == EINTR else {
                if clinux_is_refusal(errno) != 0 { return }
                throw .system("synchronise", path, errno)
            }
        }
    }

    /// Puts the names in the folder on the disk. `file` is one that is open in it.
    func synchronize(_ file: Int32, _ path: String) throws(OutputError) {
        // A folder that cannot be listed is open for names only.
        guard fcntl(number, F_GETFL) & clinux_o_path != 0 else {
            return try OutputFolder.synchronize(number, path)
        }
        try OutputFolder.synchronizeFileSystem(of: file, path)
    }

    /// Puts everything in the file system of an open file on the disk.
    static func synchronizeFileSystem(of file: Int32, _ path: String) throws(OutputError) {
        guard clinux_synchronize(file) != 0 else { return }
        throw .system("synchronise", path, errno)
    }

    // MARK: Temporary files

    /// The name of a temporary file: not guessable, hidden, and none that collectors of `*.prom`
    /// read. A batch has one file of this name, and more with a number.
    static func temporaryName(_ token: String, number: Int? = nil) -> String {
        ".prefetch-\(token)\(number.map { "-\($0)" } ?? "").new"
    }

    /// Creates an empty file. Its lock tells ``removeLeftovers(most:)`` that its process lives.
    func makeTemporary(
        mode: UInt32, _ path: String
    ) throws(OutputError) -> (token: String, file: Int32) {
        while true {
            let bits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
            let token = String(repeating: "0", count: 16 - bits.count) + bits
            let name = OutputFolder.temporaryName(token)
            let file = try makeFile(name, mode: mode, path)
            // Fails on a file system without locks, where no process removes leftovers.
            let isLocked = flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
            // Another process may have taken it for a leftover before the lock.
            if isLocked, faccessat(number, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 {
                return (token, file)
            }
            close(file)
        }
    }

    func makeFile(_ name: String, mode: UInt32, _ path: String) throws(OutputError) -> Int32 {
        let file = openat(
            number, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        guard file >= 0 else { throw .system("open", path, errno) }
        return file
    }

    func rename(_ name: String, to target: String, _ path: String) throws(OutputError) {
        guard renameat(number, name, number, target) == 0 else {
            throw .system("rename", path, errno)
        }
    }

    func remove(_ name: String) { unlinkat(number, name, 0) }

    /// Removes temporary files that killed processes of this user have left.
    ///
    /// Only tidies up, so every failure leaves a file for the next call.
    ///
    /// - Parameter most: the number of names after which the search ends.
    func removeLeftovers(most: Int = .max) {
        var numbered: [(token: Substring, name: String)] = []
        for name in names(most: most) {
            guard let (token, isNumbered) = OutputFolder.token(of: name) else { continue }
            if isNumbered {
                numbered.append((token, name))
            } else {
                removeDead(name)
            }
        }
        for (token, name) in numbered {
            var status = stat()
            let first = OutputFolder.temporaryName(String(token))
            if fstatat(number, first, &status, AT_SYMLINK_NOFOLLOW) != 0, errno == ENOENT {
                remove(name)
            }
        }
    }

    /// Removes the first file of a dead process's replacement.
    private func removeDead(_ name: String) {
        let file = openat(number, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_uid == geteuid(), flock(file, LOCK_EX | LOCK_NB) == 0
        else { return }
        remove(name)
    }

    /// The token of a temporary file, and whether it has a number; nil for another name.
    private static func token(of name: String) -> (Substring, isNumbered: Bool)? {
        guard name.hasPrefix(".prefetch-"), name.hasSuffix(".new") else { return nil }
        let parts = name.dropFirst(10).dropLast(4).split(
            separator: "-", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), parts[0].utf8.count == 16,
            UInt64(parts[0], radix: 16) != nil, parts.count == 1 || Int(parts[1]) != nil
        else { return nil }
        return (parts[0], parts.count == 2)
    }

    private func names(most: Int) -> [String] {
        let copy = openat(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0 else { return [] }
        guard let listing = fdopendir(copy) else {
            close(copy)
            return []
        }
        defer { closedir(listing) }
        var names: [String] = []
        var count = 0
        while count < most, let entry = readdir(listing) {
            count += 1
            // Most names are not made into texts.
            guard entry.pointee.d_name.0 == CChar(UInt8(ascii: ".")) else { continue }
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names
    }
}

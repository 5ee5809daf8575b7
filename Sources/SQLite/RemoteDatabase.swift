internal import CSQLite
internal import Glibc

/// A database file that is read by a function, in blocks: for files on slow servers. The file must
/// not change. Unchecked: it belongs to one ``Connection``, which one thread at a time uses.
package final class RemoteDatabase: @unchecked Sendable {
    package typealias Read = (Range<Int>) throws -> [UInt8]

    fileprivate let size: Int
    private let read: Read
    /// The error of ``Read`` that SQLite has reported as `SQLITE_IOERR`.
    package private(set) var failure: (any Error)?
    /// The latest blocks, by number, and the order of their use.
    private var blocks: [Int: [UInt8]] = [:]
    private var uses: [Int] = []
    private let system: UnsafeMutablePointer<sqlite3_vfs>
    private let systemName: UnsafeMutablePointer<CChar>

    private static let blockSize = 64 << 10
    /// 4 MiB.
    private static let mostBlocks = 64

    package init(size: Int, _ read: @escaping Read) {
        self.size = size
        self.read = read
        system = .allocate(capacity: 1)
        system.initialize(to: sqlite3_vfs())
        let name = Array("remote-\(UInt(bitPattern: system))".utf8CString)
        systemName = .allocate(capacity: name.count)
        systemName.initialize(from: name, count: name.count)
        system.pointee.iVersion = 1
        system.pointee.szOsFile = Int32(MemoryLayout<OpenRemoteFile>.size)
        system.pointee.mxPathname = 64
        system.pointee.zName = UnsafePointer(systemName)
        system.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
        system.pointee.xOpen = openRemoteFile
        system.pointee.xDelete = { _, _, _ in SQLITE_READONLY }
        system.pointee.xAccess = { _, _, _, result in
            result?.pointee = 0
            return SQLITE_OK
        }
        system.pointee.xFullPathname = { _, path, count, result in
            // It is complete as it is.
            guard let path, let result, strlen(path) < count else { return SQLITE_CANTOPEN }
            strcpy(result, path)
            return SQLITE_OK
        }
        system.pointee.xRandomness = { _, count, bytes in
            guard let system = sqlite3_vfs_find(nil) else { return 0 }
            return system.pointee.xRandomness(system, count, bytes)
        }
        system.pointee.xSleep = { _, microseconds in microseconds }
        system.pointee.xCurrentTime = { _, time in
            guard let system = sqlite3_vfs_find(nil) else { return SQLITE_ERROR }
            return system.pointee.xCurrentTime(system, time)
        }
        system.pointee.xGetLastError = { _, _, _ in 0 }
        sqlite3_vfs_register(system, 0)
    }

    deinit {
        sqlite3_vfs_unregister(system)
        system.deallocate()
        systemName.deallocate()
    }

    var name: String { String(cString: systemName) }

    fileprivate func copy(_ range: Range<Int>, to target: UnsafeMutableRawBufferPointer) -> Bool {
        var done = range.lowerBound
        while done < range.upperBound {
            let number = done / RemoteDatabase.blockSize
            guard let block = block(number) else { return false }
            let start = done - number * RemoteDatabase.blockSize
            let count = min(block.count - start, range.upperBound - done)
            guard count > 0 else { return false }
            block.withUnsafeBytes { block in
                UnsafeMutableRawBufferPointer(
                    rebasing: target[(done - range.lowerBound)...]
                ).copyMemory(from: UnsafeRawBufferPointer(rebasing: block[start..<start + count]))
            }
            done += count
        }
        return true
    }

    private func block(_ number: Int) -> [UInt8]? {
        if let block = blocks[number] {
            if uses.last != number {
                uses.removeAll { $0 == number }
                uses.append(number)
            }
            return block
        }
        let start = number * RemoteDatabase.blockSize
        do {
            let block = try read(start..<min(start + RemoteDatabase.blockSize, size))
            if uses.count == RemoteDatabase.mostBlocks { blocks[uses.removeFirst()] = nil }
            blocks[number] = block
            uses.append(number)
            return block
        } catch {
            failure = error
            return nil
        }
    }

    fileprivate func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int32 {
        let end = min(size, offset + buffer.count)
        if offset < end, !copy(offset..<end, to: buffer) { return ioErrorRead }
        let count = max(0, end - offset)
        guard count < buffer.count else { return SQLITE_OK }
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            .initializeMemory(as: UInt8.self, repeating: 0)
        return ioErrorShortRead
    }
}

// Macros that Swift does not import.
private let ioErrorRead = SQLITE_IOERR | 1 << 8
private let ioErrorShortRead = SQLITE_IOERR | 2 << 8

/// SQLite's part of an open file, and the file behind it.
private struct OpenRemoteFile {
    var base = sqlite3_file()
    var database: UnsafeMutableRawPointer?
}

private func database(of file: UnsafeMutablePointer<sqlite3_file>?) -> RemoteDatabase? {
    guard let file else { return nil }
    return UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenRemoteFile.self)
        .pointee.database.map {
            Unmanaged<RemoteDatabase>.fromOpaque($0).takeUnretainedValue()
        }
}

/// The functions of open files, for the life of the process.
private nonisolated(unsafe) let fileFunctions: UnsafeMutablePointer<sqlite3_io_methods> = {
    let functions = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    functions.initialize(to: sqlite3_io_methods())
    functions.pointee.iVersion = 1
    functions.pointee.xClose = { _ in SQLITE_OK }
    functions.pointee.xRead = { file, buffer, count, offset in
        guard let database = database(of: file) else { return ioErrorRead }
        return database.read(
            UnsafeMutableRawBufferPointer(start: buffer, count: Int(count)), at: Int(offset))
    }
    functions.pointee.xWrite = { _, _, _, _ in SQLITE_READONLY }
    functions.pointee.xTruncate = { _, _ in SQLITE_READONLY }
    functions.pointee.xSync = { _, _ in SQLITE_OK }
    functions.pointee.xFileSize = { file, size in
        guard let database = database(of: file) else { return SQLITE_IOERR }
        size?.pointee = sqlite3_int64(database.size)
        return SQLITE_OK
    }
    functions.pointee.xLock = { _, _ in SQLITE_OK }
    functions.pointee.xUnlock = { _, _ in SQLITE_OK }
    functions.pointee.xCheckReservedLock = { _, result in
        result?.pointee = 0
        return SQLITE_OK
    }
    functions.pointee.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    functions.pointee.xSectorSize = { _ in 4096 }
    functions.pointee.xDeviceCharacteristics = { _ in SQLITE_IOCAP_IMMUTABLE }
    return functions
}()

private func openRemoteFile(
    _ system: UnsafeMutablePointer<sqlite3_vfs>?, _: sqlite3_filename?,
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ result: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let file else { return SQLITE_CANTOPEN }
    file.pointee.pMethods = nil
    // Nothing else is to be opened: temporary tables are in memory.
    guard flags & SQLITE_OPEN_MAIN_DB != 0 else { return SQLITE_CANTOPEN }
    let open = UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenRemoteFile.self)
    open.pointee.database = system?.pointee.pAppData
    file.pointee.pMethods = UnsafePointer(fileFunctions)
    result?.pointee = SQLITE_OPEN_READONLY
    return SQLITE_OK
}

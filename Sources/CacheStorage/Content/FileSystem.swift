internal import CLinux
package import PrefetchModel

/// The type of the cache's file system, as reported by the kernel.
package struct FileSystem: Hashable, Sendable {
    /// Whether several machines may have mounted it, or processes that map a file may not share its
    /// memory, as the log's index needs (SQLite's "Write-Ahead Logging", section 1).
    package let isNetwork: Bool
    /// A name like `ext4`; for unknown types the number, like `0x1234`.
    package let name: String

    /// A network file system, for tests and as a default without a folder.
    package static let nfs = FileSystem(type: 0x6969)

    /// The types that GNU coreutils calls remote (`src/stat.c`), without overlayfs and aufs, which
    /// have local files, and without types that never hold cache files. FUSE always counts as
    /// remote: sshfs, s3fs, and shared folders of virtual machines and containers (virtiofs reports
    /// FUSE, too). Numbers: `linux/magic.h` and the manual page of `statfs`.
    fileprivate static let network: [UInt32: String] = [
        0x6969: "nfs", 0x517B: "smb", 0xFE53_4D42: "smb2", 0xFF53_4D42: "cifs",
        0x0102_1997: "9p", 0x6573_5546: "fuse", 0x00C3_6400: "ceph", 0x5346_414F: "afs",
        0x6B41_4653: "kafs", 0x7375_7245: "coda", 0x564C: "ncp", 0x0BD0_0BD0: "lustre",
        0x1983_0326: "beegfs", 0x4750_4653: "gpfs", 0x0116_1970: "gfs2", 0x7461_636F: "ocfs2",
        0x2003_0528: "orangefs", 0xAAD7_AAEA: "panfs", 0xBEEF_DEAD: "snfs",
        0x786F_4256: "vboxsf", 0xBACB_ACBC: "vmhgfs", 0x7C7C_6673: "prl_fs",
        0x6163_6673: "acfs", 0x0131_11A8: "ibrix", 0xA501_FCF5: "vxfs",
    ]

    fileprivate static let local: [UInt32: String] = [
        0xEF53: "ext4", 0x5846_5342: "xfs", 0x9123_683E: "btrfs", 0x0102_1994: "tmpfs",
        0x794C_7630: "overlay", 0x2FC1_2FC1: "zfs", 0xF2F5_2010: "f2fs",
        0xCA45_1A4E: "bcachefs", 0x4D44: "vfat", 0x2011_BAB0: "exfat", 0x7366_746E: "ntfs3",
        0x8584_58F6: "ramfs", 0x7371_7368: "squashfs", 0xE0F5_E1E2: "erofs", 0x9660: "iso9660",
        0x5265_4973: "reiserfs", 0x3153_464A: "jfs", 0x6175_6673: "aufs",
    ]
}

extension FileSystem {
    package init(type: UInt32) {
        if let name = FileSystem.network[type] {
            self.init(isNetwork: true, name: name)
        } else {
            let name = FileSystem.local[type] ?? "0x" + String(type, radix: 16)
            self.init(isNetwork: false, name: name)
        }
    }

    init?(of file: FileDescriptor) {
        var status = clinux_file_system()
        guard clinux_fstatfs(file.number, &status) == 0 else { return nil }
        self.init(type: status.type)
    }
}

extension CacheDirectory {
    package struct Room: Hashable, Sendable {
        /// Space available to the current user.
        package let free: ByteCount
        package let total: ByteCount
        /// The number of files and folders that can be added; nil if unlimited.
        package let freeFiles: Int?
        package let isReadOnly: Bool
    }

    package var room: Room? {
        var status = clinux_file_system()
        guard clinux_fstatfs(handle.number, &status) == 0 else { return nil }
        func bytes(_ blocks: UInt64) -> ByteCount {
            let (product, overflows) = blocks.multipliedReportingOverflow(by: status.block_size)
            return ByteCount(overflows ? .max : Int(clamping: product))
        }
        return Room(
            free: bytes(status.free_blocks), total: bytes(status.blocks),
            freeFiles: status.files > 0 ? Int(clamping: status.free_files) : nil,
            isReadOnly: status.is_read_only != 0)
    }
}

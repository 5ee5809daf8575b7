import CacheStorage
import Glibc
package import PrefetchModel

/// Renews the times in an exported folder: Kingfisher drops files when their times have passed, and
/// SDWebImage and Flutter's manager images that were not used for long.
///
/// `git clone`, `cp -r` and archives give files other times than the export, and apps are built
/// long after it. They copy the list of the files in ``ExportState``, too.
package struct ExportRenewal {
    package private(set) var layout: ExportLayout
    package private(set) var renewed = 0
    /// Files that are missing, or not of the export.
    package private(set) var missing: [String] = []

    /// The least time from now to the expiry of an image, the default of Kingfisher.
    private static let leastLifetime = Duration.seconds(7 * 86_400)

    /// Renews the times of a folder that no other export holds.
    ///
    /// - Throws: ``UserError`` for a folder without the state of an export, or if the reader of its
    ///   layout takes no times.
    package init(_ path: String, at now: Timestamp) throws(UserError) {
        guard let folder = try ExportFolder.existing(path) else {
            throw UserError(.failed, path, "no such folder", hint: "name the folder of an export")
        }
        try folder.lock()
        guard let files = folder.folder, var state = folder.state else {
            throw UserError(
                .failed, path, "\(ExportState.name) is missing, so it is no exported folder",
                hint: "copy the folder with its hidden files, or export again")
        }
        guard let layout = ExportLayout(rawValue: state.layout), layout.agesFiles else {
            let names = ExportLayout.allCases.filter(\.agesFiles).map(\.rawValue)
            throw UserError(
                .usage, path, "the layout \(state.layout) has no times to renew",
                hint: "--touch is for \(names.listed(with: "and"))")
        }
        self.layout = layout
        let stage = try ExportStage(ExportState.name + "-new", in: files, mode: nil)
        defer { try? stage.remove() }
        if layout == .flutter { try FlutterLayout.touch(files, stage, &state, at: now) }
        var cursor = FolderCursor(root: files)
        for record in state.records {
            guard let (parent, name) = try cursor.find(record.path),
                let status = parent.status(of: name), status.isFile,
                Int(status.st_size) == record.entry.size
            else {
                missing.append(record.path)
                continue
            }
            renewed += 1
            let time = time(of: record.entry, at: now)
            var times = [timespec(time), timespec(time)]
            let path = parent.path(of: name)
            guard
                try Folder.set(
                    "utimens", path,
                    utimensat(parent.number, name, &times, AT_SYMLINK_NOFOLLOW))
            else {
                throw UserError(
                    .failed, path, "the file system does not let times be set",
                    hint: "copy the folder to another file system")
            }
            if let status = parent.status(of: name) {
                state.note(modifiedAt: status.modifiedAt, of: record.path)
            }
        }
        try stage.write(state)
        try stage.synchronize()
        try stage.moveState(to: files)
    }

    /// The present or the time that the export wrote, of Kingfisher the expiry if that is not near.
    private func time(of entry: ExportState.Entry, at now: Timestamp) -> Timestamp {
        guard let time = Int64(entry.time).map(Timestamp.init(milliseconds:)) else { return now }
        return layout == .flutter
            ? time : max(time, now.advanced(by: ExportRenewal.leastLifetime))
    }
}

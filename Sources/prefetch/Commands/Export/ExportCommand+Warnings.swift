import Exporting
import PrefetchModel
import Reporting

extension ExportCommand {
    /// Warns of files that the reader of the folder may not expect.
    func warn(_ export: Export) {
        let unset = [
            export.changes.lacksTimes ? "times" : nil, export.changes.lacksModes ? "modes" : nil,
        ].compactMap(\.self)
        if !unset.isEmpty {
            StandardError.write(
                "prefetch: \(folder): the file system does not let \(unset.listed(with: "and")) be "
                    + "set; files keep theirs")
        }
        warnOfFormats(export.collection)
        if export.changes.hasPrivateLinks, tree.mode == nil {
            StandardError.message(
                "\(folder): warning: links are files of the cache, which only their owner may read",
                hint: "`prefetch chmod 0644` lets everyone read them; --mode 0644 makes copies")
        }
        if !export.changes.privateFiles.isEmpty {
            let files = export.changes.privateFiles.map(printable).listed(with: "and")
            StandardError.message(
                "\(folder): \(files): only for their owner, since URLs have signatures",
                hint: "--mode 0644 lets everyone read them")
        }
    }

    private func warnOfFormats(_ collection: ExportCollection) {
        let undecoded = collection.undecoded.sorted { $0.key.rawValue < $1.key.rawValue }
        if !undecoded.isEmpty {
            let count = undecoded.reduce(0) { $0 + $1.value }
            let formats = undecoded.map { "\($0.value) \($0.key.rawValue)" }
            StandardError.message(
                "\(folder): warning: \(counted(count, "image")) left out, which readers of data "
                    + "sets do not decode: \(formats.joined(separator: ", "))",
                hint: "`prefetch run --other-formats skip` excludes them")
        }
        let hidden = collection.plan.hiddenFormats
        if !hidden.isEmpty {
            let formats = hidden.map { "\($0.count) \($0.format.rawValue)" }
            StandardError.message(
                "\(folder): warning: images of several formats (\(formats.joined(separator: ", "))) "
                    + "are all named .jpg, since readers need one name",
                hint: "`prefetch run --encode jpeg` stores one format")
        }
        // A web server sends types of files by their names.
        let misnamed = collection.plan.misnamed
        guard let first = misnamed.first else { return }
        StandardError.message(
            "\(folder): warning: \(counted(misnamed.count, "file")) with another format than the "
                + "name, like \(printable(first.path)): \(first.image.stored.format.rawValue)",
            hint: "`prefetch run --accept-formats jpeg,png` requests these, --encode stores one")
    }
}

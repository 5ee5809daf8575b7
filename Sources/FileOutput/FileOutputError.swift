/// Why a file could not be written.
package enum FileOutputError: Error, Hashable, Sendable {
    /// A failed system call: `operation` is its name, `code` its errno.
    case system(operation: String, subject: String, code: Int32)
    /// The path has a symbolic link that another user may have planted, see ``FilePlace``.
    case foreignLink(subject: String, owner: UInt32)
}

import Glibc

/// The temporary file of waiting entries cannot be made, written or read.
package struct SpillError: Error, CustomStringConvertible {
    let folder: String
    let operation: String
    let code: Int32

    package var description: String {
        "\(folder): \(operation): \(String(cString: strerror(code)))"
    }

    /// What the user can do about it.
    package var hint: String {
        "TMPDIR names another folder for waiting entries, a larger --queue-capacity keeps more of "
            + "them in memory"
    }
}

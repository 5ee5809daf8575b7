import Glibc

/// An error of the temporary file of waiting entries.
package struct SpillError: Error, CustomStringConvertible {
    let folder: String
    let operation: String
    let code: Int32

    package var description: String {
        "\(folder): \(operation): \(String(cString: strerror(code)))"
    }

    /// The flags that may help.
    package var hint: String {
        "TMPDIR names another folder for waiting entries, a larger --queue-capacity keeps more of "
            + "them in memory"
    }
}

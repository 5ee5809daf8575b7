import PrefetchModel

extension UserError {
    /// An error of libcurl itself, which ends the loop.
    init(libcurl operation: String, _ code: some BinaryInteger, _ message: String) {
        self.init(.failed, "libcurl", "\(operation): \(message) (\(code))")
    }
}

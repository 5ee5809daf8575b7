internal import CCurl
import PrefetchModel

// Setting options by the kinds of their values.

extension EasyHandle {
    func set(_ option: CURLoption, _ value: Int) throws(UserError) {
        try check(ccurl_easy_set_long(pointer, option, value), option)
    }

    /// Sets a text, which libcurl copies; nil for libcurl's default.
    func set(_ option: CURLoption, _ text: String?) throws(UserError) {
        try check(ccurl_easy_set_string(pointer, option, text), option)
    }

    func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer) throws(UserError) {
        try check(ccurl_easy_set_pointer(pointer, option, value), option)
    }

    /// Sets a size, which may exceed 2 GiB.
    func set(_ option: CURLoption, size: Int) throws(UserError) {
        try check(ccurl_easy_set_offset(pointer, option, size), option)
    }

    /// Sets a list, which libcurl references.
    func set(_ option: CURLoption, _ list: FieldList) throws(UserError) {
        try check(ccurl_easy_set_list(pointer, option, list.pointer), option)
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(UserError) {
        try EasyHandle.check(code, "option \(option.rawValue)")
    }

    static func check(_ code: CURLcode, _ operation: @autoclosure () -> String) throws(UserError) {
        guard code != CURLE_OK else { return }
        throw UserError(libcurl: operation(), code)
    }
}

extension UserError {
    /// An error of libcurl itself, which ends the loop.
    init(libcurl operation: String, _ code: CURLcode, _ message: String? = nil) {
        let message = message ?? String(cString: ccurl_easy_strerror(code))
        self.init(.failed, "libcurl", "\(operation): \(message) (\(code.rawValue))")
    }
}

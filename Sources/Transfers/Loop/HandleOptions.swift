internal import CCurl
import PrefetchModel

/// Sets the options of an easy handle, numbers and texts only where they change.
struct HandleOptions {
    let handle: UnsafeMutableRawPointer
    private var numbers: [CURLoption.RawValue: Int] = [:]
    private var texts: [CURLoption.RawValue: String] = [:]

    init(of handle: UnsafeMutableRawPointer) {
        self.handle = handle
    }

    mutating func set(_ option: CURLoption, _ value: Int) throws(UserError) {
        guard numbers[option.rawValue] != value else { return }
        numbers[option.rawValue] = nil
        try check(ccurl_easy_set_long(handle, option, value), option)
        numbers[option.rawValue] = value
    }

    /// Sets a text, which libcurl copies; nil for libcurl's default.
    mutating func set(_ option: CURLoption, _ text: String?) throws(UserError) {
        // A new handle has the defaults.
        guard texts[option.rawValue] != text else { return }
        texts[option.rawValue] = nil
        try check(ccurl_easy_set_string(handle, option, text), option)
        texts[option.rawValue] = text
    }

    /// Forgets numbers that another option changes.
    mutating func forget(_ options: CURLoption...) {
        for option in options { numbers[option.rawValue] = nil }
    }

    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer) throws(UserError) {
        try check(ccurl_easy_set_pointer(handle, option, pointer), option)
    }

    /// Sets a size, which may exceed 2 GiB.
    func set(_ option: CURLoption, size: Int) throws(UserError) {
        try check(ccurl_easy_set_offset(handle, option, size), option)
    }

    /// Sets a list, which libcurl references.
    func set(_ option: CURLoption, _ list: FieldList) throws(UserError) {
        try check(ccurl_easy_set_list(handle, option, list.pointer), option)
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(UserError) {
        try HandleOptions.check(code, "option \(option.rawValue)")
    }

    /// - Throws: for every code but `CURLE_OK`.
    static func check(
        _ code: CURLcode, _ operation: @autoclosure () -> String
    ) throws(UserError) {
        guard code != CURLE_OK else { return }
        throw UserError(
            libcurl: operation(), code.rawValue, String(cString: ccurl_easy_strerror(code)))
    }
}

extension UserError {
    /// An error of libcurl itself, which ends the loop.
    init(libcurl operation: String, _ code: some BinaryInteger, _ message: String) {
        self.init(.failed, "libcurl", "\(operation): \(message) (\(code))")
    }
}

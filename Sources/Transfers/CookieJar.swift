internal import CCurl
import Glibc

/// The cookies of all transfers, kept in a file between runs.
///
/// libcurl decides which host gets which cookie; this only holds what it shares among its handles.
/// One thread uses it, the loop's, so that libcurl needs no locks.
final class CookieJar {
    /// For CURLOPT_SHARE of every handle, which must not outlive this.
    let share: UnsafeMutableRawPointer
    private let handle: UnsafeMutableRawPointer
    private let path: String

    /// Reads the file, if it is there.
    init(path: String) throws(TransferLoopError) {
        guard let share = curl_share_init() else {
            throw CookieJar.error(path, CURLE_OUT_OF_MEMORY)
        }
        guard ccurl_share_set_data(share, CURL_LOCK_DATA_COOKIE) == CURLSHE_OK,
            let handle = curl_easy_init()
        else {
            curl_share_cleanup(share)
            throw CookieJar.error(path, CURLE_OUT_OF_MEMORY)
        }
        self.share = share
        self.handle = handle
        self.path = path
        for code in [
            ccurl_easy_set_pointer(handle, CURLOPT_SHARE, share),
            ccurl_easy_set_string(handle, CURLOPT_COOKIEFILE, path),
            // Now and once: with the option alone, every handle would read the file again.
            ccurl_easy_set_string(handle, CURLOPT_COOKIELIST, "RELOAD"),
        ] where code != CURLE_OK {
            throw CookieJar.error(path, code)
        }
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_share_cleanup(share)
    }

    /// Writes all cookies, for nobody else to read: beside the file and then in its place, so that a
    /// run that is killed leaves the old ones.
    ///
    /// Ourselves, since libcurl makes a new file readable by everybody.
    func save() throws(TransferLoopError) {
        var list: UnsafeMutablePointer<curl_slist>?
        let code = ccurl_easy_get_list(handle, CURLINFO_COOKIELIST, &list)
        guard code == CURLE_OK else { throw CookieJar.error(path, code) }
        defer { curl_slist_free_all(list) }
        var lines: [String] = []
        var item = list
        while let current = item {
            if let data = current.pointee.data { lines.append(String(cString: data)) }
            item = current.pointee.next
        }
        // libcurl gives them in the order of its hash table.
        let text = "# Netscape HTTP Cookie File\n\n" + lines.sorted().map { $0 + "\n" }.joined()
        try write(Array(text.utf8))
    }

    private func write(_ bytes: [UInt8]) throws(TransferLoopError) {
        // A link stays a link.
        let resolved = realpath(path, nil)
        defer { free(resolved) }
        let target = resolved.map { String(cString: $0) } ?? path
        var status = stat()
        let isSpecial = stat(target, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
        var name = Array("\(target).XXXXXX".utf8CString)
        // A device or pipe is written to and never replaced.
        let descriptor = isSpecial ? open(target, O_WRONLY | O_CLOEXEC) : mkstemp(&name)
        guard descriptor >= 0 else { throw CookieJar.error(path) }
        // Nothing is started here; glibc's mkostemp is not to be seen from Swift.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        let isWhole = written == bytes.count && (isSpecial || fsync(descriptor) == 0)
        let cause = errno
        let isClosed = close(descriptor) == 0
        if isSpecial {
            guard isWhole, isClosed else { throw CookieJar.error(path, cause) }
            return
        }
        guard isWhole, isClosed, rename(name, target) == 0 else {
            let cause = isWhole ? errno : cause
            unlink(name)
            throw CookieJar.error(path, cause)
        }
    }

    private static func error(_ path: String, _ code: CURLcode) -> TransferLoopError {
        TransferLoopError(
            operation: "cookie jar \(path)", code: Int32(code.rawValue),
            message: String(cString: curl_easy_strerror(code)))
    }

    private static func error(_ path: String, _ cause: Int32 = errno) -> TransferLoopError {
        TransferLoopError(
            operation: "cookie jar \(path)", code: cause,
            message: String(cString: strerror(cause)), isSystem: true)
    }
}

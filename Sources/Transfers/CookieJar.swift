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
    /// Domains that the file had cookies for.
    private var knownDomains: Set<String> = []
    /// What all cookies take as lines of the file, at most.
    private var bytes = 0
    /// The size from which on ``bytes`` is looked at, and cookies go when they are that many.
    private var limit = 0
    private let room: Int

    /// Beside what the file held, so much may come in a run: some 10 000 cookies. libcurl goes
    /// through all of them for each that comes.
    private static let room = 1 << 20
    /// For one of ``knownDomains``; browsers keep about as many.
    private static let mostOfDomain = 180

    /// Reads the file, if it is there. In a run it may grow by `room` bytes, about.
    init(path: String, room: Int = CookieJar.room) throws(TransferLoopError) {
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
        self.room = room
        for code in [
            ccurl_easy_set_pointer(handle, CURLOPT_SHARE, share),
            ccurl_easy_set_string(handle, CURLOPT_COOKIEFILE, path),
            // Now and once: with the option alone, every handle would read the file again.
            ccurl_easy_set_string(handle, CURLOPT_COOKIELIST, "RELOAD"),
        ] where code != CURLE_OK {
            throw CookieJar.error(path, code)
        }
        let lines = try lines()
        knownDomains = Set(lines.map(CookieJar.domain))
        bytes = lines.reduce(0) { $0 + $1.utf8.count }
        limit = bytes + room
    }

    /// Notes that so many bytes of `Set-Cookie` have come, which libcurl keeps all.
    func received(_ count: Int) { bytes += count }

    /// Sees to it that cookies take no memory without end: when too many have come, those of domains
    /// that the file did not know go, and of the others all but the first ones.
    func dropExcess() throws(TransferLoopError) {
        guard bytes > limit else { return }
        var counts: [String: Int] = [:]
        let all = try lines()
        bytes = all.reduce(0) { $0 + $1.utf8.count }
        // Many of those that came may have replaced others. With a quarter of the room left, the
        // next look is far enough away.
        guard bytes > limit - room / 4 else { return }
        let kept = all.filter { line in
            let domain = CookieJar.domain(line)
            counts[domain, default: 0] += 1
            return knownDomains.contains(domain)
                && counts[domain, default: 0] <= CookieJar.mostOfDomain
        }
        bytes = kept.reduce(0) { $0 + $1.utf8.count }
        for line in ["ALL"] + kept {
            let code = ccurl_easy_set_string(handle, CURLOPT_COOKIELIST, line)
            guard code == CURLE_OK else { throw CookieJar.error(path, code) }
        }
    }

    /// Of a line of the file.
    private static func domain(_ line: String) -> String {
        var domain = line.prefix { $0 != "\t" }
        if domain.hasPrefix("#HttpOnly_") { domain = domain.dropFirst("#HttpOnly_".count) }
        return domain.drop { $0 == "." }.lowercased()
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
        // libcurl gives them in the order of its hash table.
        let text =
            "# Netscape HTTP Cookie File\n\n" + (try lines()).sorted().map { $0 + "\n" }.joined()
        try write(Array(text.utf8))
    }

    /// All cookies as lines of a file, in the order of libcurl's hash table.
    private func lines() throws(TransferLoopError) -> [String] {
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
        return lines
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

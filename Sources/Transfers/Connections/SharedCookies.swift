internal import CCurl
internal import FileOutput
import Glibc
import PrefetchModel

/// The cookies of all transfers, stored in a file between runs.
///
/// libcurl decides which host gets which cookie, and shares the cookies among all handles.
final class SharedCookies {
    private let shared: SharedData
    private let handle: UnsafeMutableRawPointer
    private let path: String
    /// The cookies of the file when the run began, which are always kept.
    private var kept: Set<Cookie> = []
    private var keptDomains: Set<Substring> = []
    /// The limit beyond which cookies are dropped.
    private var maximum = JarSize()
    private var arrived = JarSize()

    /// The cookies that a run may add to the file's. For each received cookie libcurl searches all
    /// cookies of its domain, and a 63rd of the others; browsers keep about 3,000.
    private static let room = JarSize(count: 3000, bytes: 1 << 20)
    /// The limit for one domain of the file; browsers keep about as many.
    private static let maximumOfDomain = 180

    private struct JarSize {
        var count = 0
        var bytes = 0

        static func + (left: JarSize, right: JarSize) -> JarSize {
            JarSize(count: left.count + right.count, bytes: left.bytes + right.bytes)
        }

        static func / (extent: JarSize, part: Int) -> JarSize {
            JarSize(count: extent.count / part, bytes: extent.bytes / part)
        }

        func exceeds(_ other: JarSize) -> Bool { count > other.count || bytes > other.bytes }
    }

    /// The identity of a cookie (RFC 6265 §5.3), from a line of the file.
    private struct Cookie: Hashable {
        let domain: Substring
        let path: Substring
        let name: Substring

        init(line: String) {
            // Fields: domain, subdomains, path, TLS only, expiry, name, value.
            let fields = line.split(
                separator: "\t", maxSplits: 6, omittingEmptySubsequences: false)
            var domain = fields[0]
            if domain.hasPrefix("#HttpOnly_") { domain = domain.dropFirst("#HttpOnly_".count) }
            self.domain = Substring(domain.drop { $0 == "." }.lowercased())
            path = fields.count > 5 ? fields[2] : ""
            name = fields.count > 5 ? fields[5] : ""
        }
    }

    /// Reads the file, if it exists.
    init(path: String, in shared: SharedData) throws(UserError) {
        guard let handle = ccurl_easy_init() else {
            throw SharedCookies.error(path, CURLE_OUT_OF_MEMORY)
        }
        self.shared = shared
        self.handle = handle
        self.path = path
        let code = ccurl_easy_set_pointer(handle, CURLOPT_SHARE, shared.pointer)
        guard code == CURLE_OK else { throw SharedCookies.error(path, code) }
        try readFile()
        let lines = try lines()
        kept = Set(lines.map(Cookie.init))
        keptDomains = Set(kept.map(\.domain))
        maximum = SharedCookies.extent(of: lines) + SharedCookies.room
    }

    /// Adds the file's cookies, if it exists.
    ///
    /// Not by CURLOPT_COOKIEFILE, which takes a byte order mark for a part of the first domain.
    private func readFile() throws(UserError) {
        guard let file = fopen(path, "re") else {
            if errno == ENOENT { return }
            throw SharedCookies.error(path)
        }
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        var isFirst = true
        while getline(&line, &capacity, file) > 0, let line {
            let hasMark = isFirst && strncmp(line, "\u{FEFF}", 3) == 0
            isFirst = false
            try add(line + (hasMark ? 3 : 0))
        }
        if ferror(file) != 0 { throw SharedCookies.error(path) }
    }

    /// Adds a cookie from a line of a file, or carries out one of CURLOPT_COOKIELIST's commands.
    private func add(_ line: UnsafePointer<CChar>) throws(UserError) {
        let code = ccurl_easy_set_string(handle, CURLOPT_COOKIELIST, line)
        guard code == CURLE_OK else { throw SharedCookies.error(path, code) }
    }

    /// Counts a received cookie; `bytes` limits the length of its line in the file.
    func received(_ bytes: Int) { arrived = arrived + JarSize(count: 1, bytes: bytes) }

    /// Limits the memory and time that cookies take.
    ///
    /// When there are too many, the file's cookies stay, then newer ones of the file's domains up
    /// to a number for each; cookies of other domains are dropped. The rest leaves room, so that
    /// each check is paid for by as many received cookies.
    func dropExcess() throws(UserError) {
        if arrived.exceeds(SharedCookies.room / 8) { try dropExcessNow() }
    }

    private func dropExcessNow() throws(UserError) {
        arrived = JarSize()
        let lines = try lines()
        guard SharedCookies.extent(of: lines).exceeds(maximum) else { return }
        let known = lines.map { (line: $0, cookie: Cookie(line: $0)) }
            .filter { keptDomains.contains($0.cookie.domain) }
        let old = known.filter { kept.contains($0.cookie) }
        let new = known.filter { !kept.contains($0.cookie) }
        var staying = old.map(\.line)
        var extent = SharedCookies.extent(of: staying)
        var counts: [Substring: Int] = [:]
        for (_, cookie) in old { counts[cookie.domain, default: 0] += 1 }
        let limit = JarSize(
            count: maximum.count - SharedCookies.room.count / 4,
            bytes: maximum.bytes - SharedCookies.room.bytes / 4)
        for (line, cookie) in new {
            let sum = extent + SharedCookies.extent(of: [line])
            guard counts[cookie.domain, default: 0] < SharedCookies.maximumOfDomain,
                !sum.exceeds(limit)
            else { continue }
            staying.append(line)
            extent = sum
            counts[cookie.domain, default: 0] += 1
        }
        for line in ["ALL"] + staying { try add(line) }
        // Cookies of the file may have got longer values.
        let next = extent + SharedCookies.room / 4
        maximum = JarSize(
            count: max(maximum.count, next.count), bytes: max(maximum.bytes, next.bytes))
    }

    private static func extent(of lines: [String]) -> JarSize {
        lines.reduce(JarSize()) { $0 + JarSize(count: 1, bytes: $1.utf8.count + 1) }
    }

    deinit { ccurl_easy_cleanup(handle) }

    /// Replaces the file by one with all cookies, readable by its owner alone.
    ///
    /// libcurl's own function makes a new file readable by everyone.
    func save() throws(UserError) {
        try dropExcessNow()
        // libcurl lists them in the order of its hash table.
        let text =
            "# Netscape HTTP Cookie File\n\n" + (try lines()).sorted().map { $0 + "\n" }.joined()
        try write(Array(text.utf8))
    }

    /// All cookies as lines of a file, in the order of libcurl's hash table.
    private func lines() throws(UserError) -> [String] {
        var list: UnsafeMutablePointer<curl_slist>?
        let code = ccurl_easy_get_list(handle, CURLINFO_COOKIELIST, &list)
        guard code == CURLE_OK else { throw SharedCookies.error(path, code) }
        defer { ccurl_slist_free_all(list) }
        var lines: [String] = []
        var item = list
        while let current = item {
            if let data = current.pointee.data { lines.append(String(cString: data)) }
            item = current.pointee.next
        }
        return lines
    }

    private func write(_ bytes: [UInt8]) throws(UserError) {
        do {
            var file = try ReplacingFile(path, mode: 0o600)
            try file.write(bytes)
            try file.commit()
        } catch {
            switch error {
            case .system(_, _, let code): throw SharedCookies.error(path, code)
            case .closedPipe, .unreadPipe: throw error.userError
            case .foreignLink(_, let owner):
                throw UserError(
                    .failed, "cookie jar \(path)",
                    "a symbolic link of another user (uid \(owner)) in a shared folder")
            }
        }
    }

    private static func error(_ path: String, _ code: CURLcode) -> UserError {
        UserError(libcurl: "cookie jar \(path)", code)
    }

    private static func error(_ path: String, _ cause: Int32 = errno) -> UserError {
        UserError(.failed, "cookie jar \(path)", String(cString: strerror(cause)))
    }
}

/// libcurl's data that the handles of all transfers share: TLS sessions, and cookies with a jar.
///
/// Without it a new connection resumes a session only by chance. libcurl keeps eight, of the
/// hosts that used one last. Only the loop's thread uses it: libcurl needs no locks.
final class SharedData {
    /// For CURLOPT_SHARE. Each handle's owner keeps a reference, since no handle may outlive it.
    let pointer: UnsafeMutableRawPointer

    init(hasCookies: Bool) throws(UserError) {
        guard let pointer = ccurl_share_init() else { throw SharedData.outOfMemory }
        self.pointer = pointer
        let kinds = [CURL_LOCK_DATA_SSL_SESSION] + (hasCookies ? [CURL_LOCK_DATA_COOKIE] : [])
        for kind in kinds where ccurl_share_set_data(pointer, kind) != CURLSHE_OK {
            throw SharedData.outOfMemory
        }
    }

    deinit { ccurl_share_cleanup(pointer) }

    private static var outOfMemory: UserError {
        UserError(libcurl: "shared data", CURLE_OUT_OF_MEMORY)
    }
}

import Glibc
import PrefetchModel
import Reporting
import Threading

/// The program of the setting `credential_process`, which prints temporary keys as JSON
/// (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html>).
struct CredentialProcess: Sendable {
    let command: String

    /// The most time that it may take.
    private static let time = Duration.seconds(60)
    private static let maximumBytes = 64 << 10

    /// Whether a file may name a program: it is the user's own or the administrator's, and only
    /// they can write to it.
    static func isTrusted(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        return [0, geteuid()].contains(status.st_uid) && status.st_mode & (S_IWGRP | S_IWOTH) == 0
    }

    func credentials() throws -> ObjectCredentials {
        let end = ContinuousClock.now + CredentialProcess.time
        let started = Result { () throws(UserError) in try ChildProcess.piped(shell: command) }
        let (child, input, output) = try started.mapError { failure($0.message) }.get()
        close(input)
        let bytes = CredentialProcess.output(output, until: end)
        close(output)
        let hasEnded = bytes != nil && child.hasEnded(by: end)
        child.send(SIGKILL)
        let problem = child.wait()
        guard hasEnded, let bytes else {
            throw failure("no keys within \(CredentialProcess.time.quantityDescription)")
        }
        if let problem { throw failure(problem) }
        guard let credentials = ObjectCredentials(json: bytes), credentials.arePrintable else {
            throw failure("gives no keys")
        }
        return credentials
    }

    /// Reads all output; nil if it is too long, or does not end in time.
    private static func output(
        _ file: Int32, until end: ContinuousClock.Instant
    ) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= maximumBytes {
            let left = end - .now
            guard left > .zero else { return nil }
            var wait = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
            guard poll(&wait, 1, Int32(clamping: left.wholeMilliseconds)) > 0 else { continue }
            let count = read(file, &buffer, buffer.count)
            if count == 0 { return bytes }
            if count > 0 { bytes += buffer[..<count] }
        }
        return nil
    }

    private func failure(_ text: String) -> ObjectStorageError {
        ObjectStorageError(
            description: "credential_process: \(text)",
            hint: "the setting stands in ~/.aws/config or ~/.aws/credentials")
    }
}

extension ObjectCredentials {
    /// Reads the keys that a metadata service or a program gives; nil without any.
    init?(json bytes: [UInt8]) {
        let texts = JSONMember.members(of: bytes)?.filter(\.isString) ?? []
        let members = Dictionary(texts.map { ($0.name, $0.text) }, uniquingKeysWith: { $1 })
        guard let accessKey = members["AccessKeyId"], let secretKey = members["SecretAccessKey"]
        else { return nil }
        self.init(
            accessKey: accessKey, secretKey: secretKey,
            sessionToken: members["SessionToken"] ?? members["Token"],
            expiresAt: members["Expiration"].flatMap { text in
                Array(text.utf8).withUnsafeBytes { Timestamp(text: $0) }
            })
    }
}

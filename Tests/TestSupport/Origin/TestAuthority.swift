import Foundation
import Glibc
import PrefetchModel
import Threading

/// A certificate authority for tests, created with `openssl` once per process.
///
/// Its temporary folder is removed when the process exits normally.
package final class TestAuthority: Sendable {
    /// The kind of a test server's certificate.
    package enum Certificate: String, CaseIterable, Sendable {
        /// Issued by the authority for `localhost`, its names `a` to `e` and both addresses.
        case good
        /// Like `good`, but expired in 2021.
        case expired
        /// Like `good`, but not valid before 2090.
        case early
        /// Issued by the authority for `other.example` only.
        case other
        /// Self-signed.
        case own
    }

    /// The folder with the authority's certificate, `ca.pem`, and NAME.pem and NAME.key of each
    /// certificate.
    package let folder: String

    /// The authority's certificate, for `--cacert`.
    package var path: String { folder + "/ca.pem" }

    private init(folder: String) {
        self.folder = folder
    }

    package struct OpenSSLFailed: Error, CustomStringConvertible {
        package let description: String
    }

    private static let first = Task { try await make() }

    /// The authority of this process.
    ///
    /// - Throws: ``OpenSSLFailed`` with the output of `openssl`.
    package static func shared() async throws -> TestAuthority { try await first.value }

    package func security(
        _ certificate: Certificate = .good, http2: OriginSecurity.HTTP2? = nil
    ) -> OriginSecurity {
        OriginSecurity(
            chain: "\(folder)/\(certificate).pem", key: "\(folder)/\(certificate).key",
            http2: http2)
    }

    private static func make() async throws -> TestAuthority {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "prefetch-authority-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        let command = Command(
            executable: "/bin/sh", arguments: ["-euc", script],
            environment: ["PATH": "/usr/bin:/bin", "HOME": folder], folder: folder)
        let result = try await command.run()
        guard result.status == 0 else { throw OpenSSLFailed(description: "\(result)") }
        removeAtExit(folder)
        return TestAuthority(folder: folder)
    }

    /// Uses `openssl ca`, since `x509` cannot set the start of validity before OpenSSL 3.4.
    private static let script = """
        exec 2>&1
        cat >ca.cnf <<END
        [ca]
        default_ca = tests
        [tests]
        new_certs_dir = .
        database = index
        serial = serial
        default_md = sha256
        policy = any
        unique_subject = no
        copy_extensions = copy
        [any]
        commonName = supplied
        [req]
        distinguished_name = name
        [name]
        [authority]
        basicConstraints = critical,CA:TRUE
        subjectKeyIdentifier = hash
        END
        : >index
        echo 01 >serial
        new="openssl req -config ca.cnf -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        names=DNS:localhost,IP:127.0.0.1,IP:::1
        for name in a b c d e; do names=$names,DNS:$name.localhost; done
        $new -x509 -extensions authority -days 30 -subj '/CN=Authority of the tests' \\
            -keyout ca.key -out ca.pem
        certify() {
            $new -subj "/CN=$1" -addext "subjectAltName=$2" -keyout "$1.key" -out "$1.csr"
            openssl ca -batch -config ca.cnf -cert ca.pem -keyfile ca.key -notext \\
                -startdate "$3" -enddate "$4" -in "$1.csr" -out "$1.pem"
        }
        certify good "$names" 20200101000000Z 20990101000000Z
        certify expired "$names" 20200101000000Z 20210101000000Z
        certify early "$names" 20900101000000Z 20990101000000Z
        certify other DNS:other.example 20200101000000Z 20990101000000Z
        $new -x509 -days 30 -subj /CN=own -addext "subjectAltName=$names" \\
            -keyout own.key -out own.pem
        """
}

/// A global, since the C exit handler takes no context.
private let foldersToRemove = FoldersToRemove()

private final class FoldersToRemove: Sendable {
    let paths = Monitor<[String]>([])
}

private func removeAtExit(_ folder: String) {
    let isFirst = foldersToRemove.paths.withLock { paths in
        paths.append(folder)
        return paths.count == 1
    }
    guard isFirst else { return }
    atexit {
        for path in foldersToRemove.paths.withLock({ $0 }) {
            try? FileManager.default.removeItem(atPath: path)
        }
    }
}

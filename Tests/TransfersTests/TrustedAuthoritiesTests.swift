import Testing

@testable import Transfers

/// The system's certificates, for a libcurl that was built for another family of systems.
@Suite(.timeLimit(.minutes(1)))
struct TrustedAuthoritiesTests {
    private typealias Paths = TrustedAuthorities.Paths

    @Test(arguments: Paths.systemFiles)
    func eachFamilysFileReplacesAMissingDefault(file: String) {
        let missing = "/no/such/ca-certificates.crt"
        #expect(Paths.systemFile(default: missing) { $0 == file } == file)
        #expect(Paths.systemFile(default: nil) { $0 == file } == file)
    }

    @Test func libcurlsOwnFileComesFirst() {
        #expect(Paths.systemFile(default: "/etc/own.pem") { _ in true } == "/etc/own.pem")
    }

    @Test func withoutAnyFileTheDefaultStays() {
        #expect(Paths.systemFile(default: "/etc/own.pem") { _ in false } == "/etc/own.pem")
        #expect(Paths.systemFile(default: nil) { _ in false } == nil)
    }
}

import CacheStorage
import Testing

struct FileModeTests {
    @Test(arguments: [
        ("0600", "0600", "0700", false), ("600", "0600", "0700", false),
        ("0640", "0640", "0750", true), ("0644", "0644", "0755", true),
        ("0604", "0604", "0705", true),
    ])
    func acceptsOwnerWritableModes(
        text: String, files: String, folders: String, isShared: Bool
    ) throws {
        let mode = try #require(FileMode(text: text))
        #expect(mode.description == files && mode.ofFoldersText == folders)
        #expect(mode.isShared == isShared)
    }

    @Test func rejectsOtherModes() {
        let allowed: Set = ["0600", "0640", "0644", "0604"]
        for bits in Int64(0)...0o7777 {
            let mode = FileMode(bits: bits)
            #expect((mode != nil) == (mode.map { allowed.contains($0.description) } ?? false))
            if mode == nil {
                let text = String(bits, radix: 8)
                #expect(FileMode(text: text) == nil && !allowed.contains("0" + text), "\(text)")
            }
        }
        for text in ["", "6", "00640", "06440", "0648", "+640", "-640", "u=rw", "0640 "] {
            #expect(FileMode(text: text) == nil, "\(text)")
        }
        #expect(FileMode(bits: -1) == nil && FileMode(bits: .max) == nil)
    }
}

import CLibFuzzer
import ConfigurationFiles
import Glibc
import Manifests
import PrefetchModel

/// The fuzzers of lists and configuration files, for `Scripts/fuzz`: `list-fuzz --target=NAME
/// [ARGUMENT OF libFuzzer]...`.
///
/// - `text`, `csv`, `tsv`, `jsonl`, `sitemap`: a list of that format, and `auto`: of any;
/// - `configuration`: a configuration file.
///
/// A broken invariant ends the process.
@main
enum ListFuzz {
    private static let target: String = {
        let prefix = "--target="
        let argument = CommandLine.arguments.first { $0.hasPrefix(prefix) }
        return String(argument?.dropFirst(prefix.count) ?? "auto")
    }()

    /// The file that lists are read from.
    private static let path = "/dev/shm/prefetch-list-fuzz-\(getpid())"

    static func main() {
        atexit { unlink(ListFuzz.path) }
        var count = CommandLine.argc
        var arguments = CommandLine.unsafeArgv
        exit(
            LLVMFuzzerRunDriver(&count, &arguments) { bytes, count in
                ListFuzz.run(Array(UnsafeRawBufferPointer(start: bytes, count: count)))
                return 0
            })
    }

    private static func run(_ bytes: [UInt8]) {
        guard target != "configuration" else { return ConfigurationInvariants.check(bytes) }
        guard let format = ManifestFormat(rawValue: target) else {
            preconditionFailure("unknown target \(target)")
        }
        guard let stream = fopen(path, "w"),
            fwrite(bytes, 1, bytes.count, stream) == bytes.count, fclose(stream) == 0
        else { preconditionFailure("\(path) cannot be written") }
        ListInvariants.check(path, format)
    }
}

/// Entries do not depend on the sizes of reads and batches, and lie in their batch's text.
private enum ListInvariants {
    private struct Entry: Equatable {
        let line: Int
        let url: [UInt8]
        let key: [UInt8]
        let problem: String?
        let extras: EntryExtras?
    }

    static func check(_ path: String, _ format: ManifestFormat) {
        var options = ManifestOptions()
        options.format = format
        options.baseURL = "http://base.example/"
        options.readsPages = true
        options.keepsColumns = true
        options.maximumLineBytes = 512
        let whole = entries(path, options)
        options.readBytes = 7
        options.maximumBatchEntries = 1
        let split = entries(path, options)
        precondition(whole.error == split.error, "errors differ: \(whole.error), \(split.error)")
        precondition(whole.entries == split.entries, "entries depend on the sizes of reads")
    }

    private static func entries(
        _ path: String, _ options: ManifestOptions
    ) -> (entries: [Entry], error: String) {
        var entries: [Entry] = []
        do throws(ManifestError) {
            let reader = try ManifestReader(path: path, options: options)
            while let batch = try reader.nextBatch() {
                entries += batch.records.map { record in
                    precondition(record.line > 0, "lines begin with 1")
                    return Entry(
                        line: record.line, url: Array(batch.text[record.url]),
                        key: Array(batch.text[record.key]),
                        problem: record.problem < 0
                            ? nil : batch.problems[record.problem].failure.message,
                        extras: batch.extras(of: record))
                }
            }
        } catch {
            return (entries, error.description)
        }
        return (entries, "")
    }
}

/// A project's file sets nothing that a trusted one would not, and mistakes have lines.
private enum ConfigurationInvariants {
    private static let keys = ConfigurationKeys(
        flags: [
            .init("jobs", .text), .init("header", .texts, .refusedWithSecrets),
            .init("insecure", .isOn, .refused), .init("variant", .texts, .refusedWithOverlays),
            .init("prune", .text, .refused), .init("http1.1", .isOn),
        ],
        commandLineFlags: ["config"], variant: [.init("spec", .text, .refusedWithOverlays)],
        prune: [.init("unused-for", .text, .refused)],
        list: [.init("file", .texts), .init("format", .text)],
        host: [.init("header", .texts, .refusedWithSecrets), .init("insecure", .isOn, .refused)])

    static func check(_ bytes: [UInt8]) {
        let trusted = ConfigurationFile(bytes, path: "c", keys: keys, isForeign: false)
        let foreign = ConfigurationFile(bytes, path: "c", keys: keys, isForeign: true)
        precondition(
            Set(foreign.settings).isSubset(of: trusted.settings),
            "a project's file has another setting")
        precondition(foreign.problems.count >= trusted.problems.count)
        let lines = bytes.count { $0 == 0x0A } + 1
        for problem in trusted.problems + foreign.problems {
            precondition((1...lines).contains(problem.origin.line), "\(problem)")
        }
        _ = EffectiveSettings(files: [foreign, trusted], profile: trusted.profiles.keys.first)
    }
}

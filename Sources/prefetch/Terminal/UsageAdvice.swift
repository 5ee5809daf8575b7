import Glibc
import PrefetchModel

/// What is added to the parser's own words about wrong arguments.
enum UsageAdvice {
    /// What values are written like, by the name that the help gives them; of others the help of the flag says it.
    private static let forms = [
        "duration": Duration.quantityForm, "size": ByteCount.quantityForm,
        "duration|date": SinceArgument.form,
    ]

    /// The parser's message with the form of the value behind a line that ends with the flag and the name of its value:
    /// `The value '5x' is invalid for '--ttl <duration>'`.
    static func adding(to message: String) -> String {
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.contains("is invalid for '"),
            let form = forms.first(where: { first.hasSuffix("<\($0.key)>'") })
        else { return message }
        // Where a number alone is refused that is not too large for anything, the flag would remove what was not meant.
        let value = first.split(separator: "'").dropFirst().first ?? ""
        let lacksUnit = value.count < 10 && value.allSatisfy(\.isNumber)
        let wanted =
            lacksUnit && form.key == "size"
            ? ByteCount.quantityFormWithUnit : form.value + (lacksUnit ? "; write the unit" : "")
        return (["\(first): it takes \(wanted)"] + lines.dropFirst())
            .joined(separator: "\n")
    }

    /// Whether a text that was taken for something else names a regular file.
    static func isFile(_ text: String) -> Bool {
        var status = stat()
        return stat(text, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// What to write instead where the arguments may mean a list that is called like the subcommand in front; nil where there
    /// is no such file.
    static func file(namedLikeSubcommand arguments: [String]) -> String? {
        guard let name = arguments.first, Prefetch.subcommands.contains(name), isFile(name) else {
            return nil
        }
        return "for the list in the file \(name): prefetch ./\(name)"
    }
}

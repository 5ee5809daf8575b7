import ArgumentParser
import Pipeline

/// The value of `--body-filter`.
struct BodyFilterArgument: ExpressibleByArgument {
    /// Nil for `none`, which takes back the filter of a configuration file.
    let filter: BodyFilter?

    init?(argument: String) {
        filter = argument == "none" ? nil : BodyFilter(argument)
        if filter == nil, argument != "none" { return nil }
    }
}

import ArgumentParser
import PrefetchModel

/// The value of `--allow-formats`: comma-separated names.
struct AllowedFormats: ExpressibleByArgument {
    let formats: Set<EncodedImageFormat>

    init(formats: Set<EncodedImageFormat>) {
        self.formats = formats
    }

    init?(argument: String) {
        guard let formats = EncodedImageFormat.formats(in: argument, separator: ",") else {
            return nil
        }
        self.formats = formats
    }

    var defaultValueDescription: String {
        EncodedImageFormat.text(of: formats).replacing("+", with: ",")
    }
}

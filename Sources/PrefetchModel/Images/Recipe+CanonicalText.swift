extension Recipe {
    /// Reads a ``canonicalText``; nil for any other text.
    package init?(canonicalText text: String) {
        let items = text.split(separator: ";", omittingEmptySubsequences: false)
        guard let encoding = Encoding(rawValue: String(items[0])) else { return nil }
        self.init(encoding: encoding)
        for item in items.dropFirst() {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard take(String(parts[0]), parts.count > 1 ? String(parts[1]) : nil) else {
                return nil
            }
        }
        guard canonicalText == text else { return nil }
    }

    /// - Returns: Whether it is an item of a canonical text.
    private mutating func take(_ name: String, _ value: String?) -> Bool {
        switch (name, value) {
        case ("linear", nil): isLinear = true
        case ("larger", nil): keepsLarger = true
        case ("q", let value?):
            guard let number = Int(value), (1...100).contains(number) else { return false }
            quality = number
        case ("strip", let value?): return set(Stripping(rawValue: value), \.stripping)
        case ("formats", let value?):
            return set(EncodedImageFormat.formats(in: value, separator: "+"), \.allowedFormats)
        case ("background", let value?):
            return set(RGBColor(text: "#\(value)"), \.background)
        case ("max", let value?):
            guard let bytes = Int(value), bytes > 0 else { return false }
            maximumStoredBytes = bytes
        case ("effort", let value?): return set(EncodingEffort(rawValue: value), \.effort)
        case ("animated", let value?): return set(Animation(rawValue: value), \.animation)
        case ("filter", let value?):
            guard let name = BodyFilterName(value) else { return false }
            bodyFilter = name
        default:
            guard let step = Transformation.Name(rawValue: name),
                let steps = Transformation.steps(step, value)
            else { return false }
            transformations += steps
        }
        return true
    }

    private mutating func set<Value>(
        _ value: Value?, _ property: WritableKeyPath<Recipe, Value>
    ) -> Bool {
        guard let value else { return false }
        self[keyPath: property] = value
        return true
    }
}

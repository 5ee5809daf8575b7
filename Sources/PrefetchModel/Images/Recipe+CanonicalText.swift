extension Recipe {
    package init?(canonicalText text: String) {
        let items = text.split(separator: ";", omittingEmptySubsequences: false)
        guard let encoding = Encoding(rawValue: String(items[0])) else { return nil }
        self.init(encoding: encoding)
        for item in items.dropFirst() {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let (name, value) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : nil)
            if let setting = SpecificationSetting(canonicalName: name) {
                guard setting.set(value, of: &self) else { return nil }
            } else if let step = Transformation.StepName(rawValue: name),
                let steps = Transformation.steps(step, value)
            {
                transformations += steps
            } else if name == "filter", let value, let filter = BodyFilterName(value) {
                bodyFilter = filter
            } else {
                return nil
            }
        }
        // Other spellings of a value are other texts.
        guard canonicalText == text else { return nil }
    }
}

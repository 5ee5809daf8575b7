internal import Glibc

/// One scale of quality for all formats that lose detail: libjpeg's, 1…100.
///
/// The curves are medians over 21 photographs, measured by `Scripts/bench/quality-curves`: what other libraries call the
/// quality at which a picture is as like its source, by `cpixels_similarity`, as a JPEG is. Pictures differ: for the middle
/// half of them libwebp's number is up to 12 off the curve, aom's up to 4. ``FormatChoice`` looks at each picture.
enum QualityScale {
    /// The steps of the curves.
    fileprivate static let qualities = [
        1.0, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 98, 100,
    ]

    /// How far a JPEG is from being its source: 1 less the similarity.
    private static let dissimilarities = [
        0.3, 0.137, 0.093, 0.070, 0.060, 0.051, 0.044, 0.038, 0.033, 0.029, 0.025, 0.019, 0.012,
        0.007, 0.004,
    ]

    /// Looks for the quality of a format at which a picture is as like its source as a JPEG of the quality that was asked
    /// for: by the curve first, then by what came of that, which pictures differ in.
    struct Search {
        /// Steps of quality that nobody sees.
        private static let tolerance = 2.0

        private let wanted: Int
        private let reference: Double
        /// The quality to try, 1…100; nil when what was tried last is near enough, or nothing else is to be tried.
        private(set) var next: Int?
        /// Whether what was tried last is at least nearly as like the source.
        private(set) var isLastGood = false
        private var tried: [(quality: Int, distance: Double)] = []

        /// `reference` is the similarity of a JPEG of that quality.
        init(for quality: Int, where reference: Double) {
            wanted = quality
            self.reference = reference
            next = quality
        }

        /// Notes what came of a quality.
        mutating func add(_ similarity: Double, of quality: Int) {
            let missing =
                Double(wanted)
                - QualityScale.quality(
                    ofSimilarity: similarity, where: reference, is: wanted)
            isLastGood = missing <= Search.tolerance
            let distance = Search.logarithm(1 - similarity) - Search.logarithm(1 - reference)
            tried.append((quality, distance))
            // What lost nothing is as good as can be, and smaller than what loses little.
            guard abs(missing) > Search.tolerance, similarity < 1 else {
                next = nil
                return
            }
            let following = following(missing)
            next = tried.contains { $0.quality == following } ? nil : following
        }

        /// Where the line through the last two qualities that were tried meets the reference; by the curve after the
        /// first.
        private func following(_ missing: Double) -> Int {
            guard let last = tried.last else { return wanted }
            var step = missing
            if let before = tried.dropLast().last, before.distance != last.distance {
                let slope =
                    Double(last.quality - before.quality) / (last.distance - before.distance)
                // A little beyond, since the quality is to be met and not nearly met.
                step = -last.distance * slope + 0.5
            }
            return min(max(last.quality + Int(min(max(step, -20), 10).rounded()), 1), 100)
        }

        private static func logarithm(_ dissimilarity: Double) -> Double {
            log(max(dissimilarity, 1e-6))
        }
    }

    /// The quality that a picture looks to be of, 1…100, by its similarity to the source, where a JPEG of `quality` has
    /// the similarity `reference`. Pictures are more and less difficult, and so the scale is stretched to where the
    /// reference lies.
    static func quality(
        ofSimilarity similarity: Double, where reference: Double, is quality: Int
    ) -> Double {
        let usual = value(at: Double(quality), in: dissimilarities, over: qualities)
        let relative = (1 - similarity) / max(1 - reference, 1e-6)
        return value(
            at: -usual * relative, in: qualities, over: dissimilarities.map { -$0 })
    }

    /// Linear between points, of which the places ascend; beyond them as at the last one.
    fileprivate static func value(
        at place: Double, in values: [Double], over places: [Double]
    ) -> Double {
        guard let next = places.firstIndex(where: { $0 >= place }) else {
            return values[values.count - 1]
        }
        guard next > 0 else { return values[0] }
        let share = (place - places[next - 1]) / (places[next] - places[next - 1])
        return values[next - 1] + (values[next] - values[next - 1]) * share
    }
}

/// Another encoder's quality that looks like a JPEG of each of ``QualityScale``'s qualities.
struct QualityCurve: Sendable {
    /// At the steps of the scale.
    let values: [Double]

    /// The value for libjpeg's `quality`, 1…100.
    func value(at quality: Int) -> Double {
        QualityScale.value(at: Double(quality), in: values, over: QualityScale.qualities)
    }
}

internal import Glibc

/// The quality scale of all lossy formats: libjpeg's, 1…100.
///
/// The curves are medians over 21 photographs, measured by `Scripts/bench/quality-curves`: the
/// encoder's own quality at which a picture is as similar to its source, by `cpixels_similarity`,
/// as a JPEG. For the middle half of the pictures libwebp's number is up to 12 off the curve, aom's
/// up to 4. ``FormatChoice`` measures each picture.
enum QualityScale {
    /// The steps of the curves.
    fileprivate static let qualities = [
        1.0, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 98, 100,
    ]

    /// The dissimilarity of a JPEG to its source: 1 minus the similarity.
    private static let dissimilarities = [
        0.3, 0.137, 0.093, 0.070, 0.060, 0.051, 0.044, 0.038, 0.033, 0.029, 0.025, 0.019, 0.012,
        0.007, 0.004,
    ]

    /// The usual similarity of a JPEG of a quality, 1…100.
    static func similarity(of quality: Int) -> Double {
        1 - value(at: Double(quality), in: dissimilarities, over: qualities)
    }

    /// Searches for the quality at which a picture is as similar to its source as a JPEG of the
    /// requested quality: first by the curve, then by the results for this picture.
    struct Search {
        /// An invisible difference, in steps of quality.
        private static let tolerance = 2.0

        private let wanted: Int
        private let reference: Double
        /// The quality to try, 1…100; nil when the last trial is near enough, or nothing is left to
        /// try.
        private(set) var next: Int?
        /// Whether the last trial is similar enough to the source.
        private(set) var isLastGood = false
        private var tried: [(quality: Int, distance: Double)] = []

        /// `reference` is the similarity of a JPEG of that quality.
        init(for quality: Int, where reference: Double) {
            wanted = quality
            self.reference = reference
            next = quality
        }

        mutating func add(_ similarity: Double, of quality: Int) {
            let missing =
                Double(wanted)
                - QualityScale.quality(ofSimilarity: similarity, where: reference, is: wanted)
            isLastGood = missing <= Search.tolerance
            let distance = Search.logarithm(1 - similarity) - Search.logarithm(1 - reference)
            tried.append((quality, distance))
            // A lossless result cannot improve, and it is smaller than a nearly lossless one.
            guard abs(missing) > Search.tolerance, similarity < 1 else {
                next = nil
                return
            }
            let following = following(missing)
            next = tried.contains { $0.quality == following } ? nil : following
        }

        /// The quality at which the line through the last two trials meets the reference; by the
        /// curve after the first trial.
        private func following(_ missing: Double) -> Int {
            guard let last = tried.last else { return wanted }
            var step = missing
            if let before = tried.dropLast().last, before.distance != last.distance {
                let slope =
                    Double(last.quality - before.quality) / (last.distance - before.distance)
                // Aims slightly higher, since the quality must be reached.
                step = -last.distance * slope + 0.5
            }
            return min(max(last.quality + Int(min(max(step, -20), 10).rounded()), 1), 100)
        }

        private static func logarithm(_ dissimilarity: Double) -> Double {
            log(max(dissimilarity, 1e-6))
        }
    }

    /// The apparent quality of a picture, 1…100, by its similarity to the source, given the
    /// similarity `reference` of a JPEG of `quality`. Pictures are more or less difficult, so the
    /// scale is stretched to meet the reference.
    static func quality(
        ofSimilarity similarity: Double, where reference: Double, is quality: Int
    ) -> Double {
        let usual = 1 - Self.similarity(of: quality)
        let relative = (1 - similarity) / max(1 - reference, 1e-6)
        return value(at: -usual * relative, in: qualities, over: dissimilarities.map { -$0 })
    }

    /// Interpolates linearly between points in ascending order; constant beyond the first and last.
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

    /// The quality on libjpeg's scale, 1…100, of one of the encoder's.
    func quality(at value: Double) -> Double {
        let sign: Double = values[0] < values[values.count - 1] ? 1 : -1
        return QualityScale.value(
            at: sign * value, in: QualityScale.qualities, over: values.map { sign * $0 })
    }
}

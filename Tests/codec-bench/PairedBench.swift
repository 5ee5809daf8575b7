/// Two ways to do the same work on each file, measured in turn. The first round warms up.
struct PairedBench {
    /// CPU seconds of a round for all files, by way.
    private var seconds: [[Double]] = [[], []]

    /// `run` does the work on a file in one of the two ways, and returns its CPU seconds. Returns
    /// nil if `run` does.
    init?(files: Int, rounds: Int, _ run: (_ file: Int, _ way: Int, _ isFirst: Bool) -> Double?) {
        for round in 0...rounds {
            var sums = [0.0, 0.0]
            for file in 0..<files {
                for turn in 0..<2 {
                    let way = (turn + round + file) % 2
                    guard let time = run(file, way, round == 0) else { return nil }
                    sums[way] += time
                }
            }
            if round > 0 { for way in 0..<2 { seconds[way].append(sums[way]) } }
        }
    }

    /// The median seconds of a round by each way, then the median, minimum and maximum of the
    /// rounds' ratios.
    var figures: [Double] {
        func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
        let ratios = zip(seconds[0], seconds[1]).map(/)
        return [
            median(seconds[0]), median(seconds[1]), median(ratios), ratios.min() ?? 0,
            ratios.max() ?? 0,
        ]
    }
}

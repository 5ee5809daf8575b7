internal import PrefetchModel

extension ExifOrientation {
    /// Where the pixels of an upright picture come from: rows from columns, columns counted from the right, rows from
    /// the bottom, as `cpng_turn` has it.
    struct Mapping: Hashable {
        var isTransposed: Bool
        var flipsX: Bool
        var flipsY: Bool

        init(_ orientation: Int) {
            isTransposed = orientation >= 5
            flipsX = [2, 3, 7, 8].contains(orientation)
            flipsY = [3, 4, 6, 7].contains(orientation)
        }

        /// 1…8.
        var orientation: Int {
            (1...8).first { Mapping($0) == self } ?? ExifOrientation.upright
        }

        /// As if the picture that this one makes upright were turned once more.
        func followed(by next: Mapping) -> Mapping {
            var result = self
            result.isTransposed = isTransposed != next.isTransposed
            result.flipsX = flipsX != (isTransposed ? next.flipsY : next.flipsX)
            result.flipsY = flipsY != (isTransposed ? next.flipsX : next.flipsY)
            return result
        }
    }

    /// What turns clockwise.
    static func code(of turn: Transformation.Turn) -> Int {
        switch turn {
        case .quarter: 6
        case .half: 3
        case .threeQuarters: 8
        }
    }

    static func code(of axis: Transformation.Axis) -> Int {
        switch axis {
        case .horizontal: 2
        case .vertical: 4
        }
    }
}

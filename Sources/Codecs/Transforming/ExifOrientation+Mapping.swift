internal import PrefetchModel

extension ExifOrientation {
    /// The lookup from pixels as displayed to pixels as stored: rows from columns, columns counted
    /// from the right, rows from the bottom, as in `cpng_turn`.
    struct Mapping: Hashable {
        var isTransposed: Bool
        var flipsX: Bool
        var flipsY: Bool

        init(_ orientation: Int) {
            isTransposed = orientation >= 5
            flipsX = [2, 3, 7, 8].contains(orientation)
            flipsY = [3, 4, 6, 7].contains(orientation)
        }

        /// The EXIF value of this mapping, 1…8.
        var orientation: Int {
            (1...8).first { Mapping($0) == self } ?? ExifOrientation.upright
        }

        /// Returns the mapping that applies this one and then `next`.
        func followed(by next: Mapping) -> Mapping {
            var result = self
            result.isTransposed = isTransposed != next.isTransposed
            result.flipsX = flipsX != (isTransposed ? next.flipsY : next.flipsX)
            result.flipsY = flipsY != (isTransposed ? next.flipsX : next.flipsY)
            return result
        }
    }

    /// Returns the orientation that turns clockwise by this angle.
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

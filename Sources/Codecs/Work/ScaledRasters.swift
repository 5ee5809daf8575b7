/// The rasters of one source, at most one for each scale.
struct ScaledRasters: ~Copyable {
    private var full: Raster?
    private var half: Raster?
    private var quarter: Raster?
    private var eighth: Raster?

    mutating func take(_ scale: DecodingScale) -> Raster? {
        switch scale {
        case .full: full.take()
        case .half: half.take()
        case .quarter: quarter.take()
        case .eighth: eighth.take()
        }
    }

    mutating func put(_ raster: consuming Raster, at scale: DecodingScale) {
        switch scale {
        case .full: full = consume raster
        case .half: half = consume raster
        case .quarter: quarter = consume raster
        case .eighth: eighth = consume raster
        }
    }
}

internal import PrefetchModel

/// Decodes the rasters of one source, each scale once for all results that need it.
struct SharedRasters: ~Copyable {
    private let source: any ImageDecoding
    /// The rasters to share, by scale: every scale if the results need more than one, else the
    /// common one.
    private var shared: [DecodingScale: SharedRaster] = [:]
    /// Scales to decode together when the first of them is wanted; empty for a single one.
    private var joined: [DecodingScale] = []
    /// Rasters of ``shared``, from decoding to the last result. Each still has the interruption of
    /// a finished result, so every user sets another.
    private var kept = ScaledRasters()
    /// Decoding time that no result has reported yet.
    private var unreportedDuration = Duration.zero
    /// The placeholder of rasters, or else of data that the source has collected.
    var placeholder: PlaceholderCollector

    init(_ plan: EntryPlan, of recipes: [PlannedRecipe], _ placeholder: PlaceholderCollector) {
        source = plan.source
        self.placeholder = placeholder
        for planned in recipes { add(planned, plan) }
        if shared.count > 1 {
            joined = DecodingScale.allCases.filter { shared[$0] != nil }
        } else {
            shared = shared.filter { $0.value.uses > 1 }
        }
    }

    /// Counts the raster of a result. One that cannot be made says so at its turn.
    private mutating func add(_ planned: PlannedRecipe, _ plan: EntryPlan) {
        let recipe = planned.recipe
        guard let format = EncodedFormat(recipe, of: plan.header, by: plan.codec),
            let steps = planned.steps, planned.animationEncoder == nil
        else { return }
        var request = RasterRequest(form: .native, scale: steps.scale)
        var isOwn = false
        if steps.isEmpty {
            guard let way = try? plan.way(to: format, by: recipe.untransformed),
                let form = way.rasterForm
            else { return }
            request.form = form
            if case .own = way { isOwn = true }
        }
        if !isOwn {
            let target =
                steps.isEmpty ? format : EncodedFormat(transforming: recipe, by: plan.codec)
            // Without a way to convert, there is no result.
            guard let handling = try? plan.handling(by: recipe, as: target, after: steps) else {
                return
            }
            request.conversion = handling.conversion
        }
        shared[steps.scale, default: SharedRaster(request: request)].add(request)
        // For the smallest result, the source's own format may need a raster too.
        if case .smallest = format, steps.isEmpty, let own = plan.header.ownRecipe(for: recipe),
            let way = try? plan.way(to: plan.ownFormat, by: own),
            way.rasterForm != nil
        {
            shared[steps.scale]?.add(RasterRequest(form: .native, scale: steps.scale))
        }
    }

    /// A raster for one result, to be given back unchanged with ``putBack(_:after:)``.
    mutating func borrow(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        guard let sharing = shared[request.scale] else { return try decode(request, interruption) }
        let decoded = try use(sharing, at: request.scale, interruption)
        guard let conversion = request.conversion, sharing.request.conversion == nil else {
            return decoded
        }
        return try converted(decoded, by: conversion, sharing, interruption)
    }

    /// Keeps a borrowed raster for later results.
    mutating func putBack(_ decoded: consuming Raster, after request: RasterRequest) {
        guard let sharing = shared[request.scale], sharing.uses > 0,
            sharing.request.conversion == request.conversion
        else { return }
        kept.put(decoded, at: request.scale)
    }

    /// Converts a shared raster for one result, or a copy of it.
    private mutating func converted(
        _ decoded: consuming Raster, by conversion: ColourConversion, _ sharing: SharedRaster,
        _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        guard sharing.uses > 1 else { return try decoded.converted(by: conversion, interruption) }
        let copy = try decoded.copy()
        kept.put(decoded, at: sharing.request.scale)
        return try copy.converted(by: conversion, interruption)
    }

    /// A raster that the caller may change.
    mutating func take(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        guard let sharing = shared[request.scale] else { return try decode(request, interruption) }
        let decoded = try use(sharing, at: request.scale, interruption)
        if let conversion = request.conversion, sharing.request.conversion == nil {
            return try converted(decoded, by: conversion, sharing, interruption)
        }
        let isUsedAgain = sharing.uses > 1
        if case .opaque(let background) = request.form, request.form != sharing.request.form {
            let result = try decoded.opaque(over: background, interruption)
            if isUsedAgain { kept.put(decoded, at: request.scale) }
            return result
        }
        guard isUsedAgain else { return decoded }
        let result = try decoded.copy()
        kept.put(decoded, at: request.scale)
        return result
    }

    /// The decoding time to report with the next result.
    mutating func takeDuration() -> Duration {
        defer { unreportedDuration = .zero }
        return unreportedDuration
    }

    private mutating func use(
        _ sharing: SharedRaster, at scale: DecodingScale, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        shared[scale]?.uses -= 1
        try decodeJoined(interruption)
        var decoded: Raster
        if let kept = kept.take(scale) {
            decoded = kept
        } else {
            decoded = try decode(sharing.request, interruption)
        }
        decoded.follow(interruption)
        return decoded
    }

    private mutating func decode(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let begin = ThreadClock.now
        let raster = try source.raster(at: request.scale, interruption)
        unreportedDuration += ThreadClock.now - begin
        return try finished(raster, by: request, interruption)
    }

    /// Brings a new raster into the requested colours and form, and notes its placeholder.
    private mutating func finished(
        _ raster: consuming Raster, by request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        var decoded = raster
        let begin = ThreadClock.now
        if let conversion = request.conversion {
            decoded = try decoded.converted(by: conversion, interruption)
        }
        decoded = try decoded.formed(as: request.form, interruption)
        unreportedDuration += ThreadClock.now - begin
        placeholder.add(decoded)
        return decoded
    }

    /// Decodes all wanted scales together, where the source can.
    ///
    /// - Throws: `cancelled`. Any other error appears again when they are decoded one by one.
    private mutating func decodeJoined(_ interruption: Interruption) throws(CodecError) {
        guard !joined.isEmpty else { return }
        let scales = joined
        joined = []
        let begin = ThreadClock.now
        var decoded: ScaledRasters
        do throws(CodecError) {
            decoded = try source.rasters(at: scales, interruption.another(for: scales.count))
        } catch .cancelled {
            throw .cancelled
        } catch {
            return
        }
        unreportedDuration += ThreadClock.now - begin
        // The smallest is large enough for a placeholder, and cheapest.
        for scale in scales.reversed() {
            guard let request = shared[scale]?.request, let taken = decoded.take(scale) else {
                continue
            }
            let raster = try finished(taken, by: request, interruption)
            kept.put(raster, at: scale)
        }
    }
}

/// One decoding for several results.
private struct SharedRaster {
    /// Serves all of them.
    var request: RasterRequest
    /// Results still to be made of it.
    var uses = 0

    mutating func add(_ other: RasterRequest) {
        if other.form != request.form { request.form = .native }
        // Results of other colours convert a copy.
        if other.conversion != request.conversion { request.conversion = nil }
        uses += 1
    }
}

/// Makes the placeholder of the first raster, or of data that the source collects on other ways.
struct PlaceholderCollector {
    private var ofPixels: Placeholder?
    /// Nil where no placeholder is wanted.
    private let noted: (() -> Placeholder?)?

    init(for source: any ImageDecoding, isWanted: Bool) {
        noted = isWanted ? source.notePlaceholder() : nil
    }

    var wantsMore: Bool { noted != nil && ofPixels == nil }

    mutating func add(_ raster: borrowing Raster) {
        if wantsMore { ofPixels = Placeholder(of: raster) }
    }

    /// Takes a placeholder of pixels that were decoded elsewhere.
    mutating func add(_ placeholder: Placeholder?) {
        if wantsMore { ofPixels = placeholder }
    }

    var made: Placeholder? { ofPixels ?? noted?() }
}

/// The rasters of one source, at most one for each scale.
struct ScaledRasters: ~Copyable {
    private final class Place {
        var raster: Raster?

        init(_ raster: consuming Raster) {
            self.raster = consume raster
        }
    }

    private var places: [DecodingScale: Place] = [:]

    mutating func take(_ scale: DecodingScale) -> Raster? {
        guard let place = places.removeValue(forKey: scale) else { return nil }
        return place.raster.take()
    }

    mutating func put(_ raster: consuming Raster, at scale: DecodingScale) {
        places[scale] = Place(raster)
    }
}

import HTTPSemantics
import PrefetchModel
import Scheduling

@testable import EntryLifecycle

/// Values for state machines: an entry with two variants.
enum Sample {
    static let url = RequestURL(normalized: "http://h/1")
    static let now = ContinuousClock.now
    static let cost: TransferCost = (10, .milliseconds(5), nil)
    static let time = Timestamp(milliseconds: 1_000_000)
    static let stale = EntryState.stale(.expired(at: time))
    static let failure = Failure(.connect, "refused")

    static func entry(
        _ state: EntryState = .missing, url: RequestURL = url, extras: EntryExtras? = nil
    ) -> Entry {
        Entry(
            manifest: "m.txt", line: 1, url: url, key: url.text, priority: .normal, state: state,
            resource: nil,
            extras: extras, queuedAt: now)
    }

    static func digest(_ byte: UInt8) -> ContentDigest {
        let text = String(repeating: String(UnicodeScalar(UInt8(ascii: "0") + byte)), count: 64)
        guard let digest = ContentDigest(hexadecimal: text) else {
            preconditionFailure("64 digits are a digest")
        }
        return digest
    }

    static func image(_ byte: UInt8) -> StoredImage {
        StoredImage(
            digest: digest(byte),
            format: .jpeg, widthInPixels: 2, heightInPixels: 1, size: ByteCount(100))
    }

    static let source = SourceImage(
        digest: digest(9), format: .jpeg,
        widthInPixels: 2, heightInPixels: 1, size: ByteCount(500))

    /// A copy with some of the two variants.
    static func copy(
        kept: [Bool] = [true, true], original: Bool = false, permanentTarget: String? = nil,
        until: Timestamp = time.advanced(by: .seconds(60)), responseURL: String? = nil,
        others: Bool = false
    ) -> StoredCopy {
        StoredCopy(
            resource: 7,
            validation: ResourceValidation(
                location: ResourceLocation(
                    url: url.text, finalURL: responseURL,
                    permanent: permanentTarget.map { PermanentTarget(url: $0, until: until) },
                    host: url.origin),
                response: StoredResponse(entityTag: "\"e\""), fetchedAt: time,
                validatedAt: time, expiresAt: time.advanced(by: .seconds(10))),
            permanentTarget: permanentTarget.map { RequestURL(normalized: $0) },
            sourceDigest: source.digest,
            kept: kept.enumerated().map { position, isThere in
                isThere
                    ? (image: image(UInt8(position + 1)), isNamed: true) : nil
            }, original: original ? (image: image(8), isWhole: true) : nil,
            others: others
                ? [RequestedVariant(name: .original, recipe: Recipe(encoding: .original))] : [])
    }

    /// A fresh copy of another cache.
    static let seeded: SeededCopy = (
        validation: ResourceValidation(
            location: ResourceLocation(url: url.text, finalURL: nil, host: url.origin),
            response: StoredResponse(entityTag: "\"s\""), fetchedAt: time, validatedAt: time,
            expiresAt: time.advanced(by: .seconds(20))),
        source: source, images: [image(5), image(6)]
    )

    static let part = PartialBody(
        url: url.text, count: 2 << 20, validator: .entityTag("\"e\""), total: 3 << 20)

    static func response(
        _ status: Int, redirect: Redirect? = nil,
        fields: [HeaderField] = [HeaderField(name: "ETag", value: "\"e\"")]
    ) -> Response {
        Response(status: status, fields: fields, redirect: redirect, receivedAt: time)
    }

    static let interrupted: InterruptedResponse = (
        head: response(200), body: (count: 2 << 20, gap: 0)
    )

    static func transferFailure(_ reason: FailureReason = .interrupted) -> TransferFailure {
        TransferFailure(Failure(reason, "broke"), httpStatus: nil, curlCode: 56)
    }

    static let variants: VariantSet = {
        let original = RequestedVariant(name: .original, recipe: Recipe(encoding: .original))
        guard let both = VariantSet(main: Recipe()).adding(VariantSet(original)) else {
            preconditionFailure("two variants are not too many")
        }
        return both
    }()

    static let made = ProcessingResult.made(
        [.made(image(3)), .made(image(4))], source: source)

    /// A context that allows `retries` retries per entry.
    static func context(
        _ phase: RunPhase = .running, retries: Int = 0, isOffline: Bool = false,
        keepsCookies: Bool = false, excluding excluded: Set<String> = []
    ) -> EntryContext {
        var rules = EntryRules()
        rules.exclusions.objection = {
            excluded.contains($0.shown)
                ? Failure(.notSelected, "--exclude \($0.shown)") : nil
        }
        rules.isOffline = isOffline
        rules.redirects.keepsCookies = keepsCookies
        return EntryContext(
            rules: rules, phase: phase, variants: variants, now: time
        ) { _, reason, status, attempts in
            RetryPolicy.isRetried(reason, httpStatus: status) && attempts <= retries
                ? .retry(after: .seconds(1)) : .final
        }
    }
}

extension EntryMachine {
    /// A machine with a request on the wire.
    static func asking(
        _ findings: Findings = .nothing, state: EntryState = .missing, extras: EntryExtras? = nil,
        _ context: EntryContext = Sample.context()
    ) -> EntryMachine {
        var machine = EntryMachine(Sample.entry(state, extras: extras))
        _ = machine.start(position: 1, at: Sample.now)
        _ = machine.lookedUp(findings, in: context)
        return machine
    }

    /// A machine with its body at the codec workers.
    static func processing(_ findings: Findings = .nothing) -> EntryMachine {
        var machine = asking(findings, state: Sample.stale)
        _ = machine.responded(
            Sample.response(200), gap: 0,
            in: Sample.context())
        return machine
    }

    /// A response with a body of nothing but `gap`; nil for a response without a body.
    mutating func responded(
        _ response: Response, gap: Int? = nil, kept: [Bool] = [],
        in context: EntryContext = Sample.context()
    ) -> EntryAction {
        responded(
            response, body: gap.map { (count: $0, gap: $0) },
            redirectRule: .redirectedFromPublic, cost: Sample.cost, kept: kept, in: context)
    }

    mutating func processed(
        _ result: ProcessingResult, in context: EntryContext = Sample.context()
    ) -> EntryAction {
        processed(result, decode: .milliseconds(1), encode: nil, remark: "", in: context)
    }
}

extension EntryAction {
    /// The action in a word or two, for tables.
    var word: String {
        switch self {
        case .lookUp: "look up"
        case .ask(let request):
            "ask"
                + (request.conditions.isEmpty ? "" : " if changed")
                + (request.part == nil ? "" : " for the rest")
        case .queue(.next): "queue"
        case .queue(.place): "return"
        case .queue(.retry): "retry"
        case .moveOn: "move on"
        case .process(.body): "decode"
        case .process(.original): "derive"
        case .process(.seeded): "take"
        case .process(.refusal): "drop"
        case .keepPart: "keep part"
        case .write(let change):
            switch change.body {
            case .new: "write body"
            case .kept(_, let validation, _):
                "write" + (validation == nil ? "" : " validation") + " \(change.variants.count)"
            }
        case .forget(_, let next): "forget, \(next.word)"
        case .forgetPart(let next): "forget the part, \(next.word)"
        case .finish(let end): end.reason?.rawValue ?? end.outcome.rawValue
        }
    }
}

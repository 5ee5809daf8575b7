import CacheStorage
import EntryLifecycle
import HTTPSemantics
import PrefetchModel
import Transfers

// One attempt: the request of a list, its redirects, and the response.

extension ListFetcher {
    /// Requests a list, without conditions if `copy` is nil.
    func request(
        _ listed: ListRequest, _ copy: ListFile?, _ check: (ListFile) -> Failure?
    ) throws -> OpenedList {
        try request(listed, Route(from: listed.url, addressRule: listed.rule), copy, check)
    }

    /// Requests a list at the target of a route, and at that of each further redirect.
    private func request(
        _ listed: ListRequest, _ route: Route, _ copy: ListFile?, _ check: (ListFile) -> Failure?
    ) throws -> OpenedList {
        var route = route
        route.visit(route.target)
        let step = step(of: listed, route, copy)
        let completion = try perform(for: listed.name, at: route.target.origin, step.request)
        let arrival = ListArrival(
            name: listed.name, target: route.target, fields: step.fields,
            redirectRule: transfers.addressRule(afterRedirectFrom: completion.address),
            rule: route.addressRule, elapsed: completion.elapsed)
        switch completion.result {
        case .response(let response, let body?):
            return try store(body, of: response, arrival, check)
        case .response(let response, nil) where response.status == 304 && copy != nil:
            if let copy, step.isConditional,
                let confirmed = try confirm(copy, by: response, arrival)
            {
                return confirmed
            }
            return try request(listed, nil, check)
        case .response(let response, nil):
            guard response.isRedirect else { throw MissingList(response) }
            let target = try route.target(of: response, rules.redirects)
            route.follow(
                to: target, until: nil, listed: listed.url, rule: arrival.redirectRule)
            return try request(listed, route, copy, check)
        case .refused(_, let failure): throw failure
        case .failure(let failure): throw failure
        case .cancelled: throw MissingList.late
        }
    }

    /// A request for a list, at its own URL or at the target of a redirect.
    struct ListStep {
        /// The fields that a response may vary on.
        let fields: [HeaderField]
        let isConditional: Bool
        let request: TransferRequest
    }

    /// The request for a list at the route's target, with the validators of its copy.
    func step(of listed: ListRequest, _ route: Route, _ copy: ListFile?) -> ListStep {
        let isForeign = route.isForeign(to: listed.url)
        let fields = fields(of: listed, at: route.target, isForeign: isForeign)
        let conditions = conditions(copy, route.target, fields)
        var request = TransferRequest(url: route.requestURL(listed: listed.url))
        request.fields = conditions
        request.userFields = listed.fields
        request.isForeign = isForeign
        request.addressRule = route.addressRule
        return ListStep(fields: fields, isConditional: !conditions.isEmpty, request: request)
    }

    private func conditions(
        _ copy: ListFile?, _ target: RequestURL, _ fields: [HeaderField]
    ) -> [HeaderField] {
        guard rules.usesStoredCopies, let list = copy?.list,
            list.responseURL == target.withoutCredentials.text
        else { return [] }
        return list.response.conditionalFields(matchesVary: matchesVary(list, fields))
    }

    // MARK: Responses

    /// The request of a response.
    private struct ListArrival {
        /// The URL that names the list.
        let name: String
        let target: RequestURL
        /// The fields that the response may vary on.
        let fields: [HeaderField]
        /// The rule for the target of a redirect from its address.
        let redirectRule: AddressRule
        /// The rule of the request.
        let rule: AddressRule?
        let elapsed: Duration

        var isPublic: Bool { [redirectRule, rule].contains(.redirectedFromPublic) }
    }

    /// Writes a new list, which replaces the copy unless the origin forbids storing it.
    private func store(
        _ body: Body, of response: Response, _ arrival: ListArrival, _ check: (ListFile) -> Failure?
    ) throws -> OpenedList {
        let expiresAt = expiry(response.fields, response, arrival)
        let list = StoredList(
            url: arrival.name,
            responseURL: arrival.target.withoutCredentials.text,
            response: StoredResponse(
                fields: response.fields, varyingOn: arrival.fields,
                receivedAt: response.receivedAt),
            validatedAt: response.receivedAt, expiresAt: expiresAt ?? Freshness.alwaysStale,
            isPublic: arrival.isPublic)
        let file = try body.withUnsafeBytes { try store.write(list, $0) }
        let objection = check(file)
        let isKept = objection == nil && expiresAt != nil
        try isKept ? store.keep(file) : store.discard(file)
        if isKept { wrote(file) }
        if let objection { throw objection }
        guard file.rewind() else { throw Failure(.disk, "its file cannot be read") }
        return opened(file, .fetched(arrival.elapsed))
    }

    /// Takes a 304. Returns nil if it is about another response.
    private func confirm(
        _ copy: ListFile, by response: Response, _ arrival: ListArrival
    ) throws -> OpenedList? {
        guard copy.list.response.isConfirmed(by: response.fields) else { return nil }
        let (updated, fields) = copy.list.response.updated(
            by: response.fields, varyingOn: arrival.fields, receivedAt: response.receivedAt)
        var list = copy.list
        list.response = updated
        list.validatedAt = response.receivedAt
        list.expiresAt = expiry(fields, response, arrival) ?? Freshness.alwaysStale
        list.isPublic = arrival.isPublic
        list.shrunkSince = nil
        let file = try store.replace(copy, by: list)
        return file.map { opened($0, .notModified(arrival.elapsed)) }
    }

    /// The expiry of a response; nil when it must not be stored.
    private func expiry(
        _ fields: [HeaderField], _ response: Response, _ arrival: ListArrival
    ) -> Timestamp? {
        Freshness.expiry(
            fields: fields, receivedAt: response.receivedAt, transferTime: arrival.elapsed,
            rules: freshness)
    }
}

extension MissingList {
    fileprivate init(_ response: Response) {
        self.init(
            Failure(.httpStatus, EntryMachine.message(of: response)),
            httpStatus: response.status,
            retryAfter: Response.isRefusalForPace(response.status)
                ? RetryAfter.delay(of: response.fields, receivedAt: response.receivedAt) : nil)
    }

    /// A list that is missing for an error of its attempt.
    init(reporting error: any Error) {
        switch error {
        case let missing as MissingList: self = missing
        case let failure as Failure: self.init(failure)
        case let transfer as TransferFailure:
            self.init(
                transfer.reason == .tooLarge
                    ? Failure(.tooLarge, "larger than \(ListFetcher.maximumSize)")
                    : transfer.failure, httpStatus: transfer.httpStatus)
        default: self.init(Failure(error is StorageError ? .disk : .internal, "\(error)"))
        }
    }
}

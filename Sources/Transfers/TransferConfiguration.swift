package import PrefetchModel

/// The limits of each transfer, and how requests introduce themselves.
package struct TransferConfiguration: Sendable {
    /// Name resolution, connecting and the TLS handshake together.
    package var connectTimeout: Duration = .seconds(10)
    /// The longest time without a byte.
    package var stallTimeout: Duration = .seconds(15)
    /// One whole transfer. Waiting in our queue never counts.
    package var totalTimeout: Duration = .seconds(300)
    /// The largest body, checked against the announced length and counted as it arrives, after
    /// content decoding: libcurl 7.88's own limit misses chunked, close-delimited and compressed
    /// bodies.
    package var maximumBodySize: ByteCount = .mebibytes(64)
    /// What all bodies in memory may take together, those included that wait for a codec worker.
    package var bodyBudget: ByteCount = .mebibytes(64)
    /// Connections kept open for reuse. libcurl's own number is four for each transfer that runs at
    /// the moment, which closes good connections whenever few run.
    package var maximumIdleConnections = 64
    /// What the user says about requests.
    package var requests = RequestSettings()
    /// Stands for a secret where it has to be told from others but must not be known: a digest.
    package var fingerprint: @Sendable (String) -> String = { _ in "hidden" }
    /// The value of `User-Agent`, unless a field of the user replaces it.
    package var userAgent: String
    /// The value of `Accept`, unless a field of the user replaces it.
    package var accept = TransferConfiguration.notedAccept
    /// What stands for ``accept`` where it is noted what a response was selected by (`Vary`): the text of the first
    /// version. Builds that decode more formats ask for more, and what is stored is good for them, too; by its own
    /// text each of them would find all such responses stale.
    private static let notedAccept = "image/jpeg, image/png, image/*;q=0.5, */*;q=0.1"

    /// The fields of a listed request without fields of its own.
    package var requestFields: [HeaderField] { requestFields() }

    /// The fields of a request that a response may vary on (`Vary`), fit for the database: those that
    /// may hold secrets have their ``fingerprint`` for a value.
    ///
    /// Cookies of the jar and credentials from a netrc file or a URL are not among them: libcurl adds
    /// those by itself.
    ///
    /// - Parameters:
    ///   - userFields: as ``TransferRequest/userFields``.
    ///   - isForeign: as ``TransferRequest/isForeign``.
    /// - Returns: no field that is left out.
    package func requestFields(
        userFields: [HeaderField] = [], isForeign: Bool = false
    ) -> [HeaderField] {
        var fields = [
            HeaderField(name: "Accept", value: TransferConfiguration.notedAccept),
            HeaderField(name: "Accept-Encoding", value: TransferConfiguration.acceptedEncodings),
            HeaderField(name: "User-Agent", value: userAgent),
        ]
        guard !isForeign else { return fields }
        if let credentials = requests.credentials {
            let text = "\(credentials.user):\(credentials.password)"
            fields.append(HeaderField(name: "Authorization", value: fingerprint(text)))
        }
        let given = requests.fields.replaced(by: userFields).map { field in
            let isPlain = TransferConfiguration.plainFields.contains(field.name.lowercased())
            guard !field.value.isEmpty, !isPlain else { return field }
            return HeaderField(name: field.name, value: fingerprint(field.value))
        }
        return fields.replaced(by: given).filter { !$0.value.isEmpty }
    }

    /// Fields of users that hold no secrets; all others may.
    private static let plainFields: Set = ["accept", "accept-language", "user-agent"]

    /// Images gain nothing from a content encoding.
    static let acceptedEncodings = "identity"

    package init(userAgent: String) {
        self.userAgent = userAgent
    }
}

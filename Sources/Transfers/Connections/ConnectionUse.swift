/// A transfer's use of the connections of its origin.
struct ConnectionUse {
    let origin: String
    /// Whether it has opened a socket, on which its request was not sent yet.
    var isConnecting = false
    var isRefused = false
    /// Whether its request was sent, or is about to be.
    var isSent = false
    var isAnswered = false
    /// Whether the response came over HTTP/2.
    var isShared = false
}

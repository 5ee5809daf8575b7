internal import CCurl
import Glibc

// libcurl's callbacks, on the loop's thread. `context` is the ``ActiveTransfer``, which the loop
// keeps alive, unless a callback names another. They are file-level, so that they inherit no
// isolation from the code that names them.

private func transfer(_ context: UnsafeMutableRawPointer?) -> ActiveTransfer? {
    context.map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
}

func receiveBodyBytes(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    let bytes = UnsafeRawBufferPointer(start: data, count: size * count)
    return transfer(context)?.receive(bytes) ?? 0
}

/// libcurl's read function, for bodies of requests.
func sendBodyBytes(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    let buffer = UnsafeMutableRawBufferPointer(start: data, count: size * count)
    return transfer(context)?.send(into: buffer) ?? 0
}

/// libcurl's header function, called with each line of a header section, its empty line included.
func receiveHeaderLine(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    let line = UnsafeRawBufferPointer(start: data, count: size * count)
    return transfer(context)?.receiveLine(line) == true ? line.count : 0
}

/// libcurl's function for opening sockets
/// (https://curl.se/libcurl/c/CURLOPT_OPENSOCKETFUNCTION.html).
func openCheckedSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
    _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let transfer = transfer(context), let address,
        transfer.addresses.mayOpen(ccurl_socket_address(address)), transfer.takesSocket()
    else { return CURL_SOCKET_BAD }
    let opened = socket(
        address.pointee.family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue),
        address.pointee.protocol)
    // libcurl reports a failure as an address that cannot be connected to.
    transfer.opened(opened, errno)
    return opened
}

/// libcurl's function for closing sockets. `context` is the ``OriginConnections``
/// (https://curl.se/libcurl/c/CURLOPT_CLOSESOCKETFUNCTION.html).
func closeSocket(_ context: UnsafeMutableRawPointer?, _ socket: curl_socket_t) -> Int32 {
    if let context {
        Unmanaged<OriginConnections>.fromOpaque(context).takeUnretainedValue().noteClosed(socket)
    }
    return close(socket)
}

/// libcurl's function before each request on a connection, reused ones included
/// (https://curl.se/libcurl/c/CURLOPT_PREREQFUNCTION.html, added in 7.80).
func checkConnection(
    _ context: UnsafeMutableRawPointer?, _ address: UnsafeMutablePointer<CChar>?,
    _ localAddress: UnsafeMutablePointer<CChar>?, _ port: Int32, _ localPort: Int32
) -> Int32 {
    guard let transfer = transfer(context), let address,
        transfer.addresses.maySend(to: String(cString: address))
    else { return CURL_PREREQFUNC_ABORT }
    transfer.noteRequest()
    return CURL_PREREQFUNC_OK
}

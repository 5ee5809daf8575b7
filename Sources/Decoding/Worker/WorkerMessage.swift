internal import CSandbox
import Codecs
import Glibc
import PrefetchModel

/// An image for a worker.
struct WorkerImage {
    let bytes: UnsafeRawBufferPointer
    /// A sealed memfd that begins with the same bytes.
    let descriptor: Int32?
    /// The format by the signature; nil for none.
    let format: ImageFormat?

    init(bytes: UnsafeRawBufferPointer, descriptor: Int32? = nil) {
        self.bytes = bytes
        self.descriptor = descriptor
        format = sniffed(bytes)
    }
}

/// A message between this process and a worker: eight numbers on a socket that keeps messages
/// apart. Longer data are in shared memory.
struct WorkerMessage {
    enum MessageKind: Int {
        /// To a worker: ``DecodingRules``, of `second` bytes. They are in the input at `first`,
        /// or at the start of the memory sent with the message, as with the next four.
        case rules = 1
        /// To a worker: recipes that later requests name by number.
        case recipes
        /// To a worker: an image in the input at `first`, of `second` bytes, to be processed by
        /// the recipes of number `third`. `fourth` bytes of memory are reserved for it already.
        case process
        /// The same for a stored image: its size is not filtered.
        case processStored
        /// To a worker: an image that needs a placeholder.
        case placeholder
        /// To a worker: `first` is 1 if the memory that it needs is reserved.
        case reserved

        /// From a worker: it has started. `first` has a bit for each wall, `second` a byte with the
        /// `errno` of each other one.
        case ready
        /// From a worker: it needs `first` bytes for pixels, instead of those it had.
        case needs
        /// From a worker: the result is in the output, from its start, of `first` bytes.
        case done
        /// From a worker: the error of the whole image is there.
        case refused
    }

    var kind: MessageKind
    var first = 0
    var second = 0
    var third = 0
    var fourth = 0
    /// The received memory, in place of the input; the receiver closes it.
    private(set) var descriptor: Int32?

    private typealias Numbers = (Int, Int, Int, Int, Int, Int, Int, Int)

    /// Sends it, and the memory, to a worker; returns false with `errno`.
    func send(on socket: Int32, with descriptor: Int32) -> Bool {
        withUnsafeBytes(of: numbers) { bytes in
            guard let start = bytes.baseAddress else { return false }
            return csandbox_send(socket, start, bytes.count, descriptor)
        }
    }

    private var numbers: Numbers { (kind.rawValue, first, second, third, fourth, 0, 0, 0) }

    /// Sends it; returns false with `errno`.
    func send(on socket: Int32) -> Bool {
        withUnsafeBytes(of: numbers) { bytes in
            while true {
                let count = write(socket, bytes.baseAddress, bytes.count)
                if count == bytes.count { return true }
                guard count < 0, errno == EINTR else { return false }
            }
        }
    }

    /// Waits for the parent's next one; nil at the end, and for bytes that are no message.
    static func receiveInWorker(on socket: Int32) -> WorkerMessage? {
        var numbers: Numbers = (0, 0, 0, 0, 0, 0, 0, 0)
        var descriptor: Int32 = -1
        let isWhole = withUnsafeMutableBytes(of: &numbers) { bytes in
            guard let start = bytes.baseAddress else { return false }
            return csandbox_receive(socket, start, bytes.count, &descriptor)
        }
        guard isWhole, var message = WorkerMessage(numbers) else { return nil }
        if descriptor >= 0 { message.descriptor = descriptor }
        return message
    }

    /// Waits for a worker's next one; nil at the end. The system drops its descriptors.
    ///
    /// - Throws: ``Codecs/CodecError/nonsense``
    static func receive(on socket: Int32) throws(CodecError) -> WorkerMessage? {
        var numbers: Numbers = (0, 0, 0, 0, 0, 0, 0, 0)
        let count = withUnsafeMutableBytes(of: &numbers) { bytes in
            while true {
                let count = read(socket, bytes.baseAddress, bytes.count)
                if count >= 0 || errno != EINTR { return count }
            }
        }
        guard count > 0 else { return nil }
        guard count == MemoryLayout<Numbers>.size, let message = WorkerMessage(numbers) else {
            throw .nonsense
        }
        return message
    }

    private init?(_ numbers: Numbers) {
        guard let kind = MessageKind(rawValue: numbers.0) else { return nil }
        self.init(
            kind: kind, first: numbers.1, second: numbers.2, third: numbers.3, fourth: numbers.4)
    }

    init(kind: MessageKind, first: Int = 0, second: Int = 0, third: Int = 0, fourth: Int = 0) {
        self.kind = kind
        self.first = first
        self.second = second
        self.third = third
        self.fourth = fourth
    }
}

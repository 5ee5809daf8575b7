internal import CSandbox
internal import CStart
import Codecs
import Glibc
import PrefetchModel

/// The program as a worker.
package enum DecodingWorker {
    /// Serves the parent until it ends, if the arguments are a worker's.
    package static func serveIfAsked() {
        csandbox_set_available()
        guard cstart_argument_count() == 6, isArgument(1, WorkerLaunch.flag) else { return }
        // The terminal sends these to all processes of a run; the parent decides.
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] { signal(number, SIG_IGN) }
        guard let parent = number(2), csandbox_follow_parent(parent), let libraries = number(4),
            let leftOut = number(5),
            let loop = WorkerLoop(
                tests: isArgument(3, "true"), CodecLibrarySet(rawValue: Int(libraries)), leftOut)
        else { _exit(2) }
        loop.run()
        _exit(0)
    }

    private static func number(_ index: Int32) -> Int32? {
        Int32(String(cString: cstart_argument(index)))
    }

    private static func isArgument(_ index: Int32, _ text: String) -> Bool {
        strcmp(cstart_argument(index), text) == 0
    }
}

/// The work of a worker between its start and its end.
private final class WorkerLoop {
    private let input: UnsafeRawBufferPointer
    private let output: UnsafeMutableRawBufferPointer
    private let rules: DecodingRules
    private var sets: [Int: [Recipe]] = [:]

    /// The part of the output for messages; images follow.
    private static let answerBytes = 256 << 10
    private static let socket = Int32(CSANDBOX_SOCKET)
    /// Memory beside that for pixels: buffers of libraries, and gaps in the heap.
    private static let slackBytes = 128 << 20

    /// Loads all that needs files, and builds the walls.
    init?(tests: Bool, _ libraries: CodecLibrarySet, _ leftOut: Int32) {
        guard let input = WorkerLoop.map(Int32(CSANDBOX_INPUT), PROT_READ),
            let output = WorkerLoop.map(
                Int32(CSANDBOX_OUTPUT), PROT_READ | PROT_WRITE),
            let message = WorkerMessage.receiveInWorker(on: WorkerLoop.socket),
            message.kind == .rules,
            let bytes = WorkerLoop.withBytes(
                of: message, in: UnsafeRawBufferPointer(input), { [UInt8]($0) })
        else { return nil }
        var reader = WireReader(bytes)
        guard let rules = try? reader.rules() else { return nil }
        self.input = UnsafeRawBufferPointer(input)
        self.output = output
        self.rules = rules
        let loaded = CodecLibraries.load(libraries)
        // Little CMS dates the profiles that it makes, for which the C library reads a file once.
        tzset()
        let pixels = min(rules.header.memory.bytes, 1 << 46)
        let walls = csandbox_lock(UInt64(pixels + pixels / 4 + WorkerLoop.slackBytes), leftOut)
        // Without the last wall, the riskier libraries could do anything.
        if walls.holding & (1 << Wall.seccomp.rawValue) != 0 { SandboxedDecoders.allow(loaded) }
        if tests { WorkerLoop.decodeTinyPictures(with: libraries) }
        let ready = WorkerMessage(
            kind: .ready, first: Int(walls.holding), second: WorkerLoop.errors(of: walls))
        guard ready.send(on: WorkerLoop.socket) else { return nil }
    }

    private static func errors(of walls: csandbox_walls) -> Int {
        withUnsafeBytes(of: walls.errors) { bytes in
            bytes.bindMemory(to: Int32.self).enumerated().reduce(0) {
                $0 | Int($1.element & 0xFF) << (8 * $1.offset)
            }
        }
    }

    /// Decodes and encodes a tiny picture of each format, behind the walls: a library that needs
    /// another system call ends the worker here, and not at an image of the list. Without its
    /// library, a format fails for each image by itself.
    private static func decodeTinyPictures(with libraries: CodecLibrarySet) {
        let formats = ImageFormat.allCases.filter {
            libraries.isSuperset(of: CodecLibrarySet(decoding: $0))
        }
        _ = CodecLibraries.failingDecoders(among: formats)
        _ = CodecLibraries.failingEncoders(among: formats)
    }

    private static func map(
        _ descriptor: Int32, _ protection: Int32
    ) -> UnsafeMutableRawBufferPointer? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size > 0 else { return nil }
        let size = Int(status.st_size)
        let start = mmap(nil, size, protection, MAP_SHARED, descriptor, 0)
        close(descriptor)
        guard let start, start != MAP_FAILED else { return nil }
        return UnsafeMutableRawBufferPointer(start: start, count: size)
    }

    /// Calls `body` with the bytes of a message; nil without any.
    private static func withBytes<Value>(
        of message: WorkerMessage, in input: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer) -> Value?
    ) -> Value? {
        guard let descriptor = message.descriptor else {
            guard (0...input.count).contains(message.first),
                (0...(input.count - message.first)).contains(message.second)
            else { return nil }
            return body(
                UnsafeRawBufferPointer(rebasing: input[message.first...].prefix(message.second)))
        }
        let start = mmap(nil, message.second, PROT_READ, MAP_SHARED, descriptor, 0)
        close(descriptor)
        guard let start, start != MAP_FAILED else { return nil }
        defer { munmap(start, message.second) }
        return body(UnsafeRawBufferPointer(start: start, count: message.second))
    }

    /// Performs tasks until the parent closes the socket.
    func run() {
        while let message = WorkerMessage.receiveInWorker(on: WorkerLoop.socket) {
            if WorkerLoop.withBytes(of: message, in: input, { serve(message, $0) }) != nil {
                continue
            }
            guard message.descriptor != nil else { return }
            var writer = WireWriter()
            writer.put(CodecError.outOfMemory("no memory for its file"))
            guard send(writer.bytes, as: .refused).send(on: WorkerLoop.socket) else { return }
        }
    }

    /// Nil for an invalid message, and when the result cannot be sent.
    private func serve(_ message: WorkerMessage, _ bytes: UnsafeRawBufferPointer) -> Void? {
        if message.kind == .recipes {
            var reader = WireReader([UInt8](bytes))
            guard let recipes = try? reader.recipes() else { return nil }
            if sets.count == WorkerProcess.mostSets { sets = [:] }
            sets[message.third] = recipes
            return ()
        }
        guard let task = task(of: message),
            answer(to: message, bytes, task).send(on: WorkerLoop.socket)
        else { return nil }
        return ()
    }

    private func task(of message: WorkerMessage) -> DecodingTask? {
        switch message.kind {
        case .process: sets[message.third].map(DecodingTask.new)
        case .processStored: sets[message.third].map(DecodingTask.stored)
        case .placeholder: .placeholder
        default: nil
        }
    }

    private func answer(
        to message: WorkerMessage, _ bytes: UnsafeRawBufferPointer, _ task: DecodingTask
    ) -> WorkerMessage {
        let result = Result { () throws(CodecError) in
            let entry = try rules.perform(task, on: bytes, cancellation: nil) { need in
                need <= message.fourth || WorkerLoop.reserve(need)
            }
            var writer = WireWriter()
            var end = WorkerLoop.answerBytes
            try writer.put(entry) { image throws(CodecError) in
                defer { end += (image.count + 4095) & ~4095 }
                return try place(image, at: end)
            }
            return writer.bytes
        }
        switch result {
        case .success(let answer): return send(answer, as: .done)
        case .failure(let error):
            var writer = WireWriter()
            writer.put(error)
            return send(writer.bytes, as: .refused)
        }
    }

    private func place(_ image: ImageBytes, at offset: Int) throws(CodecError) -> Int {
        guard image.count <= output.count - offset else {
            throw .outOfMemory("no memory for its results")
        }
        image.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: output[offset...]).copyMemory(from: $0)
        }
        return offset
    }

    private func send(_ answer: [UInt8], as kind: WorkerMessage.MessageKind) -> WorkerMessage {
        precondition(answer.count <= min(WorkerLoop.answerBytes, output.count))
        answer.withUnsafeBytes { output.copyMemory(from: $0) }
        return WorkerMessage(kind: kind, first: answer.count)
    }

    private static func reserve(_ need: Int) -> Bool {
        guard WorkerMessage(kind: .needs, first: need).send(on: socket),
            let answer = WorkerMessage.receiveInWorker(on: socket), answer.kind == .reserved
        else { _exit(0) }
        return answer.first == 1
    }
}

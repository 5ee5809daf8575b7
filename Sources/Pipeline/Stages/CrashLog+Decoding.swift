package import CacheStorage
import Codecs
package import PrefetchModel

extension CrashLog {
    /// Notes how decoding these bytes ended. Errors that are not about the image change nothing.
    package func note<Value>(
        _ result: Result<Value, any Error>, of digest: ContentDigest
    ) throws(StorageError) {
        switch result {
        case .success: try note(nil, of: digest)
        case .failure(CodecError.cancelled): return
        case .failure(CodecError.crashed(_, let signal)): try note(signal, of: digest)
        case .failure(let error): if error is CodecError { try note(nil, of: digest) }
        }
    }
}

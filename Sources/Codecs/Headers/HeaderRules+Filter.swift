internal import PrefetchModel

extension HeaderRules {
    /// Checks a whole image against the user's filters on size.
    ///
    /// - Throws: `leftOut`.
    package func filter(_ header: ImageHeader) throws(CodecError) {
        let (width, height) = header.displayedSize
        if let objection = wanted.objection(width: width, height: height) {
            throw .leftOut(objection)
        }
        if let objection = wanted.objection(bytes: header.sourceBytes) { throw .leftOut(objection) }
    }

    /// Checks the beginning of an image. Width and height may still be exchanged, since an
    /// orientation tag can follow.
    ///
    /// `totalBytes` is the length of the whole file; nil if unknown.
    ///
    /// - Throws: `leftOut` only if the whole image would also be left out.
    func filter(beginning header: ImageHeader, totalBytes: Int?) throws(CodecError) {
        let (width, height) = header.displayedSize
        if let objection = wanted.objection(width: width, height: height),
            wanted.objection(width: height, height: width) != nil
        {
            throw .leftOut(objection)
        }
        if let objection = wanted.objection(bytes: totalBytes) { throw .leftOut(objection) }
    }
}

extension CodecError {
    fileprivate static func leftOut(_ objection: ImageFilter.Objection) -> CodecError {
        .leftOut(objection.reason, objection.message)
    }
}

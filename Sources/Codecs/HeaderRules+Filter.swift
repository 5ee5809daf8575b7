internal import PrefetchModel

extension HeaderRules {
    /// Looks whether a whole image is among those that are wanted.
    ///
    /// - Throws: `leftOut`.
    package func filter(_ header: ImageHeader) throws(CodecError) {
        let (width, height) = header.uprightSize
        if let objection = wanted.objection(width: width, height: height) {
            throw .leftOut(objection)
        }
        if let objection = wanted.objection(bytes: header.sourceBytes) { throw .leftOut(objection) }
    }

    /// The same of the beginning of one, of `totalBytes` where that is known: an orientation may still come.
    ///
    /// - Throws: `leftOut`, where the whole would be, too.
    func filter(beginning header: ImageHeader, totalBytes: Int?) throws(CodecError) {
        let (width, height) = header.uprightSize
        if let objection = wanted.objection(width: width, height: height),
            wanted.objection(width: height, height: width) != nil
        {
            throw .leftOut(objection)
        }
        if let objection = wanted.objection(bytes: totalBytes) { throw .leftOut(objection) }
    }
}

extension ImageHeader {
    /// After ``orientation`` is applied.
    fileprivate var uprightSize: (width: Int, height: Int) {
        orientation >= 5 ? (heightInPixels, widthInPixels) : (widthInPixels, heightInPixels)
    }
}

extension CodecError {
    fileprivate static func leftOut(_ objection: ImageFilter.Objection) -> CodecError {
        .leftOut(objection.reason, objection.message)
    }
}

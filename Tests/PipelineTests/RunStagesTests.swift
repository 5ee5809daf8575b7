import PrefetchModel
import Testing

@testable import Pipeline

struct RunStagesTests {
    private func refused(_ id: Int) -> CodecJob {
        CodecJob(
            id: id, variants: VariantSet(main: Recipe()),
            input: .refused(
                Failure(.notAnImage, "a page"), part: CodecJob.PartKey(key: "k", url: "u")))
    }

    /// Bodies that arrive need memory, and the workers have enough to do without them.
    @Test func transfersCountWhileImagesWait() throws {
        var stages = RunStages(FakeRun(seed: 1, fault: .none, entries: 3))
        #expect(stages.hasRoomForImage(beside: 200))
        // The two workers are busy, and no image waits.
        for id in 0..<2 { try stages.process(refused(id)) }
        #expect(stages.hasRoomForImage(beside: 200))
        try stages.process(refused(2))
        #expect(stages.hasRoomForImage(beside: 28))
        #expect(!stages.hasRoomForImage(beside: 29))
        #expect(stages.hasRoomForImage())
        stages.noteProcessed()
        #expect(stages.hasRoomForImage(beside: 200))
    }
}

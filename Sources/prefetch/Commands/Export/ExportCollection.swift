import Exporting
import PrefetchModel
import Reporting

/// The images to export, and the losses.
struct ExportCollection {
    enum Loss: String, CaseIterable {
        case missing
        case invalid
        case collision
        case unnamed
        /// A web server could obey or run its name.
        case unsafe
        case damaged
        case foreign
    }

    private(set) var plan: ExportPlan
    private(set) var stale = 0
    private(set) var losses = Losses()
    /// The part of the lists that hides images, unless the user allows that. Files of earlier
    /// exports stay then.
    var gap: ListGap?
    /// Images with damaged content files, which are not planned.
    private let damaged: Set<ContentDigest>
    /// The reasons of the first losses.
    private(set) var messages: [String] = []
    private var isShortened = false

    private static let mostMessages = 20

    init(plan: ExportPlan, without damaged: Set<ContentDigest>) {
        self.plan = plan
        self.damaged = damaged
    }

    /// Plans an image, or notes why it is not exported.
    mutating func add(_ finding: ExportFinding) {
        switch finding {
        case .image(let image, let path, let place, let isStale):
            let shown = { (place.map { "\($0): " } ?? "") + "\(RedactedURL(image.url))" }
            switch path {
            case .failure(let problem):
                plan.addMissing(image.number)
                report(
                    "\(shown()): not exported: \(problem.message)",
                    as: problem.isUnsafe ? .unsafe : .unnamed)
            case .success where damaged.contains(image.stored.digest):
                plan.addMissing(image.number)
                report(shown(), .damaged)
            case .success(let path):
                if let other = plan.add(image, as: path) {
                    plan.addMissing(image.number)
                    report(shown(), at: path, of: other)
                } else if isStale {
                    stale += 1
                }
            }
        case .none(let number, let message, let loss):
            plan.addMissing(number)
            report(message, as: loss)
        }
    }

    /// Completes the plan, and notes the images that collide after that.
    mutating func settle() {
        for loss in plan.settle() {
            report("\(RedactedURL(loss.image.url))", at: loss.path, of: loss.other)
        }
    }

    private mutating func report(_ shown: String, at path: String, of other: ExportedImage) {
        report(
            "\(shown): not exported: \(path) is the file of \(RedactedURL(other.url))",
            as: .collision)
    }

    /// Notes the reason of a loss, and counts it. The first of each kind always has a message.
    mutating func report(_ message: String, as loss: Loss) {
        losses.counts[loss, default: 0] += 1
        if messages.count < ExportCollection.mostMessages || losses.counts[loss] == 1 {
            messages.append(message)
        } else if !isShortened {
            isShortened = true
            messages.append("… the other images are only counted")
        }
    }

    /// Notes a file, or the entry of one, that is not written.
    mutating func report(_ path: String, _ problem: ExportTree.Problem) {
        switch problem {
        case .damaged:
            report("\(path): not exported: its content file is missing or damaged", as: .damaged)
        case .foreign:
            report("\(path): not exported: a file that no export wrote has its name", as: .foreign)
        }
    }

    struct Losses {
        fileprivate(set) var counts: [Loss: Int] = [:]

        var isEmpty: Bool { counts.isEmpty }

        var text: String {
            Loss.allCases.compactMap { loss in counts[loss].map { "\($0) \(loss.rawValue)" } }
                .joined(separator: ", ")
        }

        var hint: String? {
            if counts[.missing] != nil {
                return
                    "`prefetch run` over the same lists downloads them; `prefetch failed list` has "
                    + "the others"
            }
            if counts[.damaged] != nil {
                return "`prefetch verify --repair`, then the next run downloads them again"
            }
            if counts[.collision] != nil {
                return
                    "--name with {n} or {sha256:8} makes names differ, --identifier the names "
                    + "of an app's variants"
            }
            if counts[.unsafe] != nil {
                return "--layout pattern --name '{host}/{sha256:16}.{ext}' takes no name of a URL"
            }
            return nil
        }

        var object: JSONObject {
            var object = JSONObject()
            for loss in Loss.allCases { object.add(loss.rawValue, counts[loss] ?? 0) }
            return object
        }
    }
}

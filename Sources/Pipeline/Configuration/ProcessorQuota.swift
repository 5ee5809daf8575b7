/// The number of processors that control groups grant this process, possibly a fraction.
///
/// Containers and systemd's `CPUQuota=` limit the time and not the processors, so the affinity mask
/// does not show it. A group's quota applies to all groups below it. See cgroups(7), and `cpu.max`
/// and `cpu.cfs_quota_us` in the kernel's documentation of control groups.
package enum ProcessorQuota {
    /// Returns the smallest quota of the process's groups and their ancestors, nil without any.
    /// `contents` returns the text of a file, nil when it cannot be read.
    package static func smallest(reading contents: (String) -> String?) -> Double? {
        guard let groups = contents("/proc/self/cgroup"),
            let mounts = contents("/proc/self/mountinfo")
        else { return nil }
        var smallest: Double?
        for group in groups.split(separator: "\n").compactMap(ControlGroup.init) {
            for mount in mounts.split(separator: "\n").compactMap(Mount.init)
            where mount.isOf(group) {
                for folder in mount.folders(of: group) {
                    guard let quota = quota(in: folder, group, contents) else { continue }
                    smallest = min(smallest ?? quota, quota)
                }
            }
        }
        return smallest
    }

    private static func quota(
        in folder: String, _ group: ControlGroup, _ contents: (String) -> String?
    ) -> Double? {
        let numbers: [Double?]
        if group.isUnified {
            // `MAX PERIOD`, where MAX may be the word "max".
            guard let text = contents(folder + "/cpu.max") else { return nil }
            numbers = text.split(whereSeparator: \.isWhitespace).map { Double(String($0)) }
        } else {
            numbers = ["/cpu.cfs_quota_us", "/cpu.cfs_period_us"].map { name in
                contents(folder + name).flatMap {
                    $0.split(whereSeparator: \.isWhitespace).first.flatMap { Double(String($0)) }
                }
            }
        }
        guard numbers.count == 2, let time = numbers[0], let period = numbers[1], time > 0,
            period > 0
        else { return nil }
        let quota = time / period
        return quota.isFinite ? quota : nil
    }

    /// A line of `/proc/self/cgroup` about processors.
    private struct ControlGroup {
        /// Version 2, with one tree for everything.
        let isUnified: Bool
        let path: Substring

        /// Parses `NUMBER:CONTROLLERS:PATH`.
        init?(_ line: Substring) {
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return nil }
            isUnified = fields[0] == "0" && fields[1].isEmpty
            guard isUnified || fields[1].split(separator: ",").contains("cpu") else { return nil }
            path = fields[2]
        }
    }

    /// A line of `/proc/self/mountinfo` that mounts control groups.
    private struct Mount {
        private let isUnified: Bool
        private let hasProcessors: Bool
        /// The group that is mounted at ``point``.
        private let root: Substring
        private let point: Substring

        /// Parses `ID PARENT DEVICE ROOT POINT OPTIONS [MORE]... - TYPE SOURCE SUPER-OPTIONS`.
        init?(_ line: Substring) {
            let fields = line.split(separator: " ")
            guard let dash = fields.firstIndex(of: "-"), dash >= 6, fields.count > dash + 3 else {
                return nil
            }
            guard fields[dash + 1] == "cgroup2" || fields[dash + 1] == "cgroup" else { return nil }
            isUnified = fields[dash + 1] == "cgroup2"
            hasProcessors = fields[dash + 3].split(separator: ",").contains("cpu")
            (root, point) = (fields[3], fields[4])
        }

        func isOf(_ group: ControlGroup) -> Bool {
            group.isUnified == isUnified && (isUnified || hasProcessors)
        }

        /// Returns the folders of the group and its ancestors, as far as they are visible.
        func folders(of group: ControlGroup) -> [String] {
            var path = group.path
            if root != "/" {
                // In a container that sees its own part of the tree, the path may be the host's.
                path = path.hasPrefix(root) ? path.dropFirst(root.count) : ""
            }
            var names = path.split(separator: "/")
            if names.contains("..") { names = [] }
            return (0...names.count).map { count in
                ([point] + names.prefix(count)).joined(separator: "/")
            }
        }
    }
}

import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct ProcessorQuotaTests {
    private static let unified = """
        24 1 0:20 / /sys rw,nosuid - sysfs sysfs rw
        31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
        """
    private static let separate = """
        33 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
        34 24 0:30 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
        """

    private static func quota(
        group: String, mounts: String, _ files: [String: String]
    ) -> Double? {
        let all = files.merging(["/proc/self/cgroup": group, "/proc/self/mountinfo": mounts]) {
            $1
        }
        return ProcessorQuota.smallest { all[$0] }
    }

    @Test(arguments: [
        ("150000 100000\n", 1.5), ("max 100000\n", nil), ("10000 100000\n", 0.1), ("", nil),
        ("0 100000\n", nil), ("100000 0\n", nil), ("-1 100000\n", nil), ("a b\n", nil),
        ("inf 100000\n", nil), ("inf inf\n", nil), ("nan 1\n", nil), ("1e400 1\n", nil),
    ])
    func readsUnifiedQuota(text: String, expected: Double?) {
        let found = ProcessorQuotaTests.quota(
            group: "0::/a/b\n", mounts: ProcessorQuotaTests.unified,
            ["/sys/fs/cgroup/a/b/cpu.max": text])
        #expect(found == expected)
    }

    @Test func smallestAncestorQuotaApplies() {
        let found = ProcessorQuotaTests.quota(
            group: "0::/a/b\n", mounts: ProcessorQuotaTests.unified,
            [
                "/sys/fs/cgroup/a/b/cpu.max": "400000 100000",
                "/sys/fs/cgroup/a/cpu.max": "200000 100000",
                "/sys/fs/cgroup/cpu.max": "max 100000", "/sys/fs/cgroup/c/cpu.max": "1 100000",
            ])
        #expect(found == 2)
    }

    @Test(arguments: [("250000", 2.5), ("-1", nil)])
    func readsVersionOneQuota(time: String, expected: Double?) {
        let found = ProcessorQuotaTests.quota(
            group: "12:memory:/m\n3:cpu,cpuacct:/c\n0::/\n", mounts: ProcessorQuotaTests.separate,
            [
                "/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us": time + "\n",
                "/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us": "100000\n",
                "/sys/fs/cgroup/memory/m/cpu.cfs_quota_us": "1\n",
                "/sys/fs/cgroup/memory/m/cpu.cfs_period_us": "1\n",
            ])
        #expect(found == expected)
    }

    /// The path is the host's, and the mount shows the container's own part.
    @Test func readsQuotaInsideAContainer() {
        let mounts = "31 24 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
        let files = [
            "/sys/fs/cgroup/cpu.max": "100000 100000",
            "/sys/fs/cgroup/inner/cpu.max": "50000 100000",
        ]
        #expect(
            ProcessorQuotaTests.quota(group: "0::/docker/x/inner", mounts: mounts, files) == 0.5)
        #expect(ProcessorQuotaTests.quota(group: "0::/docker/x", mounts: mounts, files) == 1)
        #expect(ProcessorQuotaTests.quota(group: "0::/elsewhere", mounts: mounts, files) == 1)
    }

    @Test func missingFilesMeanNoQuota() {
        #expect(ProcessorQuota.smallest { _ in nil } == nil)
        #expect(ProcessorQuotaTests.quota(group: "nonsense\n:\n", mounts: "- -\n\n", [:]) == nil)
    }
}

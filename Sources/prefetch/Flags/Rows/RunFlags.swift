import Pipeline

/// The table of the flags of `run`. Other commands share some of them.
///
/// Defaults are those of the run's rules in `RunConfiguration`. A flag that isn't part of them has
/// its default here.
enum RunFlags {
    static let defaults = RunConfiguration(
        userAgent: "prefetch/\(Prefetch.version)", manifests: [], codecWorkers: 1)

    /// Every row, in the order of `run --help`.
    static let all: [FlagRow] = input + hostRows + requestRows + imageRows + outputRows

    private static let input = [
        list.row, shard.row, shardPlan.row, format.row, urlColumn.row, column.row, noHeader.row,
        sitemapPages.row,
        baseURL.row,
        keyIgnoreQuery.row, order.row, queueCapacity.row,
    ]

    private static let hostRows = [
        jobs.row, hostConcurrency.row, hostInterval.row, hostRate.row, pacing.row, retry.row,
        retryDelay.row,
        maximumRetryAfter.row, hostTimeout.row, connectTimeout.row, stallTimeout.row, timeout.row,
        limitRate.row, maximumBodySize.row, maximumPixels.row, maximumDecodeTime.row, memory.row,
        maximumRedirects.row, entryLimit.row, deadline.row, until.row, failFast.row, jitter.row,
    ]

    private static let requestRows = [
        include.row, exclude.row, robotsDirectives.row, minimumSize.row, maximumAspect.row,
        minimumBytes.row, header.row, userAgent.row, user.row,
        netrc.row, netrcFile.row, cookieJar.row, proxy.row, noProxy.row, authorityFile.row,
        insecure.row, certificate.row, certificateKey.row, resolve.row, http1.row, ipv4.row,
        ipv6.row, allowDowngrade.row,
        allowLinkLocal.row, denyPrivate.row, acceptStatus.row, acceptType.row, blacklistStatus.row,
        method.row, noStore.row, bodyFilter.row, refresh.row, ahead.row, lifetime.row,
        minimumLifetime.row, maximumLifetime.row, defaultLifetime.row, checkFiles.row, offline.row,
        retryFailed.row,
    ]

    private static let imageRows = [
        encode.row, allowFormats.row, quality.row, keepLarger.row, effort.row,
        maximumStoredBytes.row, strip.row, background.row, animated.row, resize.row, transform.row,
        scaleDownPixels.row, linear.row, variant.row, storeOriginal.row, check.row,
        otherFormats.row, noPlaceholders.row,
    ]

    private static let outputRows = [
        cacheDirectory.row, configurationFile.row, profile.row, trustsProject.row,
        seedCache.row, fileAttributes.row, sync.row, maximumSize.row,
        prune.row, allowPartial.row, snapshot.row,
        mode.row, sink.row, sinkCredentials.row,
        report.row, absolutePaths.row, prometheus.row, junit.row, html.row, ci.row, onChange.row,
        summary.row, progress.row, color.row, quiet.row, verbose.row, dryRun.row, failOn.row,
        maximumFailures.row, allowEmpty.row, lock.row,
    ]
}

/// The public suffix list by libpsl, <https://github.com/rockdaboot/libpsl>.
///
/// The library is loaded on first use. Any thread may use it.
#pragma once

#pragma clang assume_nonnull begin

/// Loads the library; returns the reason if that fails, else NULL. The other function needs it.
const char *_Nullable cpsl_load(void);

/// Returns the registrable domain of a host by the list built into the library: the public suffix
/// and one label more. The result points into `host`. NULL for a public suffix itself, and without
/// any domain.
///
/// `host` is in lower case, as A-labels, and not an IP address.
const char *_Nullable cpsl_registrable_domain(const char *host);

#pragma clang assume_nonnull end

// Defines TRAINYARD_SANITIZED in builds under the address or the thread sanitizer, for tests
// that these affect: of memory use, loaded libraries and the time of long computations.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRAINYARD_SANITIZED
#endif
#endif

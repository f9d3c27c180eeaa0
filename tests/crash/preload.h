#ifndef DPAR_TESTS_CRASH_PRELOAD_H_
#define DPAR_TESTS_CRASH_PRELOAD_H_

namespace dpar::crash {

// Sanitizers stand before the C library themselves, where the layers of these tests would.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCanPreload = false;
#else
inline constexpr bool kCanPreload = true;
#endif
inline constexpr char kCannotPreload[] = "a sanitizer stands where the preloaded layer would; other builds run this";

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_PRELOAD_H_

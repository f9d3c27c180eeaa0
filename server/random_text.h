#ifndef DPAR_SERVER_RANDOM_TEXT_H_
#define DPAR_SERVER_RANDOM_TEXT_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/escaping.h"
#include "core/random/random.h"

namespace dpar {

inline std::string RandomBytes(RandomSource& random, size_t count) {
  std::string bytes(count, '\0');
  random.Fill(std::span<uint8_t>(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()));
  return bytes;
}

inline std::string RandomHex(RandomSource& random, size_t count) {
  return absl::BytesToHexString(RandomBytes(random, count));
}

// An id that the server makes: 64 random bits.
inline std::string RandomId(RandomSource& random) {
  constexpr size_t kIdBytes = 8;
  return RandomHex(random, kIdBytes);
}

}  // namespace dpar

#endif  // DPAR_SERVER_RANDOM_TEXT_H_

// The production random source.
#ifndef DPAR_CORE_RANDOM_SECURE_RANDOM_H_
#define DPAR_CORE_RANDOM_SECURE_RANDOM_H_

#include <array>
#include <cstdint>
#include <memory>

#include "core/random/random.h"

namespace dpar {

// AES-256 in counter mode through OpenSSL. The key comes from OpenSSL's kernel-seeded generator and is replaced by its
// own keystream every 16 MiB: a captured state says nothing about output before the last such change. A split-off
// stream's key is keystream of this one. A failing cipher or seed ends the process: noise that is not random must never
// be released.
class SecureRandom final : public RandomSource {
 public:
  SecureRandom();
  ~SecureRandom() override;

  void Fill(std::span<uint8_t> bytes) override;
  std::unique_ptr<RandomSource> Split() override;

 private:
  friend class SecureRandomPeer;  // a test's way to a known key
  friend std::unique_ptr<RandomSource> ReproducibleRandom(uint64_t seed);
  using KeyAndCounter = std::array<uint8_t, 48>;
  struct State;
  explicit SecureRandom(const KeyAndCounter& seed);

  std::unique_ptr<State> state_;
};

// The same generator with a key that anybody can derive from `seed`: its noise hides nothing. For data that its owner
// declared public, and for draws that are public; the tidy test knows the two files that may call it.
std::unique_ptr<RandomSource> ReproducibleRandom(uint64_t seed);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_SECURE_RANDOM_H_

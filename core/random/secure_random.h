// The production random source.
#ifndef DPAR_CORE_RANDOM_SECURE_RANDOM_H_
#define DPAR_CORE_RANDOM_SECURE_RANDOM_H_

#include <memory>

#include "core/random/random.h"

namespace dpar {

// AES-256 in counter mode through OpenSSL. The key comes from OpenSSL's kernel-seeded generator, and is replaced by
// keystream of its own after every 16 MiB, so a captured state says nothing about output before the last such change.
// The key of a split-off stream is keystream of this one. A failure of the cipher or of the seed ends the process:
// noise that is not random must never be released.
class SecureRandom final : public RandomSource {
 public:
  SecureRandom();
  ~SecureRandom() override;

  void Fill(std::span<uint8_t> bytes) override;
  std::unique_ptr<RandomSource> Split() override;

 private:
  struct State;
  explicit SecureRandom(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_SECURE_RANDOM_H_

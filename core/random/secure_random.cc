#include "core/random/secure_random.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/fault.h"

namespace dpar {
namespace {

constexpr size_t kKeyBytes = 32;  // of the 48; the counter's first value follows
constexpr size_t kBufferBytes = 4096;
constexpr size_t kLargestCipherCall = size_t{1} << 20U;
constexpr size_t kBytesPerKey = size_t{16} << 20U;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "fatal: the random source failed (%s); no noise can be drawn\n", what);
  std::abort();
}

}  // namespace

struct SecureRandom::State {
  EVP_CIPHER_CTX* cipher = EVP_CIPHER_CTX_new();
  std::array<uint8_t, kBufferBytes> buffer{};
  size_t unread = 0;            // bytes at the end of `buffer` that were not handed out
  size_t since_key_change = 0;  // bytes of keystream under the present key

  void SetKey(const KeyAndCounter& seed) {
    if (cipher == nullptr ||
        EVP_EncryptInit_ex(cipher, EVP_aes_256_ctr(), nullptr, seed.data(), seed.data() + kKeyBytes) != 1) {
      Fail("cipher set-up");
    }
    since_key_change = 0;
  }

  void Generate(uint8_t* out, size_t size) {
    std::memset(out, 0, size);
    int written = 0;
    if (EVP_EncryptUpdate(cipher, out, &written, out, static_cast<int>(size)) != 1 ||
        static_cast<size_t>(written) != size) {
      Fail("cipher");
    }
    since_key_change += size;
  }

  void Keystream(uint8_t* out, size_t size) {
    if (since_key_change >= kBytesPerKey) {
      KeyAndCounter next{};
      Generate(next.data(), next.size());
      SetKey(next);
      OPENSSL_cleanse(next.data(), next.size());
    }
    Generate(out, size);
  }
};

SecureRandom::SecureRandom() : state_(std::make_unique<State>()) {
  KeyAndCounter seed{};
  if (RAND_priv_bytes(seed.data(), static_cast<int>(seed.size())) != 1) {
    Fail("seed");
  }
  DPAR_FAULT_DO(kFixedSeed, seed.fill(0));
  state_->SetKey(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
}

SecureRandom::SecureRandom(const KeyAndCounter& seed) : state_(std::make_unique<State>()) { state_->SetKey(seed); }

std::unique_ptr<RandomSource> ReproducibleRandom(uint64_t seed) {
  constexpr std::string_view kLabel = "dpar reproducible stream 1";
  std::string text(kLabel);
  for (unsigned shift = 0; shift < 64; shift += 8) {
    text += static_cast<char>((seed >> shift) & 0xFFU);
  }
  SecureRandom::KeyAndCounter derived{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), derived.data(), &size, EVP_sha384(), nullptr) != 1 ||
      size != derived.size()) {
    Fail("digest of a seed");
  }
  return std::unique_ptr<RandomSource>(new SecureRandom(derived));
}

std::unique_ptr<RandomSource> SecureRandom::Split() {
  KeyAndCounter seed{};
  Fill(seed);
  std::unique_ptr<RandomSource> split(new SecureRandom(seed));
  OPENSSL_cleanse(seed.data(), seed.size());
  return split;
}

SecureRandom::~SecureRandom() {
  EVP_CIPHER_CTX_free(state_->cipher);
  OPENSSL_cleanse(state_->buffer.data(), state_->buffer.size());
}

void SecureRandom::Fill(std::span<uint8_t> bytes) {
  while (bytes.size() >= kBufferBytes) {
    const size_t size = std::min(bytes.size(), kLargestCipherCall);
    state_->Keystream(bytes.data(), size);
    bytes = bytes.subspan(size);
  }
  while (!bytes.empty()) {
    if (state_->unread == 0) {
      state_->Keystream(state_->buffer.data(), kBufferBytes);
      state_->unread = kBufferBytes;
    }
    const size_t size = std::min(bytes.size(), state_->unread);
    uint8_t* source = state_->buffer.data() + (kBufferBytes - state_->unread);
    std::memcpy(bytes.data(), source, size);
    OPENSSL_cleanse(source, size);
    state_->unread -= size;
    bytes = bytes.subspan(size);
  }
}

}  // namespace dpar

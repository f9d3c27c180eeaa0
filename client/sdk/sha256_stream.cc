#include "client/sdk/sha256_stream.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"

namespace dpar {

struct Sha256Stream::State {
  State() { EVP_DigestInit_ex(context, EVP_sha256(), nullptr); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256Stream::Sha256Stream() : state_(std::make_unique<State>()) {}
Sha256Stream::Sha256Stream(Sha256Stream&& other) noexcept = default;
Sha256Stream& Sha256Stream::operator=(Sha256Stream&& other) noexcept = default;
Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::Add(absl::string_view piece) { EVP_DigestUpdate(state_->context, piece.data(), piece.size()); }

std::string Sha256Stream::Hex() {
  std::string bytes(static_cast<size_t>(EVP_MD_size(EVP_sha256())), '\0');
  EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(bytes.data()), nullptr);
  return absl::BytesToHexString(bytes);
}

}  // namespace dpar

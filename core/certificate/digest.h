// SHA-256 and HMAC-SHA-256, and strict hex and base64.
#ifndef DPAR_CORE_CERTIFICATE_DIGEST_H_
#define DPAR_CORE_CERTIFICATE_DIGEST_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/stage.h"

struct evp_mac_ctx_st;  // OpenSSL's, whose headers stay out of here
struct evp_md_ctx_st;

namespace dpar {

std::string Sha256Hex(absl::string_view bytes);  // lower-case

// NOT_FOUND or UNAVAILABLE when the file cannot be read, CANCELLED once `report` says no.
absl::StatusOr<std::string> Sha256File(const std::string& path, const StageReport& report = AlwaysGoOn);

class Sha256Stream {
 public:
  Sha256Stream();

  void Add(absl::string_view piece);
  std::string Hex();  // lower-case; once, after the last piece

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

class HmacSha256Stream {
 public:
  explicit HmacSha256Stream(absl::string_view key);

  void Add(std::span<const std::byte> piece);
  std::string Hex();  // lower-case; once, after the last piece

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};

std::string HmacSha256Hex(absl::string_view key, absl::string_view message);

// Standard base64 with padding. Decoding accepts exactly what encoding gives.
std::string Base64Encode(absl::string_view bytes);
absl::StatusOr<std::string> Base64Decode(absl::string_view text);

absl::StatusOr<std::string> HexDecode(absl::string_view text);  // lower-case, even length

// Equal, in time that depends on the lengths only.
bool ConstantTimeEqual(absl::string_view a, absl::string_view b);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_DIGEST_H_

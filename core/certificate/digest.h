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

// Of OpenSSL, whose headers stay out of here.
struct evp_mac_ctx_st;
struct evp_md_ctx_st;

namespace dpar {

// Lower-case hex of SHA-256.
std::string Sha256Hex(absl::string_view bytes);

// Lower-case hex of the SHA-256 of a file's bytes. NOT_FOUND or UNAVAILABLE when it cannot be read, CANCELLED once
// `report` says no.
absl::StatusOr<std::string> Sha256File(const std::string& path, const StageReport& report = AlwaysGoOn);

// SHA-256 of bytes that come in pieces.
class Sha256Stream {
 public:
  Sha256Stream();

  void Add(absl::string_view piece);
  // Lower-case hex. Once, after the last piece.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// HMAC-SHA-256 under `key` (raw bytes) of bytes that come in pieces.
class HmacSha256Stream {
 public:
  explicit HmacSha256Stream(absl::string_view key);

  void Add(std::span<const std::byte> piece);
  // Lower-case hex. Once, after the last piece.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};

// The same of one message.
std::string HmacSha256Hex(absl::string_view key, absl::string_view message);

// Standard base64 with padding. Decoding accepts exactly what encoding gives.
std::string Base64Encode(absl::string_view bytes);
absl::StatusOr<std::string> Base64Decode(absl::string_view text);

// Lower-case hex, even length.
absl::StatusOr<std::string> HexDecode(absl::string_view text);

// Equal, in time that depends on the lengths only.
bool ConstantTimeEqual(absl::string_view a, absl::string_view b);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_DIGEST_H_

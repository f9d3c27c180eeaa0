#include "core/certificate/digest.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {
namespace {

constexpr size_t kSha256Bytes = 32;
constexpr size_t kFileChunkBytes = size_t{1} << 16;

using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

// SHA-256 fails only when memory is exhausted or the cryptographic library is broken; no digest is better than a wrong
// one.
void Require(bool succeeded) {
  if (!succeeded) {
    std::abort();
  }
}

// Looked up once: EVP_sha256() has the library look for its implementation whenever a digest begins.
const EVP_MD* Sha256() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Require(algorithm != nullptr);
  return algorithm;
}

std::string HexOf(const unsigned char* bytes) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), kSha256Bytes));
}

absl::Status UnreadableFile(const std::string& path, int error) {
  if (error == ENOENT) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, absl::StrCat("there is no file ", path),
                     {{"resource", path}});
  }
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, absl::StrCat("cannot read ", path),
                   {{"resource", path}});
}

}  // namespace

std::string Sha256Hex(absl::string_view bytes) {
  std::array<unsigned char, kSha256Bytes> digest{};
  Require(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, Sha256(), nullptr) == 1);
  return HexOf(digest.data());
}

absl::StatusOr<std::string> Sha256File(const std::string& path, const StageReport& report) {
  const File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  struct stat facts = {};
  if (file == nullptr || fstat(fileno(file.get()), &facts) != 0) {
    return UnreadableFile(path, errno);
  }
  const auto total = static_cast<double>(std::max<off_t>(facts.st_size, 1));
  double done = 0;
  const DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  Require(context != nullptr && EVP_DigestInit_ex(context.get(), Sha256(), nullptr) == 1);
  std::string chunk(kFileChunkBytes, '\0');
  size_t size = 0;
  while ((size = std::fread(chunk.data(), 1, chunk.size(), file.get())) > 0) {
    Require(EVP_DigestUpdate(context.get(), chunk.data(), size) == 1);
    done += static_cast<double>(size);
    if (!report(std::min(1.0, done / total))) {
      return absl::CancelledError("the digest of a file was stopped");
    }
  }
  if (std::ferror(file.get()) != 0) {
    return UnreadableFile(path, EIO);
  }
  std::array<unsigned char, kSha256Bytes> digest{};
  Require(EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  return HexOf(digest.data());
}

std::string HmacSha256Hex(absl::string_view key, absl::string_view message) {
  std::array<unsigned char, kSha256Bytes> digest{};
  Require(HMAC(Sha256(), key.data(), static_cast<int>(key.size()),
               reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(),
               nullptr) != nullptr);
  return HexOf(digest.data());
}

struct HmacSha256Stream::State {
  using Mac = std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)>;
  using Context = std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)>;
  Mac mac{EVP_MAC_fetch(nullptr, "HMAC", nullptr), &EVP_MAC_free};
  Context context{EVP_MAC_CTX_new(mac.get()), &EVP_MAC_CTX_free};
};

HmacSha256Stream::HmacSha256Stream(absl::string_view key) : state_(std::make_unique<State>()) {
  std::string digest_name = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest_name.data(), 0), OSSL_PARAM_construct_end()};
  Require(state_->context != nullptr &&
          EVP_MAC_init(state_->context.get(), reinterpret_cast<const unsigned char*>(key.data()), key.size(),
                       parameters.data()) == 1);
}

HmacSha256Stream::HmacSha256Stream(HmacSha256Stream&& other) noexcept = default;
HmacSha256Stream& HmacSha256Stream::operator=(HmacSha256Stream&& other) noexcept = default;
HmacSha256Stream::~HmacSha256Stream() = default;

void HmacSha256Stream::Add(std::span<const std::byte> piece) {
  Require(EVP_MAC_update(state_->context.get(), reinterpret_cast<const unsigned char*>(piece.data()), piece.size()) ==
          1);
}

std::string HmacSha256Stream::Hex() {
  std::array<unsigned char, kSha256Bytes> digest{};
  size_t length = 0;
  Require(EVP_MAC_final(state_->context.get(), digest.data(), &length, digest.size()) == 1 && length == kSha256Bytes);
  return HexOf(digest.data());
}

std::string Base64Encode(absl::string_view bytes) { return absl::Base64Escape(bytes); }

absl::StatusOr<std::string> Base64Decode(absl::string_view text) {
  std::string bytes;
  // Abseil forgives spaces, missing padding and stray bits; encoding again does not.
  if (!absl::Base64Unescape(text, &bytes) || Base64Encode(bytes) != text) {
    return InvalidField("base64", "not standard base64 with padding");
  }
  return bytes;
}

absl::StatusOr<std::string> HexDecode(absl::string_view text) {
  const bool valid = text.size() % 2 == 0 && std::all_of(text.begin(), text.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                     });
  if (!valid) {
    return InvalidField("hex", "not an even number of digits 0-9 and a-f");
  }
  return absl::HexStringToBytes(text);
}

bool ConstantTimeEqual(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace dpar

#include "core/certificate/digest.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {
namespace {

constexpr size_t kSha256Bytes = 32;
constexpr size_t kFileChunkBytes = size_t{1} << 16;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// SHA-256 fails only without memory or with a broken library; no digest is better than a wrong one.
void Require(bool succeeded) {
  if (!succeeded) {
    std::abort();
  }
}

// Looked up once: EVP_sha256() searches for its implementation at every digest.
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
  Sha256Stream stream;
  stream.Add(bytes);
  return stream.Hex();
}

Sha256Stream::Sha256Stream() : context_(EVP_MD_CTX_new()) {
  Require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), Sha256(), nullptr) == 1);
}

void Sha256Stream::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

void Sha256Stream::Add(absl::string_view piece) {
  Require(EVP_DigestUpdate(context_.get(), piece.data(), piece.size()) == 1);
}

std::string Sha256Stream::Hex() {
  std::array<unsigned char, kSha256Bytes> digest{};
  Require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  return HexOf(digest.data());
}

absl::StatusOr<std::string> Sha256File(const std::string& path, const StageReport& report) {
  const File file(std::fopen(path.c_str(), "rb"));
  struct stat facts = {};
  if (file == nullptr || fstat(fileno(file.get()), &facts) != 0) {
    return UnreadableFile(path, errno);
  }
  const auto total = static_cast<double>(std::max<off_t>(facts.st_size, 1));
  double done = 0;
  Sha256Stream stream;
  std::string chunk(kFileChunkBytes, '\0');
  size_t size = 0;
  while ((size = std::fread(chunk.data(), 1, chunk.size(), file.get())) > 0) {
    stream.Add(absl::string_view(chunk).substr(0, size));
    done += static_cast<double>(size);
    if (!report(std::min(1.0, done / total))) {
      return absl::CancelledError("the digest of a file was stopped");
    }
  }
  if (std::ferror(file.get()) != 0) {
    return UnreadableFile(path, EIO);
  }
  return stream.Hex();
}

std::string HmacSha256Hex(absl::string_view key, absl::string_view message) {
  HmacSha256Stream stream(key);
  stream.Add(std::as_bytes(std::span(message)));
  return stream.Hex();
}

HmacSha256Stream::HmacSha256Stream(absl::string_view key) {
  const std::unique_ptr<EVP_MAC, void (*)(EVP_MAC*)> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr), &EVP_MAC_free);
  context_.reset(EVP_MAC_CTX_new(mac.get()));
  std::string digest_name = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest_name.data(), 0), OSSL_PARAM_construct_end()};
  Require(context_ != nullptr && EVP_MAC_init(context_.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                              key.size(), parameters.data()) == 1);
}

void HmacSha256Stream::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

void HmacSha256Stream::Add(std::span<const std::byte> piece) {
  Require(EVP_MAC_update(context_.get(), reinterpret_cast<const unsigned char*>(piece.data()), piece.size()) == 1);
}

std::string HmacSha256Stream::Hex() {
  std::array<unsigned char, kSha256Bytes> digest{};
  size_t length = 0;
  Require(EVP_MAC_final(context_.get(), digest.data(), &length, digest.size()) == 1 && length == kSha256Bytes);
  return HexOf(digest.data());
}

std::string Base64Encode(absl::string_view bytes) { return absl::Base64Escape(bytes); }

absl::StatusOr<std::string> Base64Decode(absl::string_view text) {
  std::string bytes;
  // Abseil forgives spaces, missing padding and stray bits.
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
  // Abseil's function for this differs between the releases that we build with.
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned char byte = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

bool ConstantTimeEqual(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace dpar

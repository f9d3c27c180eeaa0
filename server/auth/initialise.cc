#include "server/auth/initialise.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/signing_key.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/auth/signing_keys.h"
#include "server/auth/tls.h"
#include "server/auth/token.h"
#include "server/files.h"
#include "server/store/read_from.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

constexpr unsigned kSecretMode = 0600;
constexpr unsigned kPublicMode = 0644;
constexpr int64_t kTokenPage = 100;

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::Status Write(const std::string& path, absl::string_view bytes, unsigned mode, MadeFiles& made) {
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(path));
  DPAR_RETURN_IF_ERROR(WriteFileDurably(path, bytes, mode));
  made.push_back(path);
  return absl::OkStatus();
}

absl::Status Missing(const std::string& path, absl::string_view advice) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, absl::StrCat(path, " is missing. ", advice),
                   {{"resource", path}});
}

// The pair, if both files exist and match. The key is written first, so a crash leaves a key without certificate.
absl::StatusOr<std::optional<CertifiedKey>> ReadPair(const std::string& certificate_path, const std::string& key_path) {
  if (!Exists(certificate_path) || !Exists(key_path)) {
    return std::optional<CertifiedKey>();
  }
  CertifiedKey pair;
  DPAR_ASSIGN_OR_RETURN(pair.certificate, ReadWholeFile(certificate_path));
  DPAR_ASSIGN_OR_RETURN(pair.key, ReadWholeFile(key_path));
  if (!KeyMatches(pair)) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                     absl::StrCat(key_path, " is not the key of ", certificate_path, "; restore the right one"),
                     {{"resource", key_path}});
  }
  return std::optional<CertifiedKey>(std::move(pair));
}

absl::Status WritePair(const CertifiedKey& pair, const std::string& certificate_path, const std::string& key_path,
                       MadeFiles& made) {
  DPAR_RETURN_IF_ERROR(Write(key_path, pair.key, kSecretMode, made));
  return Write(certificate_path, pair.certificate, kPublicMode, made);
}

absl::StatusOr<CertifiedKey> Authority(const DataDirectory& directory, absl::Time now, MadeFiles& made) {
  DPAR_ASSIGN_OR_RETURN(std::optional<CertifiedKey> authority, ReadPair(directory.CaCertificate(), directory.CaKey()));
  if (authority.has_value()) {
    return *std::move(authority);
  }
  if (Exists(directory.CaCertificate())) {
    return Missing(directory.CaKey(),
                   absl::StrCat("It is needed to sign a new server certificate. Restore it, or remove ",
                                directory.CaCertificate(), " to make a new authority, which clients must then trust"));
  }
  DPAR_ASSIGN_OR_RETURN(const CertifiedKey fresh, MakeCertificateAuthority(now));
  DPAR_RETURN_IF_ERROR(WritePair(fresh, directory.CaCertificate(), directory.CaKey(), made));
  return fresh;
}

absl::Status InitialiseTls(const DataDirectory& directory, const std::vector<std::string>& tls_names, absl::Time now,
                           MadeFiles& made) {
  DPAR_ASSIGN_OR_RETURN(const std::optional<CertifiedKey> server,
                        ReadPair(directory.ServerCertificate(), directory.ServerKey()));
  // The authority's key may be kept elsewhere once the server has its certificate.
  if (server.has_value() && Exists(directory.CaCertificate())) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const CertifiedKey authority, Authority(directory, now, made));
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& name : tls_names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  DPAR_ASSIGN_OR_RETURN(const CertifiedKey fresh, MakeServerCertificate(authority, names, now));
  // If this run is cut short, a certificate whose key is gone must not meet a new key.
  DPAR_RETURN_IF_ERROR(RemoveTree(directory.ServerCertificate()));
  return WritePair(fresh, directory.ServerCertificate(), directory.ServerKey(), made);
}

absl::Status InitialiseSigningKey(const DataDirectory& directory, MadeFiles& made) {
  if (!Exists(directory.SigningKey())) {
    if (Exists(directory.SigningPublicKey())) {
      return Missing(directory.SigningKey(), "Certificates were signed with it; restore it from a backup");
    }
    DPAR_ASSIGN_OR_RETURN(const SigningKey key, SigningKey::Generate());
    DPAR_RETURN_IF_ERROR(Write(directory.SigningKey(), key.private_pem(), kSecretMode, made));
  }
  if (Exists(directory.SigningPublicKey())) {
    DPAR_ASSIGN_OR_RETURN(const bool repaired, RepairPublicKey(directory));
    if (repaired) {
      made.push_back(directory.SigningPublicKey());
    }
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const SigningKey key, ReadSigningKey(directory));
  return Write(directory.SigningPublicKey(), key.verifying_key().pem(), kPublicMode, made);
}

absl::StatusOr<bool> HasLiveOperator(Transaction& transaction, absl::Time now) {
  std::string page_token;
  do {
    DPAR_ASSIGN_OR_RETURN(const TokenPage page,
                          ListTokens(transaction, std::string(kOperatorParent), kTokenPage, page_token));
    if (std::any_of(page.tokens.begin(), page.tokens.end(), [&](const v1::Token& t) { return IsLive(t, now); })) {
      return true;
    }
    page_token = page.next_page_token;
  } while (!page_token.empty());
  return false;
}

// The token in the file, unless the store knows its id: then it was revoked or has expired.
absl::StatusOr<std::optional<BearerToken>> UninsertedToken(const DataDirectory& directory, Database& database) {
  if (!Exists(directory.OperatorToken())) {
    return std::optional<BearerToken>();
  }
  DPAR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(directory.OperatorToken()));
  std::optional<BearerToken> bearer = ParseBearerToken(absl::StripAsciiWhitespace(text));
  if (!bearer.has_value()) {
    return bearer;
  }
  const absl::Status known =
      database.Read([&](Transaction& transaction) { return GetToken(transaction, bearer->id).status(); });
  if (known.ok()) {
    return std::optional<BearerToken>();
  }
  if (!absl::IsNotFound(known)) {
    return known;
  }
  return bearer;
}

// The file is written before the store, so after a crash between the two the next run continues from the file.
absl::Status InitialiseOperator(const DataDirectory& directory, Database& database, absl::Time now,
                                RandomSource& random, MadeFiles& made) {
  DPAR_ASSIGN_OR_RETURN(
      const bool live, ReadFrom(database, [&](Transaction& transaction) { return HasLiveOperator(transaction, now); }));
  if (live) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(std::optional<BearerToken> bearer, UninsertedToken(directory, database));
  if (!bearer.has_value()) {
    bearer = MakeBearerToken(random);
    DPAR_RETURN_IF_ERROR(
        Write(directory.OperatorToken(), absl::StrCat(FormatBearerToken(*bearer), "\n"), kSecretMode, made));
  }
  v1::Token wanted;
  wanted.set_role(v1::OPERATOR);
  wanted.set_purpose("made by dpard init");
  const StoredToken stored = SealToken(*bearer, kOperatorParent, wanted, now, random);
  return database.Write([&](Transaction& transaction) { return InsertToken(transaction, stored); });
}

}  // namespace

absl::StatusOr<MadeFiles> Initialise(const DataDirectory& directory, Database& database,
                                     const std::optional<std::vector<std::string>>& tls_names, absl::Time now,
                                     RandomSource& random) {
  MadeFiles made;
  if (tls_names.has_value()) {
    DPAR_RETURN_IF_ERROR(InitialiseTls(directory, *tls_names, now, made));
  }
  DPAR_RETURN_IF_ERROR(InitialiseSigningKey(directory, made));
  DPAR_RETURN_IF_ERROR(InitialiseOperator(directory, database, now, random, made));
  return made;
}

}  // namespace dpar

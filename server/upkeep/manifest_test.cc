#include "server/upkeep/manifest.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/certificate/digest.h"

namespace dpar {
namespace {

Manifest Two() {
  return {"2026-11-17T20:00:00Z",
          "dpard 1.0.0",
          {{"dpar.sqlite", 4096, std::string(64, '1')}, {"keys/signing key", 12, std::string(64, '2')}}};
}
std::string Sealed(const std::string& body) { return absl::StrCat(body, "sha256 ", Sha256Hex(body), "\n"); }

TEST(ManifestTest, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(ParseManifest(FormatManifest(Two())).value(), Two());
  EXPECT_FALSE(Two().is_postgres());
  Manifest dump = Two();
  dump.files = {{"store.pgdump", 1, std::string(64, '1')}};
  EXPECT_TRUE(ParseManifest(FormatManifest(dump)).value().is_postgres());
}

TEST(ManifestTest, EveryTextThatWasCutShortOrChangedIsRefused) {
  const std::string text = FormatManifest(Two());
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(ParseManifest(text.substr(0, i)).status().code(), absl::StatusCode::kDataLoss) << i;
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(ParseManifest(changed).status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST(ManifestTest, ATextWithARightDigestThatNoBackupHasIsRefused) {
  const std::string text = FormatManifest(Two());
  const std::string body = text.substr(0, text.rfind("sha256 "));
  ASSERT_TRUE(ParseManifest(Sealed(body)).ok());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"dpar-backup 1", "dpar-backup 2"},
                                                                                 {"keys/signing key", "../signing.key"},
                                                                                 {"keys/signing key", "/etc/passwd"},
                                                                                 {"keys/signing key", "keys/./x"},
                                                                                 {"keys/signing key", "keys//x"},
                                                                                 {"keys/signing key", ".hidden"},
                                                                                 {"keys/signing key", "dpar.sqlite"},
                                                                                 {"keys/signing key", "a"},
                                                                                 {"keys/signing key", "store.pgdump"},
                                                                                 {"dpar.sqlite", "dpar.other"},
                                                                                 {" 4096 ", " -1 "},
                                                                                 {" 4096 ", " x "},
                                                                                 {" 4096 ", " 04096 "},
                                                                                 {"file 1", "file g"},
                                                                                 {"made ", "mad "}}) {
    const std::string spoilt = absl::StrReplaceAll(body, {{from, to}});
    ASSERT_NE(spoilt, body) << from;
    EXPECT_EQ(ParseManifest(Sealed(spoilt)).status().code(), absl::StatusCode::kDataLoss) << from << " as " << to;
  }
}

}  // namespace
}  // namespace dpar

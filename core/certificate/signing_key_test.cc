#include "core/certificate/signing_key.h"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Pem(const std::string& label, const std::string& der) {
  return absl::StrCat("-----BEGIN ", label, "-----\n", Base64Encode(der), "\n-----END ", label, "-----\n");
}

// RFC 8410: a PKCS#8 private key and a SubjectPublicKeyInfo are these prefixes and 32 bytes.
std::string PrivatePem(const std::string& seed_hex) {
  return Pem("PRIVATE KEY", HexDecode(absl::StrCat("302e020100300506032b657004220420", seed_hex)).value());
}

std::string PublicDer(const std::string& key_hex) {
  return HexDecode(absl::StrCat("302a300506032b6570032100", key_hex)).value();
}

std::string PublicPem(const std::string& key_hex) { return Pem("PUBLIC KEY", PublicDer(key_hex)); }

// RFC 8032, section 7.1, tests 1 to 3 and SHA(abc).
struct Vector {
  std::string seed, public_key, message, signature;
};

const Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
     "655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
     "b00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28d"
     "c027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e"
     "2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17a"
     "d9bef1177331a704"},
};

TEST(SigningKeyTest, AgreesWithRfc8032) {
  for (const Vector& vector : kVectors) {
    const SigningKey key = SigningKey::FromPem(PrivatePem(vector.seed)).value();
    const std::string message = HexDecode(vector.message).value();
    const std::string signature = HexDecode(vector.signature).value();
    EXPECT_EQ(key.Sign(message).value(), signature);
    EXPECT_TRUE(key.verifying_key().Verify(message, signature));
    EXPECT_TRUE(VerifyingKey::FromPem(PublicPem(vector.public_key)).value().Verify(message, signature));
    EXPECT_EQ(key.verifying_key().key_id(), Sha256Hex(PublicDer(vector.public_key)));
    EXPECT_EQ(key.verifying_key().pem(), PublicPem(vector.public_key));
    EXPECT_EQ(key.private_pem(), PrivatePem(vector.seed));
  }
}

TEST(SigningKeyTest, GeneratesADifferentKeyEachTime) {
  const SigningKey first = SigningKey::Generate().value();
  const SigningKey second = SigningKey::Generate().value();
  EXPECT_NE(first.verifying_key().key_id(), second.verifying_key().key_id());
  const std::string signature = first.Sign("message").value();
  EXPECT_EQ(signature.size(), 64U);
  EXPECT_TRUE(first.verifying_key().Verify("message", signature));
  EXPECT_FALSE(second.verifying_key().Verify("message", signature));
}

TEST(SigningKeyTest, ComesBackFromItsPem) {
  const SigningKey key = SigningKey::Generate().value();
  EXPECT_THAT(key.private_pem(), StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  const SigningKey again = SigningKey::FromPem(key.private_pem()).value();
  EXPECT_EQ(again.verifying_key().key_id(), key.verifying_key().key_id());
  EXPECT_EQ(again.Sign("message").value(), key.Sign("message").value());
}

TEST(SigningKeyTest, SignsForManyThreadsAtOnceAndTheSameEachTime) {
  constexpr int kThreads = 4;
  constexpr int kSignatures = 50;
  const SigningKey key = SigningKey::Generate().value();
  std::array<int, kThreads> wrong{};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&key, &wrong, i] {
      for (int k = 0; k < kSignatures; ++k) {
        const std::string message = absl::StrCat(i, " ", k);
        const std::string signature = key.Sign(message).value();
        const bool right = key.verifying_key().Verify(message, signature) && key.Sign(message).value() == signature;
        wrong.at(static_cast<size_t>(i)) += right ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(wrong, Each(0));
}

TEST(VerifyingKeyTest, RefusesEveryAlteredSignatureAndMessage) {
  const SigningKey key = SigningKey::Generate().value();
  const std::string signature = key.Sign("message").value();
  for (size_t i = 0; i < signature.size(); ++i) {
    std::string altered = signature;
    altered[i] = static_cast<char>(altered[i] ^ 1);
    EXPECT_FALSE(key.verifying_key().Verify("message", altered)) << i;
  }
  EXPECT_FALSE(key.verifying_key().Verify("messagf", signature));
  EXPECT_FALSE(key.verifying_key().Verify("message", ""));
  EXPECT_FALSE(key.verifying_key().Verify("message", signature.substr(0, 63)));
  EXPECT_FALSE(key.verifying_key().Verify("message", signature + "x"));
}

TEST(VerifyingKeyTest, RefusesWhatIsNotAnEd25519Key) {
  const std::string private_pem = SigningKey::Generate().value().private_pem();
  // An X25519 key: the same shape, another algorithm.
  const std::string x25519 = Pem("PUBLIC KEY", HexDecode("302a300506032b656e032100" + kVectors[0].public_key).value());
  for (const std::string& pem : {std::string(), std::string("key"), private_pem, x25519, std::string(20000, 'a'),
                                 PublicPem(kVectors[0].public_key).substr(0, 70)}) {
    const absl::Status status = VerifyingKey::FromPem(pem).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << pem;
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "public_key");
  }
}

TEST(SigningKeyTest, RefusesWhatIsNotAnUnencryptedEd25519Key) {
  const std::string x25519 =
      Pem("PRIVATE KEY", HexDecode("302e020100300506032b656e04220420" + kVectors[0].seed).value());
  const std::string encrypted = Pem("ENCRYPTED PRIVATE KEY", HexDecode("3003020100").value());
  for (const std::string& pem :
       {std::string(), PublicPem(kVectors[0].public_key), x25519, encrypted, std::string(20000, 'a')}) {
    const absl::Status status = SigningKey::FromPem(pem).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << pem;
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "private_key");
  }
}

TEST(SigningKeyTest, NeverRepeatsAKeyInAnError) {
  const std::string damaged = absl::StrCat("-----BEGIN PRIVATE KEY-----\nsecret\n");
  EXPECT_THAT(std::string(SigningKey::FromPem(damaged).status().message()), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace dpar

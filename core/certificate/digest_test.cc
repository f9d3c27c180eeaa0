#include "core/certificate/digest.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

constexpr absl::string_view kSha256OfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::filesystem::path TemporaryFile(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / (name + std::to_string(getpid()));
}

TEST(Sha256Test, AgreesWithPublishedVectors) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), kSha256OfAbc);
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, ReadsZeroBytes) { EXPECT_NE(Sha256Hex(std::string("a\0b", 3)), Sha256Hex("a")); }

TEST(Sha256FileTest, IsTheDigestOfTheFilesBytes) {
  const auto path = TemporaryFile("digest_abc");
  std::ofstream(path) << "abc";
  EXPECT_EQ(Sha256File(path.string()).value(), kSha256OfAbc);
  std::ofstream(path) << std::string(1000000, 'a');
  EXPECT_EQ(Sha256File(path.string()).value(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  std::filesystem::remove(path);
}

TEST(Sha256FileTest, TellsHowFarItIsAndStopsWhenItIsToldTo) {
  const std::string path = ::testing::TempDir() + "/digest_test_large_file";
  const std::string bytes(1 << 20, 'x');
  std::ofstream(path, std::ios::binary) << bytes;
  std::vector<double> told;
  const auto digest = Sha256File(path, [&told](double fraction) {
    told.push_back(fraction);
    return true;
  });
  EXPECT_EQ(digest.value(), Sha256Hex(bytes));
  EXPECT_EQ(told.front(), 1.0 / 16);
  EXPECT_EQ(told.back(), 1);
  EXPECT_EQ(told.size(), 16U);
  const auto stopped = Sha256File(path, [](double fraction) { return fraction < 0.5; });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  std::filesystem::remove(path);
}

TEST(Sha256FileTest, SaysWhenThereIsNoFile) {
  EXPECT_EQ(Sha256File("/nonexistent/model.npz").status().code(), absl::StatusCode::kNotFound);
}

TEST(Sha256FileTest, SaysWhenItCannotBeRead) {
  EXPECT_EQ(Sha256File("/").status().code(), absl::StatusCode::kUnavailable);
}

TEST(HmacTest, AgreesWithRfc4231) {
  EXPECT_EQ(HmacSha256Hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(HmacSha256Hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HmacSha256Hex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacTest, AMessageInPiecesHasTheDigestOfTheWhole) {
  const std::string message = "what do ya want for nothing?";
  for (size_t cut = 0; cut <= message.size(); ++cut) {
    HmacSha256Stream stream("Jefe");
    stream.Add(std::as_bytes(std::span(message).first(cut)));
    stream.Add({});
    stream.Add(std::as_bytes(std::span(message).subspan(cut)));
    EXPECT_EQ(stream.Hex(), HmacSha256Hex("Jefe", message)) << cut;
  }
  EXPECT_EQ(HmacSha256Stream("key").Hex(), HmacSha256Hex("key", ""));
}

TEST(Base64Test, AgreesWithRfc4648BothWays) {
  const std::pair<std::string, std::string> kVectors[] = {{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                                                          {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(Base64Encode(bytes), text);
    EXPECT_EQ(Base64Decode(text).value(), bytes);
  }
}

TEST(Base64Test, RefusesEveryOtherSpelling) {
  for (const char* text :
       {"Zg", "Zg=", "Zg===", "Zh==", "Zm9v\n", " Zm9v", "Zm 9v", "-_8=", "Zm9v====", "=", "Z", "*"}) {
    EXPECT_EQ(Base64Decode(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(HexTest, DecodesLowerCaseOnly) {
  EXPECT_EQ(HexDecode("").value(), "");
  EXPECT_EQ(HexDecode("00ff10").value(), std::string("\x00\xff\x10", 3));
  for (const char* text : {"0", "0G", "AB", "0x", " 0", "abc"}) {
    EXPECT_EQ(HexDecode(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ConstantTimeEqualTest, ComparesContentAndLength) {
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_TRUE(ConstantTimeEqual("secret", "secret"));
  EXPECT_FALSE(ConstantTimeEqual("secret", "secreu"));
  EXPECT_FALSE(ConstantTimeEqual("secret", "secre"));
  EXPECT_FALSE(ConstantTimeEqual("", "s"));
}

}  // namespace
}  // namespace dpar

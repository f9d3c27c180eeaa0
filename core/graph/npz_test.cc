#include "core/graph/npz.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>

#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::BytesOf;
using ::dpar::testing::RawNpy;
using ::dpar::testing::RawNpyOf;
using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::VectorArray;
using ::dpar::testing::WriteArrays;
using ::dpar::testing::WriteBytes;
using ::dpar::testing::WriteRawZip;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBadFile[] = "INVALID_ARGUMENT INVALID_GRAPH array=file";
constexpr char kBadArray[] = "INVALID_ARGUMENT INVALID_GRAPH array=x";
constexpr size_t kMebibyte = size_t{1} << 20;

// What reading array x of this one-entry zip gives.
absl::StatusOr<NpyArray> ReadOne(const std::string& npy, const NpzLimits& limits = {}) {
  const std::string path = TestPath("one.npz");
  WriteRawZip(path, {{"x.npy", npy}});
  absl::StatusOr<NpzFile> file = NpzFile::Open(path, limits);
  return file.ok() ? file->ReadArray("x") : file.status();
}

absl::Status OpenBytes(const std::string& bytes) {
  const std::string path = TestPath("bytes.npz");
  WriteBytes(path, bytes);
  return NpzFile::Open(path, {}).status();
}

template <typename Entry>
std::vector<Entry> Entries(const absl::StatusOr<NpyArray>& array) {
  EXPECT_TRUE(array.ok()) << array.status();
  return array.ok() ? std::get<std::vector<Entry>>(array->data) : std::vector<Entry>();
}

void ReplaceAll(std::string& bytes, const std::string& from, const std::string& to) {
  for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1)) {
    bytes.replace(at, from.size(), to);
  }
}

TEST(NpzFileTest, GivesBackWhatWasWritten) {
  const std::string path = TestPath("all.npz");
  const std::map<std::string, NpyArray> arrays = {{"i8", VectorArray(std::vector<int64_t>{-1, 5, int64_t{1} << 60})},
                                                  {"i4", NpyArray{{2, 2}, std::vector<int32_t>{1, 2, 3, 4}}},
                                                  {"f4", VectorArray(std::vector<float>{0.5F, -0.0F})},
                                                  {"f8", NpyArray{{}, std::vector<double>{1e300}}},
                                                  {"text", NpyArray{{}, std::string("{\"a\": \"\xc3\xa9\"}")}},
                                                  {"empty_text", NpyArray{{}, std::string()}},
                                                  {"empty", VectorArray(std::vector<float>{})}};
  ASSERT_TRUE(WriteArrays(path, arrays).ok());
  absl::StatusOr<NpzFile> file = NpzFile::Open(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto& [name, expected] : arrays) {
    EXPECT_TRUE(file->Contains(name));
    const auto array = file->ReadArray(name);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->shape, expected.shape) << name;
    EXPECT_EQ(array->data, expected.data) << name;
    EXPECT_EQ(*file->ReadShape(name), expected.shape) << name;
  }
  EXPECT_FALSE(file->Contains("other"));
  EXPECT_EQ(Summary(file->ReadArray("other").status()), "INVALID_ARGUMENT INVALID_GRAPH array=other");
}

TEST(NpzFileTest, ReadsEverySupportedType) {
  EXPECT_THAT(Entries<int32_t>(ReadOne(RawNpyOf("|i1", "(2,)", BytesOf<int8_t>({-128, 127})))), ElementsAre(-128, 127));
  EXPECT_THAT(Entries<int32_t>(ReadOne(RawNpyOf("<i2", "(1,)", BytesOf<int16_t>({-300})))), ElementsAre(-300));
  EXPECT_THAT(Entries<int32_t>(ReadOne(RawNpyOf("<i4", "(1,)", BytesOf<int32_t>({-70000})))), ElementsAre(-70000));
  EXPECT_THAT(Entries<int64_t>(ReadOne(RawNpyOf("<i8", "(1,)", BytesOf<int64_t>({-5})))), ElementsAre(-5));
  EXPECT_THAT(Entries<int32_t>(ReadOne(RawNpyOf("|u1", "(1,)", BytesOf<uint8_t>({255})))), ElementsAre(255));
  EXPECT_THAT(Entries<int32_t>(ReadOne(RawNpyOf("<u2", "(1,)", BytesOf<uint16_t>({65535})))), ElementsAre(65535));
  EXPECT_THAT(Entries<int64_t>(ReadOne(RawNpyOf("<u4", "(1,)", BytesOf<uint32_t>({4294967295U})))),
              ElementsAre(4294967295));
  EXPECT_THAT(Entries<int64_t>(ReadOne(RawNpyOf("<u8", "(1,)", BytesOf<uint64_t>({7})))), ElementsAre(7));
  EXPECT_THAT(Entries<int32_t>(ReadOne(RawNpyOf("|b1", "(2,)", BytesOf<uint8_t>({0, 1})))), ElementsAre(0, 1));
  EXPECT_THAT(Entries<float>(ReadOne(RawNpyOf("<f4", "(1,)", BytesOf<float>({2.5F})))), ElementsAre(2.5F));
  EXPECT_THAT(Entries<double>(ReadOne(RawNpyOf("<f8", "(1,)", BytesOf<double>({2.5})))), ElementsAre(2.5));
}

TEST(NpzFileTest, ReadsTheSameInChunksAsAtOnce) {
  std::vector<int64_t> wide(200'001);
  std::iota(wide.begin(), wide.end(), -7);
  std::vector<uint16_t> narrow(200'001);
  std::iota(narrow.begin(), narrow.end(), uint16_t{0});
  const std::string path = TestPath("chunks.npz");
  WriteRawZip(path, {{"wide.npy", RawNpyOf("<i8", "(200001,)", BytesOf(wide))},
                     {"narrow.npy", RawNpyOf("<u2", "(200001,)", BytesOf(narrow))}});
  auto file = NpzFile::Open(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<int64_t> seen;
  int chunks = 0;
  const auto keep = [&](int64_t position, const NpyChunk& chunk) {
    EXPECT_EQ(position, static_cast<int64_t>(seen.size()));
    ++chunks;
    if (const auto* entries = std::get_if<std::span<const int64_t>>(&chunk)) {
      seen.insert(seen.end(), entries->begin(), entries->end());
    } else {
      const auto& widened = std::get<std::span<const int32_t>>(chunk);
      seen.insert(seen.end(), widened.begin(), widened.end());
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(file->ReadChunks("wide", keep).ok());
  EXPECT_EQ(seen, wide);
  EXPECT_GT(chunks, 1);
  EXPECT_EQ(Entries<int64_t>(file->ReadArray("wide")), wide);
  seen.clear();
  ASSERT_TRUE(file->ReadChunks("narrow", keep).ok());
  EXPECT_EQ(seen, std::vector<int64_t>(narrow.begin(), narrow.end()));
}

TEST(NpzFileTest, ShowsAnEmptyArrayAndTextAsOneChunk) {
  const std::string path = TestPath("small.npz");
  ASSERT_TRUE(
      WriteArrays(path, {{"empty", VectorArray(std::vector<float>{})}, {"text", NpyArray{{}, std::string("a")}}}).ok());
  auto file = NpzFile::Open(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  int visits = 0;
  EXPECT_TRUE(file->ReadChunks("empty",
                               [&](int64_t position, const NpyChunk& chunk) {
                                 ++visits;
                                 EXPECT_EQ(position, 0);
                                 EXPECT_TRUE(std::get<std::span<const float>>(chunk).empty());
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_TRUE(file->ReadChunks("text",
                               [&](int64_t /*position*/, const NpyChunk& chunk) {
                                 ++visits;
                                 EXPECT_EQ(std::get<absl::string_view>(chunk), "a");
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_EQ(visits, 2);
}

TEST(NpzFileTest, StopsAtTheVisitorsFirstError) {
  const std::string path = TestPath("stop.npz");
  ASSERT_TRUE(WriteArrays(path, {{"x", VectorArray(std::vector<double>(200'000, 1.0))}}).ok());
  auto file = NpzFile::Open(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  int visits = 0;
  const absl::Status status = file->ReadChunks("x", [&](int64_t /*position*/, const NpyChunk& /*chunk*/) {
    ++visits;
    return absl::AbortedError("enough");
  });
  EXPECT_EQ(status, absl::AbortedError("enough"));
  EXPECT_EQ(visits, 1);
}

TEST(NpzFileTest, CountsAnArrayThatIsReadTwiceOnce) {
  const std::string path = TestPath("again.npz");
  WriteRawZip(path, {{"x.npy", RawNpyOf("<i4", "(1000,)", std::string(4000, '\0'))}});
  auto file = NpzFile::Open(path, NpzLimits{.max_total_bytes = 4000});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->ReadArray("x").ok());
  EXPECT_TRUE(file->ReadArray("x").ok());
}

TEST(NpzFileTest, ReadsTextOfBothKindsAsUtf8) {
  const auto wide = ReadOne(RawNpyOf("<U5", "()", BytesOf<uint32_t>({'a', 0xe9, 0x20ac, 0x1f600, 0})));
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(std::get<std::string>(wide->data), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  const auto narrow = ReadOne(RawNpyOf("|S4", "()", std::string("ab\0\0", 4)));
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(std::get<std::string>(narrow->data), "ab");
}

TEST(NpzFileTest, ReadsFormatVersions2And3AndNoOther) {
  const std::string version1 = RawNpyOf("<i4", "(1,)", BytesOf<int32_t>({9}));
  for (const char version : {'\2', '\3'}) {
    std::string npy = version1;
    npy[6] = version;
    npy.insert(10, 2, '\0');
    EXPECT_THAT(Entries<int32_t>(ReadOne(npy)), ElementsAre(9));
  }
  for (const char version : {'\0', '\4', '\xff'}) {
    std::string npy = version1;
    npy[6] = version;
    EXPECT_EQ(Summary(ReadOne(npy).status()), kBadArray);
  }
}

TEST(NpzFileTest, SaysWhenThereIsNoSuchFile) {
  EXPECT_EQ(Summary(NpzFile::Open("/nonexistent/a.npz", {}).status()),
            "NOT_FOUND RESOURCE_NOT_FOUND resource=/nonexistent/a.npz");
}

TEST(NpzFileTest, RefusesWhatIsNotARegularFileWithoutHanging) {
  EXPECT_EQ(Summary(NpzFile::Open(::testing::TempDir(), {}).status()), kBadFile);
  const std::string pipe = TestPath("pipe");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(Summary(NpzFile::Open(pipe, {}).status()), kBadFile);
}

TEST(NpzFileTest, RefusesWhatIsNotAZip) {
  for (const std::string& bytes : {std::string(), std::string("P"), std::string("node,label\n0,1\n"),
                                   std::string(200, '\0'), std::string("PK"), std::string("PK\3\4 and no more")}) {
    EXPECT_EQ(Summary(OpenBytes(bytes)), kBadFile);
  }
}

TEST(NpzFileTest, RefusesATruncatedZip) {
  const std::string path = TestPath("whole.npz");
  ASSERT_TRUE(WriteArrays(path, {{"x", VectorArray(std::vector<int32_t>(1000, 1))}}).ok());
  const std::string whole = ReadBytes(path);
  for (size_t length = 1; length < whole.size(); ++length) {
    EXPECT_EQ(Summary(OpenBytes(whole.substr(0, length))), kBadFile) << length;
  }
}

TEST(NpzFileTest, RefusesAZipBombBeforeTakingMemory) {
  const std::string bomb = RawNpyOf("<f4", "(16777216,)", std::string(64 * kMebibyte, '\0'));
  const auto array = ReadOne(bomb, NpzLimits{.max_array_bytes = static_cast<int64_t>(kMebibyte)});
  EXPECT_EQ(Summary(array.status()), kBadArray);
  EXPECT_THAT(std::string(array.status().message()), HasSubstr("larger than 1048576 bytes"));
}

TEST(NpzFileTest, CountsWidenedBytesAgainstTheLimit) {
  const std::string bytes = RawNpyOf("|i1", "(1048576,)", std::string(kMebibyte, '\0'));
  EXPECT_TRUE(ReadOne(bytes, NpzLimits{.max_array_bytes = 4 * static_cast<int64_t>(kMebibyte)}).ok());
  EXPECT_EQ(Summary(ReadOne(bytes, NpzLimits{.max_array_bytes = 4 * static_cast<int64_t>(kMebibyte) - 1}).status()),
            kBadArray);
}

TEST(NpzFileTest, RefusesArraysThatTogetherExceedTheTotal) {
  const std::string path = TestPath("two.npz");
  const std::string npy = RawNpyOf("<i4", "(1000,)", std::string(4000, '\0'));
  WriteRawZip(path, {{"x.npy", npy}, {"y.npy", npy}});
  auto file = NpzFile::Open(path, NpzLimits{.max_total_bytes = 7999});
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->ReadArray("x").ok());
  EXPECT_EQ(Summary(file->ReadArray("y").status()), "INVALID_ARGUMENT INVALID_GRAPH array=y");
}

TEST(NpzFileTest, RefusesAShapeThatClaimsMoreThanTheDirectory) {
  EXPECT_EQ(Summary(ReadOne(RawNpyOf("<f4", "(1000000000,)", "1234")).status()), kBadArray);
}

TEST(NpzFileTest, RefusesAShapeThatClaimsLessThanTheDirectory) {
  EXPECT_EQ(Summary(ReadOne(RawNpyOf("<f4", "(1,)", std::string(kMebibyte, '\0'))).status()), kBadArray);
}

// Writes `npy` and replaces its size by `claimed` in the central directory.
absl::Status ReadWithClaimedSize(const std::string& npy, uint32_t claimed) {
  const std::string path = TestPath("claim.npz");
  WriteRawZip(path, {{"x.npy", npy}});
  std::string bytes = ReadBytes(path);
  const size_t directory = bytes.rfind("PK\1\2");
  std::memcpy(bytes.data() + directory + 24, &claimed, sizeof(claimed));
  WriteBytes(path, bytes);
  auto file = NpzFile::Open(path, {});
  return file.ok() ? file->ReadArray("x").status() : file.status();
}

TEST(NpzFileTest, StopsReadingWhereTheHeaderSaysTheArrayEnds) {
  const std::string npy = RawNpyOf("<f4", "(2,)", std::string(64 * kMebibyte, '\0'));
  const auto header_bytes = static_cast<uint32_t>(npy.size() - 64 * kMebibyte);
  EXPECT_EQ(Summary(ReadWithClaimedSize(npy, header_bytes + 8)), kBadArray);
}

TEST(NpzFileTest, RefusesADirectorySizeThatDeflateCannotReach) {
  const std::string npy = RawNpyOf("<f4", "(1000000000,)", "1234");
  const auto header_bytes = static_cast<uint32_t>(npy.size() - 4);
  const absl::Status status = ReadWithClaimedSize(npy, header_bytes + 4'000'000'000U);
  EXPECT_EQ(Summary(status), kBadArray);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot hold"));
}

TEST(NpzFileTest, RefusesAZip64TrailerThatClaimsBillionsOfEntries) {
  std::string trailer64(56, '\0');
  std::memcpy(trailer64.data(), "PK\6\6", 4);
  const uint64_t rest = 44;
  const uint64_t entries = uint64_t{1} << 36;
  std::memcpy(trailer64.data() + 4, &rest, 8);
  std::memcpy(trailer64.data() + 24, &entries, 8);
  std::memcpy(trailer64.data() + 32, &entries, 8);
  std::string locator(20, '\0');
  std::memcpy(locator.data(), "PK\6\7", 4);
  locator[16] = 1;
  std::string trailer(22, '\0');
  std::memcpy(trailer.data(), "PK\5\6", 4);
  std::memset(trailer.data() + 8, 0xff, 12);
  const absl::Status status = OpenBytes(trailer64 + locator + trailer);
  EXPECT_EQ(Summary(status), kBadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("too many entries"));
}

TEST(NpzFileTest, RefusesMoreArraysThanTheLimit) {
  const std::string path = TestPath("many.npz");
  const std::string npy = RawNpyOf("|i1", "(0,)", "");
  WriteRawZip(path, {{"a.npy", npy}, {"b.npy", npy}, {"c.npy", npy}});
  EXPECT_TRUE(NpzFile::Open(path, NpzLimits{.max_arrays = 3}).ok());
  EXPECT_EQ(Summary(NpzFile::Open(path, NpzLimits{.max_arrays = 2}).status()), kBadFile);
}

TEST(NpzFileTest, RefusesADirectoryTooLargeForItsArrays) {
  const std::string path = TestPath("long.npz");
  WriteRawZip(path, {{std::string(10000, 'a') + ".npy", RawNpyOf("|i1", "(0,)", "")}});
  EXPECT_EQ(Summary(NpzFile::Open(path, NpzLimits{.max_arrays = 1}).status()), kBadFile);
}

TEST(NpzFileTest, RefusesOddEntryNamesByTheirPosition) {
  const std::string npy = RawNpyOf("|i1", "(0,)", "");
  for (const std::string& name :
       {std::string("/etc/passwd"), std::string("/x.npy"), std::string("../x.npy"), std::string("a/x.npy"),
        std::string("a\\x.npy"), std::string("x"), std::string(".npy"), std::string("x.npy\n"), std::string("x y.npy"),
        std::string("\xc3\xa9.npy"), std::string(200, 'x') + ".npy", std::string("..npy")}) {
    const std::string path = TestPath("odd.npz");
    WriteRawZip(path, {{"good.npy", npy}, {name, npy}});
    EXPECT_EQ(Summary(NpzFile::Open(path, {}).status()), std::string(kBadFile) + " position=1") << name;
  }
}

TEST(NpzFileTest, RefusesAnArrayThatIsThereTwice) {
  const std::string path = TestPath("twice.npz");
  const std::string npy = RawNpyOf("|i1", "(0,)", "");
  WriteRawZip(path, {{"x.npy", npy}, {"y.npy", npy}});
  std::string bytes = ReadBytes(path);
  ReplaceAll(bytes, "y.npy", "x.npy");
  WriteBytes(path, bytes);
  EXPECT_EQ(Summary(NpzFile::Open(path, {}).status()), kBadArray);
}

TEST(NpzFileTest, RefusesAnObjectArrayOnlyWhenItIsAskedFor) {
  const std::string path = TestPath("object.npz");
  WriteRawZip(path, {{"names.npy", RawNpyOf("|O", "(3,)", "\x80\x03pickle")},
                     {"x.npy", RawNpyOf("<i4", "(1,)", BytesOf<int32_t>({4}))}});
  auto file = NpzFile::Open(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(Entries<int32_t>(file->ReadArray("x")), ElementsAre(4));
  const absl::Status status = file->ReadArray("names").status();
  EXPECT_EQ(Summary(status), "INVALID_ARGUMENT INVALID_GRAPH array=names");
  EXPECT_THAT(std::string(status.message()), HasSubstr("never unpickled"));
}

TEST(NpzFileTest, NamesThePositionOfAnIntegerThatDoesNotFit) {
  const auto array = ReadOne(RawNpyOf("<u8", "(2,)", BytesOf<uint64_t>({1, std::numeric_limits<uint64_t>::max()})));
  EXPECT_EQ(Summary(array.status()), std::string(kBadArray) + " position=1");
  std::vector<uint64_t> many(100'000, 1);
  many[99'999] = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Summary(ReadOne(RawNpyOf("<u8", "(100000,)", BytesOf(many))).status()),
            std::string(kBadArray) + " position=99999");
}

TEST(NpzFileTest, RefusesTextThatIsNotUnicode) {
  for (const uint32_t code : {0xd800U, 0x110000U, 0xffffffffU}) {
    EXPECT_EQ(Summary(ReadOne(RawNpyOf("<U1", "()", BytesOf<uint32_t>({code}))).status()),
              std::string(kBadArray) + " position=0");
  }
}

TEST(NpzFileTest, RefusesTextOfManyMegabytes) {
  EXPECT_EQ(Summary(ReadOne(RawNpyOf("|S33554432", "()", std::string(32 * kMebibyte, 'a'))).status()), kBadArray);
}

TEST(NpzFileTest, RefusesWhatIsNotAnNpyArray) {
  std::string long_header("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12);
  for (const std::string& npy :
       {std::string(), std::string("\x93NUMPY"), std::string("not an array at all"),
        std::string("\x93NUMPY\x01\x00\xff\xff{", 11), long_header, RawNpy("{'descr': '<i4'", "")}) {
    EXPECT_EQ(Summary(ReadOne(npy).status()), kBadArray);
  }
}

TEST(NpzFileTest, RefusesEntriesThatFailTheirChecksum) {
  const std::string path = TestPath("checksum.npz");
  const std::string secret = "0123456789abcdef";
  WriteRawZip(path, {{"x.npy", RawNpyOf("|u1", "(16,)", secret)}});
  std::string bytes = ReadBytes(path);
  const size_t directory = bytes.rfind("PK\1\2");
  bytes[directory + 16] = static_cast<char>(bytes[directory + 16] ^ 1);
  WriteBytes(path, bytes);
  auto file = NpzFile::Open(path, {});
  const absl::Status status = file.ok() ? file->ReadArray("x").status() : file.status();
  EXPECT_EQ(Summary(status), kBadArray);
}

TEST(WriteNpzFileTest, GivesTheSameBytesForTheSameArrays) {
  const std::map<std::string, NpyArray> arrays = {{"a", VectorArray(std::vector<int64_t>{1, 2, 3})},
                                                  {"b", NpyArray{{}, std::string("text")}}};
  ASSERT_TRUE(WriteArrays(TestPath("first.npz"), arrays).ok());
  ASSERT_TRUE(WriteArrays(TestPath("second.npz"), arrays).ok());
  EXPECT_EQ(ReadBytes(TestPath("first.npz")), ReadBytes(TestPath("second.npz")));
  EXPECT_THAT(ReadBytes(TestPath("first.npz")), HasSubstr(std::string("\0\0\x21\0", 4))) << "1980-01-01 00:00";
}

TEST(WriteNpzFileTest, ReplacesAFileAndLeavesNothingElseBehind) {
  const std::string directory = TestPath("directory");
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const std::string path = directory + "/a.npz";
  WriteBytes(path, "old");
  ASSERT_TRUE(WriteArrays(path, {{"x", VectorArray(std::vector<int32_t>{1})}}).ok());
  EXPECT_TRUE(NpzFile::Open(path, {}).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()), 1);
}

TEST(WriteNpzFileTest, FailsWhereTheDirectoryIsMissing) {
  EXPECT_EQ(Summary(WriteArrays("/nonexistent/a.npz", {{"x", VectorArray(std::vector<int32_t>{1})}})),
            "INVALID_ARGUMENT INVALID_FIELD field=output");
}

}  // namespace
}  // namespace dpar

// Every rule of the tidy checks, shown to fail on a tree that breaks it and to pass on one that does not.
#include "tests/tidy/tidy.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tidy/source_text.h"

namespace dpar::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Including(const std::string& path) { return "#include \"" + path + "\"\n"; }

// Rooms as ARCHITECTURE.md has them, and no more than the tests below need.
const Rooms& SomeRooms() {
  static const Rooms* const rooms = new Rooms(ReadRooms(R"(
Text with an arrow: core/random -> core/graph
    core              ->
    core/random       ->
    core/privacy      ->
    core/graph        -> core/random
    core/infer        -> core/graph
    core/certificate  -> core/privacy
    core/train        -> core/{graph,random}
    client/sdk        ->
    client/cli        -> client/sdk core/certificate
    server            ->
    server/store      ->
    server/ledger     -> server/store
    server/queue      -> server/store
    server/auth       -> server/store
    server/worker     -> core/train server/{ledger,queue,store}
    server/services   -> server/{auth,store}
    server/main.cc    -> server/{auth,services}
    tests/lab         -> core/train
)"));
  return *rooms;
}

std::vector<Violation> CheckOneInclude(const std::string& from, const std::string& include) {
  return CheckIncludes({{from, Including(include)}}, SomeRooms());
}

// One include that breaks a rule, and the message that it must give.
struct BadInclude {
  std::string from;
  std::string include;
  std::string fault;
};

class BadIncludeTest : public ::testing::TestWithParam<BadInclude> {};

TEST_P(BadIncludeTest, IsReportedWithItsPlaceAndReason) {
  const BadInclude& bad = GetParam();
  EXPECT_THAT(CheckOneInclude(bad.from, bad.include),
              ElementsAre(Violation{bad.from, 1, "includes " + bad.include + ": " + bad.fault}));
}

INSTANTIATE_TEST_SUITE_P(Grpc, BadIncludeTest,
                         ::testing::Values(BadInclude{"core/graph/graph.cc", "grpcpp/grpcpp.h",
                                                      "gRPC belongs to server/services, server/auth and client"},
                                           BadInclude{"core/graph/graph_test.cc", "grpc/grpc.h",
                                                      "gRPC belongs to server/services, server/auth and client"},
                                           BadInclude{"core/train/plan.h", "dpar/v1/training.grpc.pb.h",
                                                      "gRPC belongs to server/services, server/auth and client"},
                                           BadInclude{"server/ledger/ledger.cc", "dpar/v1/budget.grpc.pb.h",
                                                      "gRPC belongs to server/services, server/auth and client"}));

INSTANTIATE_TEST_SUITE_P(
    Libraries, BadIncludeTest,
    ::testing::Values(BadInclude{"server/ledger/ledger.cc", "sqlite3.h", "SQL belongs to server/store"},
                      BadInclude{"core/graph/graph.cc", "libpq-fe.h", "SQL belongs to server/store"},
                      BadInclude{"client/cli/upload.cc", "torch/torch.h", "LibTorch belongs to core/train"},
                      BadInclude{"core/infer/model.cc", "ATen/ATen.h", "LibTorch belongs to core/train"},
                      BadInclude{"server/worker/worker.cc", "c10/core/Device.h", "LibTorch belongs to core/train"},
                      BadInclude{"core/graph/graph.cc", "sys/socket.h", "core has no sockets"},
                      BadInclude{"core/graph/graph.cc", "arpa/inet.h", "core has no sockets"}));

INSTANTIATE_TEST_SUITE_P(
    Rooms, BadIncludeTest,
    ::testing::Values(
        BadInclude{"core/error.cc", "core/graph/graph.h", "core may not depend on core/graph"},
        BadInclude{"core/privacy/budget.cc", "server/ledger/ledger.h", "core/privacy may not depend on server/ledger"},
        BadInclude{"core/graph/graph.cc", "client/sdk/client.h", "core/graph may not depend on client/sdk"},
        BadInclude{"core/random/random.cc", "core/graph/graph.h", "core/random may not depend on core/graph"},
        BadInclude{"core/infer/predict.cc", "core/train/train.h", "core/infer may not depend on core/train"},
        BadInclude{"core/certificate/certificate.cc", "core/train/plan.h",
                   "core/certificate may not depend on core/train"},
        BadInclude{"client/cli/train.cc", "core/train/train.h", "client/cli may not depend on core/train"},
        BadInclude{"client/sdk/client.cc", "client/cli/main.h", "client/sdk may not depend on client/cli"},
        BadInclude{"client/sdk/client.cc", "server/store/database.h", "client/sdk may not depend on server/store"},
        BadInclude{"server/services/jobs.cc", "client/sdk/client.h", "server/services may not depend on client/sdk"},
        BadInclude{"server/services/jobs.cc", "core/train/train.h", "server/services may not depend on core/train"},
        BadInclude{"server/queue/queue.cc", "server/ledger/ledger.h", "server/queue may not depend on server/ledger"},
        BadInclude{"server/store/database.cc", "tests/tidy/tidy.h", "server/store may not depend on tests/tidy"},
        BadInclude{"server/limits.cc", "server/services/jobs.h", "server may not depend on server/services"},
        BadInclude{"server/auth/tls.cc", "server/config.h", "server/auth may not depend on server/main.cc"},
        BadInclude{"core/other/new.cc", "core/error.h", "core/other is not a room of ARCHITECTURE.md's table"}));

INSTANTIATE_TEST_SUITE_P(Tests, BadIncludeTest,
                         ::testing::Values(BadInclude{"core/train/train.cc", "core/random/testing/fixed_random.h",
                                                      "what is below testing/ is for tests only"},
                                           BadInclude{"server/main.cc", "core/random/testing/fixed_random.h",
                                                      "what is below testing/ is for tests only"},
                                           BadInclude{"tests/lab/main.cc", "core/random/testing/fixed_random.h",
                                                      "what is below testing/ is for tests only"},
                                           BadInclude{"tests/lab/main.cc", "server/store/database.h",
                                                      "tests/lab may not depend on server/store"},
                                           BadInclude{"client/sdk/client_test.cc", "server/store/database.h",
                                                      "a test includes its own side and core only"}));

TEST(IncludeTest, DownwardIncludesPass) {
  EXPECT_THAT(CheckOneInclude("core/graph/graph.cc", "core/error.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("core/graph/generate.h", "core/random/random.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("core/train/train.cc", "torch/torch.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("core/train/train.h", "dpar/v1/training.pb.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("server/store/sqlite.cc", "sqlite3.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("server/services/jobs.cc", "dpar/v1/training.grpc.pb.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("server/store/datasets.cc", "server/limits.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("server/config.cc", "server/auth/tls.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("server/main.cc", "server/services/jobs.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("client/cli/verify.cc", "core/certificate/certificate.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("tests/e2e/run_test.cc", "server/store/database.h"), IsEmpty());
  EXPECT_THAT(CheckOneInclude("core/infer/predict_test.cc", "core/random/testing/fixed_random.h"), IsEmpty());
}

TEST(IncludeTest, AnIncludeInACommentIsNone) {
  EXPECT_THAT(CheckIncludes({{"core/error.cc", "// #include <grpcpp/grpcpp.h>\n/*\n#include <torch/torch.h>\n*/\n"}},
                            SomeRooms()),
              IsEmpty());
}

TEST(IncludeTest, TheLineIsTheOneInTheFile) {
  EXPECT_THAT(CheckIncludes({{"core/error.cc", "// why\n\n#  include <sqlite3.h>\n"}}, SomeRooms()),
              ElementsAre(Violation{"core/error.cc", 3, "includes sqlite3.h: SQL belongs to server/store"}));
}

TEST(PermissionTest, OneThatNoFileNeedsIsReported) {
  const Rooms rooms = ReadRooms("    core/graph -> core/{appr,random}\n");
  const Tree tree = {{"core/graph/graph.cc", Including("core/random/random.h")},
                     {"core/graph/graph_test.cc", Including("core/appr/solver.h")},
                     {"core/graph/testing/graphs.h", Including("core/appr/solver.h")}};
  EXPECT_THAT(CheckPermissionsUsed(tree, rooms),
              ElementsAre(Violation{"ARCHITECTURE.md", 0, "core/graph -> core/appr: no file there needs it"}));
}

std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "  x();\n";
  }
  return text;
}

TEST(SizeTest, AFileOfMoreThan500LinesIsReported) {
  EXPECT_THAT(CheckSizes({{"core/a.cc", Lines(500)}, {"README.md", Lines(501)}}), IsEmpty());
  EXPECT_THAT(CheckSizes({{"core/a.cc", Lines(501)}}),
              ElementsAre(Violation{"core/a.cc", 0, "501 lines; at most 500 are readable"}));
}

TEST(SizeTest, AFunctionOfMoreThan70LinesIsReportedWhereItBegins) {
  const std::string long_body = Lines(68) + "  y();\n}\n";
  for (const std::string head :
       {"void F() {\n", "TEST(A, B) {\n", "bool operator==(A a, B b) {\n", "template <class T>\nT F(T t = {}) {\n",
        "class A {\n public:\n  void F() const {\n", "A::A() : a_(1) {\n"}) {
    EXPECT_EQ(CheckSizes({{"core/a.cc", "namespace a {\n" + head + long_body}}).size(), 1U) << head;
  }
  EXPECT_THAT(CheckSizes({{"core/a.cc", "\nvoid F() {\n" + Lines(68) + "}\nvoid G() {\n" + Lines(69) + "}\n"}}),
              ElementsAre(Violation{"core/a.cc", 72, "a function of 71 lines; at most 70 are readable"}));
}

TEST(SizeTest, WhatIsNoFunctionMayBeLong) {
  for (const std::string head : {"namespace a {\n", "class A : public B<C(D)> {\n", "const A a = f({\n",
                                 "enum class A {\n", "#define A(b) {\\\n  c\n"}) {
    EXPECT_THAT(CheckSizes({{"core/a.cc", head + Lines(80) + "}\n"}}), IsEmpty()) << head;
  }
}

std::vector<Violation> CheckOneLink(const std::string& path, const std::string& call) {
  return CheckLinks({{path, call}}, SomeRooms());
}

TEST(LinkTest, LibrariesOutsideTheirRoomAreReported) {
  EXPECT_THAT(
      CheckOneLink("core/infer/CMakeLists.txt",
                   "\ndpar_library(dpar_infer\n  SOURCES a.cc\n"
                   "  PUBLIC gRPC::grpc++)"),
      ElementsAre(Violation{"core/infer/CMakeLists.txt", 2, "dpar_infer links gRPC::grpc++: core links no gRPC"}));
  EXPECT_THAT(CheckOneLink("client/cli/CMakeLists.txt", "dpar_library(dpar_cli SOURCES a.cc PRIVATE dpar_train)"),
              ElementsAre(Violation{"client/cli/CMakeLists.txt", 1,
                                    "dpar_cli links dpar_train: client/cli may not depend on core/train"}));
  EXPECT_THAT(CheckOneLink("server/worker/CMakeLists.txt", "dpar_library(dpar_worker PRIVATE dpar_torch)"),
              ElementsAre(Violation{"server/worker/CMakeLists.txt", 1,
                                    "dpar_worker links dpar_torch: LibTorch belongs to core/train"}));
  EXPECT_THAT(CheckOneLink("server/queue/CMakeLists.txt", "dpar_library(dpar_queue PRIVATE SQLite::SQLite3)"),
              ElementsAre(Violation{"server/queue/CMakeLists.txt", 1,
                                    "dpar_queue links SQLite::SQLite3: SQL belongs to server/store"}));
  EXPECT_THAT(CheckOneLink("core/graph/CMakeLists.txt", "dpar_library(dpar_graph PUBLIC dpar_store)"),
              ElementsAre(Violation{"core/graph/CMakeLists.txt", 1,
                                    "dpar_graph links dpar_store: core/graph may not depend on server/store"}));
  EXPECT_THAT(CheckOneLink("server/services/CMakeLists.txt", "dpar_library(dpar_services PUBLIC dpar_sdk)"),
              ElementsAre(Violation{"server/services/CMakeLists.txt", 1,
                                    "dpar_services links dpar_sdk: server/services may not depend on client/sdk"}));
}

TEST(LinkTest, LibrariesForTestingAreLinkedByTestsOnly) {
  EXPECT_THAT(CheckOneLink("core/train/CMakeLists.txt", "dpar_library(dpar_train PUBLIC dpar_random_testing)"),
              ElementsAre(Violation{"core/train/CMakeLists.txt", 1,
                                    "dpar_train links dpar_random_testing: it is for tests only"}));
  EXPECT_THAT(CheckOneLink("core/train/CMakeLists.txt", "dpar_test(train_test DEPENDS dpar_random_testing)"),
              IsEmpty());
  EXPECT_THAT(
      CheckOneLink("tests/lab/CMakeLists.txt", "dpar_binary(dpar-lab DEPENDS dpar_appr_testing)"),
      ElementsAre(Violation{"tests/lab/CMakeLists.txt", 1, "dpar-lab links dpar_appr_testing: it is for tests only"}));
  EXPECT_THAT(CheckOneLink("core/appr/CMakeLists.txt", "dpar_library(dpar_appr_testing PUBLIC dpar_random_testing)"),
              IsEmpty());
  EXPECT_THAT(CheckOneLink("core/random/CMakeLists.txt", "dpar_library(dpar_random_testing SOURCES fixed_random.cc)"),
              IsEmpty());
}

TEST(LinkTest, WhatIsLinkedByWayOfOthersIsReportedWithTheWay) {
  const Tree tree = {{"client/CMakeLists.txt",
                      "dpar_binary(dpar SOURCES main.cc DEPENDS dpar_cli)\n"
                      "dpar_library(dpar_cli SOURCES a.cc PRIVATE dpar_plan)"},
                     {"core/CMakeLists.txt", "dpar_library(dpar_plan SOURCES b.cc PUBLIC dpar_torch dpar_cli)"}};
  EXPECT_THAT(CheckNeverLinked(tree, "dpar", "dpar_torch"),
              ElementsAre(Violation{"client/CMakeLists.txt", 1,
                                    "dpar links dpar_torch: dpar -> dpar_cli -> dpar_plan -> dpar_torch"}));
  EXPECT_THAT(CheckNeverLinked(tree, "dpar", "dpar_train"), IsEmpty());
  EXPECT_THAT(CheckNeverLinked(tree, "gone", "dpar_torch"),
              ElementsAre(Violation{"CMakeLists.txt", 0, "no target is called gone"}));
}

std::vector<Violation> CheckOneLine(const std::string& path, const std::string& line) {
  return CheckForbiddenCode({{path, line + "\n"}});
}

TEST(ForbiddenCodeTest, ClocksInCoreAreReported) {
  const std::string fault = "core has no clock: pass the time in";
  for (const std::string line : {"auto t = absl::Now();", "auto t = std::chrono::steady_clock::now();",
                                 "clock_gettime(CLOCK_REALTIME, &t);", "auto t = std::time(nullptr);"}) {
    EXPECT_THAT(CheckOneLine("core/train/train.cc", line), ElementsAre(Violation{"core/train/train.cc", 1, fault}))
        << line;
    EXPECT_THAT(CheckOneLine("server/worker/worker.cc", line), IsEmpty()) << line;
  }
}

TEST(ForbiddenCodeTest, WeakGeneratorsAreReportedEverywhere) {
  for (const std::string line : {"std::mt19937 g;", "std::mt19937_64 g;", "std::random_device d;", "int x = rand();",
                                 "srand(1);", "double x = drand48();"}) {
    EXPECT_THAT(CheckOneLine("tests/load/load_test.cc", line),
                ElementsAre(Violation{"tests/load/load_test.cc", 1, "randomness comes from a RandomSource"}))
        << line;
  }
}

TEST(ForbiddenCodeTest, TorchsGeneratorIsReportedEverywhere) {
  for (const std::string line :
       {"auto z = torch::randn({3});", "auto z = at::normal(0, 1);", "torch::manual_seed(1);"}) {
    EXPECT_THAT(
        CheckOneLine("core/train/train.cc", line),
        ElementsAre(Violation{"core/train/train.cc", 1, "randomness comes from a RandomSource, never from LibTorch"}))
        << line;
  }
}

TEST(ForbiddenCodeTest, AStreamThatTheCallerKnowsIsMadeInTwoPlacesOnly) {
  const std::string line = "auto random = ReproducibleRandom(seed);";
  EXPECT_EQ(CheckOneLine("core/train/train.cc", line).size(), 1U);
  EXPECT_EQ(CheckOneLine("server/services/training_service.cc", line).size(), 1U);
  EXPECT_EQ(CheckOneLine("client/cli/split_command.cc", line).size(), 1U);
  EXPECT_THAT(CheckOneLine("server/worker/attempt.cc", line), IsEmpty());
  EXPECT_THAT(CheckOneLine("client/cli/public_draws.cc", line), IsEmpty());
}

TEST(ForbiddenCodeTest, FaultsArePlantedThroughTheirMacroOnly) {
  const std::string line = "if (planted_fault == Fault::kHalfNoise) noise /= 2;";
  EXPECT_EQ(CheckOneLine("core/train/descent.cc", line).size(), 1U);
  EXPECT_EQ(CheckOneLine("tests/lab/audit_command.cc", line).size(), 1U);
  EXPECT_THAT(CheckOneLine("core/fault.h", line), IsEmpty());
  EXPECT_THAT(CheckOneLine("tests/audit/faults_main.cc", line), IsEmpty());
  EXPECT_THAT(CheckOneLine("core/train/descent.cc", "noise = DPAR_FAULT(kHalfNoise, noise / 2, noise);"), IsEmpty());
}

TEST(ForbiddenCodeTest, CommentsLiteralsAndLongerNamesPass) {
  for (const std::string line :
       {"// never std::mt19937", "const char* s = \"rand()\";", "auto s = R\"(rand())\";", "int operand(int x);",
        "int64_t n = 20'000'000;  // rand()", "char c = '\"'; /* rand() */"}) {
    EXPECT_THAT(CheckOneLine("core/train/train.cc", line), IsEmpty()) << line;
  }
}

TEST(ForbiddenCodeTest, CodeAfterADigitSeparatorOrAQuoteIsStillSeen) {
  for (const std::string line :
       {"int64_t n = 20'000'000 + rand();", "f('\"', rand());", "f(\"\\\"\", rand());", "f(R\"x(\")x\", rand());"}) {
    EXPECT_EQ(CheckOneLine("core/train/train.cc", line).size(), 1U) << line;
  }
}

TEST(WordsTest, NotesToSelfAreReportedInEveryTextFile) {
  const std::string todo = std::string("TO") + "DO";
  const std::string fixme = std::string("FIX") + "ME";
  EXPECT_THAT(
      CheckWords({{"README.md", "a\n" + todo + ": b\n"}, {"core/error.cc", "// " + fixme + "\n"}}),
      ElementsAre(Violation{"README.md", 2, "the word " + todo}, Violation{"core/error.cc", 1, "the word " + fixme}));
  EXPECT_THAT(CheckWords({{"picture.png", todo + std::string(1, '\0')}, {"README.md", "MASTODON"}}), IsEmpty());
}

TEST(CompiledTest, ASourceThatNoTargetCompilesIsReported) {
  const Tree tree = {{"core/error.cc", ""}, {"core/dead.cc", ""}, {"core/error.h", ""}};
  EXPECT_THAT(CheckCompiled(tree, {"core/error.cc"}),
              ElementsAre(Violation{"core/dead.cc", 0, "no target compiles it"}));
}

TEST(CompiledTest, CompileCommandsAreReadRelativeToTheProject) {
  EXPECT_THAT(CompiledFiles(R"([{"file": "/p/core/a.cc", "command": "x"}, {"file": "/q/b.cc"}, {"file": 1}, 2])", "/p"),
              ElementsAre("core/a.cc"));
  EXPECT_THAT(CompiledFiles("", "/p"), IsEmpty());
  EXPECT_THAT(CompiledFiles("{}", "/p"), IsEmpty());
}

std::string Guarded(const std::string& guard) { return "#ifndef " + guard + "\n#define " + guard + "\n#endif\n"; }

TEST(HeadersTest, AHeaderThatOnlyItsOwnSourceAndTestIncludeIsReported) {
  const Tree tree = {{"core/a.h", Guarded("DPAR_CORE_A_H_")},
                     {"core/a.cc", Including("core/a.h")},
                     {"core/a_test.cc", Including("core/a.h")}};
  EXPECT_THAT(CheckHeaders(tree),
              ElementsAre(Violation{"core/a.h", 0, "nothing but its own source and test includes it"}));
}

TEST(HeadersTest, AHeaderThatAnotherFileIncludesPasses) {
  const Tree tree = {{"core/a.h", Guarded("DPAR_CORE_A_H_")}, {"core/b.cc", Including("core/a.h")}};
  EXPECT_THAT(CheckHeaders(tree), IsEmpty());
}

TEST(HeadersTest, AGuardThatDoesNotFollowThePathIsReported) {
  const Tree tree = {{"core/graph/a.h", Guarded("DPAR_A_H_")}, {"core/b.cc", Including("core/graph/a.h")}};
  EXPECT_THAT(CheckHeaders(tree),
              ElementsAre(Violation{"core/graph/a.h", 0, "its guard must be DPAR_CORE_GRAPH_A_H_"}));
}

TEST(ProtoTest, AnRpcWithoutACommentIsReported) {
  const std::string content =
      "// All.\nservice S {\n  // One.\n  rpc A(R) returns (R);\n  rpc B(R) returns (R);\n}\nenum E {\n}\n";
  EXPECT_THAT(CheckProtoComments({{"proto/dpar/v1/s.proto", content}}),
              ElementsAre(Violation{"proto/dpar/v1/s.proto", 5, "rpc B has no comment"},
                          Violation{"proto/dpar/v1/s.proto", 7, "enum E has no comment"}));
  EXPECT_THAT(CheckProtoComments({{"proto/google/rpc/status.proto", content}}), IsEmpty());
}

TEST(ToTextTest, ViolationsReadLikeCompilerMessages) {
  EXPECT_EQ(ToText({{"core/a.cc", 3, "why"}, {"core/b.cc", 0, "what"}}), "core/a.cc:3: why\ncore/b.cc:0: what\n");
}

}  // namespace
}  // namespace dpar::tidy

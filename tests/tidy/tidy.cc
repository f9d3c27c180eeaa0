#include "tests/tidy/tidy.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/tidy/source_text.h"

namespace dpar::tidy {
namespace {

constexpr size_t kMaxFileLines = 500;
constexpr int kMaxFunctionLines = 70;

bool IsCpp(const std::string& path) { return path.ends_with(".h") || path.ends_with(".cc"); }
// The research binary is a program like the others, although it lives with the tests. Headers named *_run.h are for the
// tests that run it.
bool IsLab(const std::string& path) {
  return path.starts_with("tests/lab/") && !path.ends_with("_test.cc") && !path.ends_with("_run.h");
}
bool IsTest(const std::string& path) {
  return (path.starts_with("tests/") || path.ends_with("_test.cc")) && !IsLab(path);
}
// What tests share: fixed randomness, hostile files, plain forms of clever code.
bool IsForTesting(const std::string& path) { return path.find("/testing/") != std::string::npos; }

bool StartsWithAny(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return text.starts_with(p); });
}

// A library that only some rooms may include.
struct LibraryRule {
  std::vector<std::string> scope;    // path prefixes that the rule is about
  std::vector<std::string> allowed;  // except these
  std::regex includes;
  std::string message;
};

const std::vector<LibraryRule>& LibraryRules() {
  static const auto* rules = new std::vector<LibraryRule>{
      {{"core/", "server/store/", "server/ledger/", "server/queue/", "server/uploads/", "server/admission/",
        "server/worker/"},
       {},
       std::regex(R"(^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$)"),
       "gRPC belongs to server/services, server/auth and client"},
      {{""}, {"server/store/", "tests/"}, std::regex(R"(sqlite3|libpq|pqxx|soci/)"), "SQL belongs to server/store"},
      {{""},
       {"core/train/", "tests/benchmark/"},
       std::regex(R"(^(torch|ATen|c10|caffe2)/)"),
       "LibTorch belongs to core/train"},
      {{"core/"},
       {},
       std::regex(R"(^(sys/socket|sys/un|sys/epoll|poll|netdb)\.h$|^(netinet|arpa|boost/asio|boost/beast)/)"),
       "core has no sockets"},
      {{"server/", "client/"}, {"server/http/"}, std::regex("^boost/(asio|beast)/"), "HTTP belongs to server/http"},
  };
  return *rules;
}

bool IsOurs(const std::string& include) { return StartsWithAny(include, {"core/", "server/", "client/", "tests/"}); }

// A test may look at every room of its own side and at core, but never across.
bool TestMayInclude(const std::string& test, const std::string& include) {
  const std::string side = test.substr(0, test.find('/') + 1);
  return side == "tests/" || include.starts_with(side) || include.starts_with("core/");
}

std::string RoomFault(const Rooms& rooms, const std::string& path, const std::string& include) {
  if (!IsOurs(include)) {
    return "";
  }
  if (IsForTesting(include) && !IsTest(path) && !IsForTesting(path)) {
    return "what is below testing/ is for tests only";
  }
  if (IsTest(path) || IsForTesting(path)) {
    return TestMayInclude(path, include) ? "" : "a test includes its own side and core only";
  }
  const std::string from = RoomOf(path);
  const std::string to = RoomOf(include);
  if (!rooms.contains(from)) {
    return from + " is not a room of ARCHITECTURE.md's table";
  }
  return MayUse(rooms, from, to) ? "" : from + " may not depend on " + to;
}

std::string LibraryFault(const std::string& path, const std::string& include) {
  for (const LibraryRule& rule : LibraryRules()) {
    if (StartsWithAny(path, rule.scope) && !StartsWithAny(path, rule.allowed) &&
        std::regex_search(include, rule.includes)) {
      return rule.message;
    }
  }
  return "";
}

// What a target may not link, by the directory of its CMakeLists.txt.
struct LinkRule {
  std::vector<std::string> scope;
  std::vector<std::string> allowed;
  std::regex libraries;
  std::string message;
};

const std::vector<LinkRule>& LinkRules() {
  static const auto* rules = new std::vector<LinkRule>{
      {{"core/"}, {}, std::regex("^(gRPC::.*|dpar_proto_grpc)$"), "core links no gRPC"},
      {{""}, {"core/train/", "tests/benchmark/"}, std::regex("^dpar_torch$"), "LibTorch belongs to core/train"},
      {{""},
       {"server/store/", "tests/"},
       std::regex("^(SQLite::SQLite3|PostgreSQL::.*)$"),
       "SQL belongs to server/store"},
  };
  return *rules;
}

// The room whose library this is: dpar_{its last part}. Empty for any other library.
std::string RoomOfLibrary(const Rooms& rooms, const std::string& library) {
  for (const auto& [room, may_use] : rooms) {
    if (library == "dpar_" + room.substr(room.rfind('/') + 1)) {
      return room;
    }
  }
  return "";
}

std::string LinkFault(const Rooms& rooms, const std::string& path, const TargetCall& call, const std::string& library) {
  for (const LinkRule& rule : LinkRules()) {
    if (StartsWithAny(path, rule.scope) && !StartsWithAny(path, rule.allowed) &&
        std::regex_match(library, rule.libraries)) {
      return rule.message;
    }
  }
  const bool is_for_testing = call.command == "dpar_test" || call.name.ends_with("_testing");
  const bool is_program = !path.starts_with("tests/") || path.starts_with("tests/lab/");
  if (library.ends_with("_testing") && !is_for_testing && is_program) {
    return "it is for tests only";
  }
  const std::string from = call.name == "dpar_config" ? "server/main.cc" : RoomOf(path);
  const std::string to = RoomOfLibrary(rooms, library);
  if (!is_for_testing && call.command == "dpar_library" && rooms.contains(from) && !to.empty() &&
      !MayUse(rooms, from, to)) {
    return from + " may not depend on " + to;
  }
  return "";
}

// Code that may not appear, matched with comments and literals blanked.
struct CodeRule {
  std::string scope;
  bool tests_too = false;
  std::regex code;
  std::string message;
  std::set<std::string> except = {};
};

const std::vector<CodeRule>& CodeRules() {
  static const auto* rules = new std::vector<CodeRule>{
      {"core/", false,
       std::regex(R"(\babsl::Now\b|\bstd::chrono::\w+_clock\b|\b(clock_gettime|gettimeofday|std::time)\s*\()"),
       "core has no clock: pass the time in"},
      {"", true,
       std::regex(R"(\bstd::(mt19937|minstd_rand|ranlux|knuth_b|default_random_engine|random_device))"
                  R"(|\b(s?rand|[dlm]rand48)\s*\()"),
       "randomness comes from a RandomSource"},
      {"", true, std::regex(R"(\b(torch|at)::(rand|normal|bernoulli|multinomial|poisson|manual_seed))"),
       "randomness comes from a RandomSource, never from LibTorch"},
      {"",
       false,
       std::regex(R"(\bReproducibleRandom\b)"),
       "a stream that the caller knows is for public data, where server/worker/attempt.cc decides, and for public "
       "draws",
       {"client/cli/public_draws.cc", "core/random/secure_random.h", "core/random/secure_random.cc",
        "server/worker/attempt.cc"}},
      {"",
       false,
       std::regex(R"(\bplanted_fault\b)"),
       "faults are planted through DPAR_FAULT, which is nothing in production",
       {"core/fault.h"}},
  };
  return *rules;
}

std::string GuardOf(const std::string& path) {
  std::string guard = "DPAR_";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    guard += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return guard + "_";
}

}  // namespace

std::string ToText(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += violation.path + ":" + std::to_string(violation.line) + ": " + violation.message + "\n";
  }
  return text;
}

std::vector<Violation> CheckIncludes(const Tree& tree, const Rooms& rooms) {
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (!IsCpp(path)) {
      continue;
    }
    for (const Include& include : FindIncludes(content)) {
      for (const std::string& fault : {RoomFault(rooms, path, include.path), LibraryFault(path, include.path)}) {
        if (!fault.empty()) {
          violations.push_back({path, include.line, "includes " + include.path + ": " + fault});
        }
      }
    }
  }
  return violations;
}

std::vector<Violation> CheckPermissionsUsed(const Tree& tree, const Rooms& rooms) {
  std::map<std::string, std::set<std::string>> used;
  for (const auto& [path, content] : tree) {
    if (IsCpp(path) && !IsTest(path) && !IsForTesting(path)) {
      for (const Include& include : FindIncludes(content)) {
        used[RoomOf(path)].insert(RoomOf(include.path));
      }
    }
  }
  std::vector<Violation> violations;
  for (const auto& [room, may_use] : rooms) {
    for (const std::string& other : may_use) {
      if (!used[room].contains(other)) {
        violations.push_back({"ARCHITECTURE.md", 0, room + " -> " + other + ": no file there needs it"});
      }
    }
  }
  return violations;
}

std::vector<Violation> CheckLinks(const Tree& tree, const Rooms& rooms) {
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (!path.ends_with("CMakeLists.txt")) {
      continue;
    }
    for (const TargetCall& call : FindTargets(content)) {
      for (const std::string& argument : call.arguments) {
        if (const std::string fault = LinkFault(rooms, path, call, argument); !fault.empty()) {
          violations.push_back({path, call.line, call.name + " links " + argument + ": " + fault});
        }
      }
    }
  }
  return violations;
}

std::vector<Violation> CheckNeverLinked(const Tree& tree, const std::string& target, const std::string& library) {
  struct Place {
    std::string path;
    TargetCall call;
  };
  std::map<std::string, Place> targets;
  for (const auto& [path, content] : tree) {
    if (path.ends_with("CMakeLists.txt")) {
      for (TargetCall& call : FindTargets(content)) {
        targets[call.name] = {path, call};
      }
    }
  }
  if (!targets.contains(target)) {
    return {{"CMakeLists.txt", 0, "no target is called " + target}};
  }
  // Breadth first, so that the way that is shown is a shortest one.
  std::map<std::string, std::string> way = {{target, target}};
  std::vector<std::string> open = {target};
  for (size_t i = 0; i < open.size(); ++i) {
    const auto found = targets.find(open[i]);
    if (found == targets.end()) {
      continue;
    }
    for (const std::string& linked : found->second.call.arguments) {
      if (way.emplace(linked, way[open[i]] + " -> " + linked).second) {
        open.push_back(linked);
      }
    }
  }
  if (!way.contains(library)) {
    return {};
  }
  const Place& place = targets[target];
  return {{place.path, place.call.line, target + " links " + library + ": " + way[library]}};
}

std::vector<Violation> CheckForbiddenCode(const Tree& tree) {
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (!IsCpp(path)) {
      continue;
    }
    int number = 0;
    for (const std::string& line : CodeLines(content)) {
      ++number;
      for (const CodeRule& rule : CodeRules()) {
        if (path.starts_with(rule.scope) && (rule.tests_too || !IsTest(path)) && !rule.except.contains(path) &&
            std::regex_search(line, rule.code)) {
          violations.push_back({path, number, rule.message});
        }
      }
    }
  }
  return violations;
}

std::vector<Violation> CheckWords(const Tree& tree) {
  // Written in two halves, so that this file passes its own check.
  static const std::regex pattern(
      "\\b(TO"
      "DO|FIX"
      "ME)\\b");
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (content.find('\0') != std::string::npos) {
      continue;
    }
    int number = 0;
    for (const std::string& line : SplitLines(content)) {
      ++number;
      if (std::smatch match; std::regex_search(line, match, pattern)) {
        violations.push_back({path, number, "the word " + match[1].str()});
      }
    }
  }
  return violations;
}

std::vector<Violation> CheckCompiled(const Tree& tree, const std::set<std::string>& compiled) {
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (path.ends_with(".cc") && !compiled.contains(path)) {
      violations.push_back({path, 0, "no target compiles it"});
    }
  }
  return violations;
}

std::set<std::string> CompiledFiles(const std::string& compile_commands, const std::string& source_directory) {
  std::set<std::string> files;
  const nlohmann::json commands = nlohmann::json::parse(compile_commands, nullptr, /*allow_exceptions=*/false);
  if (!commands.is_array()) {
    return files;
  }
  const std::string prefix = source_directory + "/";
  for (const nlohmann::json& command : commands) {
    if (command.is_object() && command.contains("file") && command["file"].is_string()) {
      if (const auto file = command["file"].get<std::string>(); file.starts_with(prefix)) {
        files.insert(file.substr(prefix.size()));
      }
    }
  }
  return files;
}

std::vector<Violation> CheckHeaders(const Tree& tree) {
  std::set<std::string> used;
  for (const auto& [path, content] : tree) {
    if (!IsCpp(path)) {
      continue;
    }
    for (const Include& include : FindIncludes(content)) {
      const std::string stem = include.path.substr(0, include.path.rfind('.'));
      if (path != stem + ".cc" && path != stem + "_test.cc") {
        used.insert(include.path);
      }
    }
  }
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (!path.ends_with(".h")) {
      continue;
    }
    if (!used.contains(path)) {
      violations.push_back({path, 0, "nothing but its own source and test includes it"});
    }
    if (content.find("#ifndef " + GuardOf(path) + "\n") == std::string::npos) {
      violations.push_back({path, 0, "its guard must be " + GuardOf(path)});
    }
  }
  return violations;
}

std::vector<Violation> CheckSizes(const Tree& tree) {
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (!IsCpp(path)) {
      continue;
    }
    if (const size_t lines = SplitLines(content).size(); lines > kMaxFileLines) {
      violations.push_back(
          {path, 0, std::to_string(lines) + " lines; at most " + std::to_string(kMaxFileLines) + " are readable"});
    }
    for (const Function& function : FindFunctions(content)) {
      if (function.lines > kMaxFunctionLines) {
        violations.push_back({path, function.line,
                              "a function of " + std::to_string(function.lines) + " lines; at most " +
                                  std::to_string(kMaxFunctionLines) + " are readable"});
      }
    }
  }
  return violations;
}

std::vector<Violation> CheckProtoComments(const Tree& tree) {
  static const std::regex declaration(R"(^\s*(service|rpc|enum)\s+(\w+))");
  std::vector<Violation> violations;
  for (const auto& [path, content] : tree) {
    if (!path.starts_with("proto/dpar/") || !path.ends_with(".proto")) {
      continue;
    }
    const std::vector<std::string> lines = SplitLines(content);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      const bool commented = i > 0 && lines[i - 1].find("//") != std::string::npos;
      if (!commented && std::regex_search(lines[i], match, declaration)) {
        violations.push_back(
            {path, static_cast<int>(i) + 1, match[1].str() + " " + match[2].str() + " has no comment"});
      }
    }
  }
  return violations;
}

}  // namespace dpar::tidy

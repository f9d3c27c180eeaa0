#include "server/store/testing/private_postgres.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace dpar::testing {
namespace {

// What a command prints on one line; empty when it fails.
std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return "";
  }
  std::array<char, 4096> line = {};
  const bool read = fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr;
  pclose(pipe);
  return read ? std::string(absl::StripAsciiWhitespace(line.data())) : "";
}

[[noreturn]] void GiveUp(const std::string& what) {
  std::cerr << "private PostgreSQL: cannot " << what << "\n";
  std::abort();
}

}  // namespace

std::unique_ptr<PrivatePostgres> PrivatePostgres::Start(const std::string& settings) {
  // Debian keeps the server's programs of each version apart; the newest is taken.
  const std::string initdb = OutputOf("ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -n 1");
  if (initdb.empty()) {
    return nullptr;
  }
  return std::unique_ptr<PrivatePostgres>(
      new PrivatePostgres(std::filesystem::path(initdb).parent_path().string(), settings));
}

PrivatePostgres::PrivatePostgres(std::string binaries, std::string settings)
    : binaries_(std::move(binaries)), settings_(std::move(settings)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "dpar_pg.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    GiveUp("make a temporary directory");
  }
  directory_ = pattern;
  if (geteuid() == 0 && std::system(absl::StrCat("chown postgres ", directory_).c_str()) != 0) {
    GiveUp("give the directory to the user postgres");
  }
  if (!Run(absl::StrCat(binaries_, "/initdb -D ", directory_, "/data -U app --auth=trust -E UTF8 --locale=C.UTF-8"))) {
    GiveUp("make its files");
  }
  Launch();
}

PrivatePostgres::~PrivatePostgres() {
  Kill();
  std::filesystem::remove_all(directory_);
}

bool PrivatePostgres::Run(const std::string& command) const {
  const std::string log = absl::StrCat(directory_, "/commands.log");
  const std::string as_postgres = geteuid() == 0 ? "runuser -u postgres -- " : "";
  return std::system(absl::StrCat("cd ", directory_, " && ", as_postgres, command, " >>", log, " 2>&1").c_str()) == 0;
}

std::string PrivatePostgres::Control(const std::string& verb) const {
  return absl::StrCat(binaries_, "/pg_ctl -D ", directory_, "/data -w -l ", directory_, "/server.log ", verb);
}

void PrivatePostgres::Launch() {
  if (!Run(Control(absl::StrCat("-o \"-k ", directory_, " -c listen_addresses='' -c max_connections=200 ", settings_,
                                "\" start")))) {
    GiveUp("start");
  }
}

std::string PrivatePostgres::NewDatabase() {
  const std::string name = absl::StrCat("d", ++databases_);
  if (!Run(absl::StrCat(binaries_, "/createdb -h ", directory_, " -U app ", name))) {
    GiveUp("make a database");
  }
  return absl::StrCat("postgresql:///", name, "?host=", directory_, "&user=app");
}

void PrivatePostgres::WithholdAnswers() {
  if (!Run(absl::StrCat("psql -h ", directory_,
                        " -U app -d postgres -c \"ALTER SYSTEM SET synchronous_standby_names = ",
                        "'nobody'\" -c 'SELECT pg_reload_conf()'"))) {
    GiveUp("withhold answers");
  }
}

void PrivatePostgres::Kill() { static_cast<void>(Run(Control("-m immediate stop"))); }

void PrivatePostgres::Stop() {
  if (!Run(Control("-m fast stop"))) {
    GiveUp("stop");
  }
}

void PrivatePostgres::Restart() {
  // What ALTER SYSTEM has set.
  if (std::system(absl::StrCat(": >", directory_, "/data/postgresql.auto.conf").c_str()) != 0) {
    GiveUp("reset its settings");
  }
  Launch();
}

}  // namespace dpar::testing

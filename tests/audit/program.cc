#include "tests/audit/program.h"

#include <exception>
#include <iostream>

#include "CLI/CLI.hpp"
#include "core/parallel.h"

namespace dpar::audit {

int Main(const char* name, int argc, char** argv, const std::function<int(const AuditOptions& options)>& run) {
  CLI::App app("Run by dpar-lab audit; docs/audit.md says what it does");
  app.name(name);
  bool quick = false;
  bool full = false;
  AuditOptions options;
  options.threads = HardwareThreads();
  auto* mode = app.add_option_group("mode");
  mode->add_flag("--quick", quick, "The audit of the test suite");
  mode->add_flag("--full", full, "Ten times as many runs");
  mode->require_option(1);
  app.add_option("--seed", options.seed, "Another seed is another audit")->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.effort = full ? kFullEffort : 1;
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace dpar::audit

// dpar completion, and two hidden commands: dpar complete, for its scripts, and dpar man, for the build.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/completion.h"
#include "client/cli/errors.h"
#include "client/cli/man_page.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr mode_t kFileMode = 0666;

absl::StatusOr<int> RunCompletion(Session& session, const std::string& shell) {
  const std::string script = CompletionScript(shell);
  if (script.empty()) {
    return InvalidField("shell", absl::StrCat("there is completion for bash, zsh and fish; not for '", shell, "'"));
  }
  if (session.json()) {
    session.PrintJson({{"shell", shell}, {"script", script}});
  } else {
    session.out() << script;
  }
  return kDone;
}

absl::StatusOr<int> RunMan(Session& session, const CLI::App& root, const std::string& directory) {
  Json files = Json::array();
  for (const CommandNode& node : AllCommands(root)) {
    const std::string file = absl::StrCat(directory, "/", ManFileName(node));
    DPAR_RETURN_IF_ERROR(WriteFileAtomically(file, ManPage(root, node), kFileMode));
    files.push_back(file);
  }
  if (session.json()) {
    session.PrintJson({{"files", files}});
  } else {
    session.out() << "wrote " << files.size() << " pages to " << directory << "\n";
  }
  return kDone;
}

}  // namespace

void AddCompletionCommands(CLI::App& app, Command& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print what completes dpar in bash, zsh or fish");
  completion->group(kStartGroup);
  completion->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  completion->footer(
      Examples("  dpar completion bash > dpar.bash\n"
               "  dpar completion zsh > _dpar\n"
               "  dpar completion fish > dpar.fish\n"
               "In bash: source <(dpar completion bash). In zsh: put _dpar into a directory of $fpath.\n"
               "In fish: put dpar.fish into ~/.config/fish/completions."));
  completion->callback([shell, &chosen] { chosen = [shell](Session& s) { return RunCompletion(s, *shell); }; });

  const auto words = std::make_shared<std::vector<std::string>>();
  const auto flags = std::make_shared<bool>(false);
  CLI::App* complete = app.add_subcommand("complete", "Print what may follow; for the scripts of dpar completion");
  complete->group("");
  complete->add_flag("--flags", *flags, "Flags instead of commands");
  complete->add_option("WORDS", *words, "What was typed before, after --");
  complete->callback([words, flags, &app, &chosen] {
    chosen = [words, flags, &app](Session& s) {
      s.out() << Candidates(app, *words, *flags);
      return kDone;
    };
  });

  const auto directory = std::make_shared<std::string>();
  CLI::App* man = app.add_subcommand("man", "Write the manual pages of all commands");
  man->group("");
  man->add_option("DIRECTORY", *directory, "Where to; it must exist")->required();
  man->callback(
      [directory, &app, &chosen] { chosen = [directory, &app](Session& s) { return RunMan(s, app, *directory); }; });
}

}  // namespace dpar

#include "client/cli/completion.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace dpar {
namespace {

// The scripts ask dpar itself, so that they need not know its commands: dpar complete [--flags] -- WORDS.
constexpr const char* kBash = R"sh(# bash completion for dpar, made by: dpar completion bash
_dpar() {
  local current=${COMP_WORDS[COMP_CWORD]} flags=()
  if [[ $current == -* ]]; then flags=(--flags); fi
  mapfile -t COMPREPLY < <(compgen -W "$(dpar complete "${flags[@]}" -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null |
    cut -f 1)" -- "$current")
  if [[ ${#COMPREPLY[@]} -eq 0 && $current != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _dpar dpar
)sh";

constexpr const char* kZsh = R"sh(#compdef dpar
# zsh completion for dpar, made by: dpar completion zsh
_dpar() {
  local -a candidates flags
  [[ ${words[CURRENT]} == -* ]] && flags=(--flags)
  candidates=("${(@f)$(dpar complete $flags -- "${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
  candidates=("${(@)candidates/$'\t'/:}")
  _describe 'dpar' candidates || _files
}
if [[ ${funcstack[1]} == _dpar ]]; then _dpar "$@"; else compdef _dpar dpar; fi
)sh";

constexpr const char* kFish = R"sh(# fish completion for dpar, made by: dpar completion fish
function __dpar_candidates
  set -l flags
  string match -q -- '-*' (commandline -ct); and set flags --flags
  dpar complete $flags -- (commandline -opc)[2..-1] 2>/dev/null
end
complete -c dpar -a '(__dpar_candidates)'
)sh";

void Collect(const CLI::App& app, const std::vector<std::string>& words, std::vector<CommandNode>& nodes) {
  nodes.push_back({words, &app});
  for (const CLI::App* child : VisibleCommands(app)) {
    std::vector<std::string> below = words;
    below.push_back(child->get_name());
    Collect(*child, below, nodes);
  }
}

std::string OneLine(const std::string& text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

}  // namespace

std::string CommandNode::Joined(const std::string& separator) const { return absl::StrJoin(words, separator); }

std::vector<const CLI::App*> VisibleCommands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* child : app.get_subcommands([](const CLI::App* /*any*/) { return true; })) {
    if (!child->get_group().empty()) {
      commands.push_back(child);
    }
  }
  std::sort(commands.begin(), commands.end(),
            [](const CLI::App* a, const CLI::App* b) { return a->get_name() < b->get_name(); });
  return commands;
}

std::vector<CommandNode> AllCommands(const CLI::App& root) {
  std::vector<CommandNode> nodes;
  Collect(root, {}, nodes);
  return nodes;
}

std::string Candidates(const CLI::App& root, const std::vector<std::string>& words, bool flags) {
  const CLI::App* place = &root;
  for (const std::string& word : words) {
    for (const CLI::App* child : VisibleCommands(*place)) {
      if (child->get_name() == word) {
        place = child;
        break;
      }
    }
  }
  std::map<std::string, std::string> candidates;
  if (!flags) {
    for (const CLI::App* child : VisibleCommands(*place)) {
      candidates[child->get_name()] = OneLine(child->get_description());
    }
  }
  // Every command takes the flags of dpar itself.
  for (const CLI::App* app : {&root, place}) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (flags) {
          candidates["--" + name] = OneLine(option->get_description());
        }
      }
    }
  }
  return absl::StrJoin(candidates, "", [](std::string* out, const auto& candidate) {
    absl::StrAppend(out, candidate.first, "\t", candidate.second, "\n");
  });
}

std::string CompletionScript(const std::string& shell) {
  static const auto* const scripts =
      new std::map<std::string, std::string>{{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  const auto found = scripts->find(shell);
  return found == scripts->end() ? "" : found->second;
}

}  // namespace dpar
